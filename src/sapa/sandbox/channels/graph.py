"""Simulates the Graph API for WhatsApp, Messenger and Instagram."""

from typing import Any

import msgspec

from sapa.context import AppContext
from sapa.http.hooks import Hook
from sapa.messaging.channels.interface import Source
from sapa.sandbox.channels import media, number_status, social, templates, uploads, whatsapp
from sapa.sandbox.channels.accounts import SandboxAccount, find_account
from sapa.sandbox.channels.files import MIME_TYPES, PATH, find_kind
from sapa.sandbox.channels.simulator import build_answer
from sapa.values.hook_calls import HookAnswer, HookCall

PAGES = (Source.SOCIAL_NETWORK, Source.PHOTO_SOCIAL)


async def answer(context: AppContext, call: HookCall) -> HookAnswer:
    account = _find_account(context, call)
    if account is None:
        return whatsapp.build_error(190)
    node, _, edge = call.path.partition("/v")[2].partition("/")[2].partition("/")
    try:
        return await _answer_edge(context, account, call, node, edge)
    except (msgspec.DecodeError, KeyError, IndexError, TypeError):
        return whatsapp.build_error(131008)


async def _answer_edge(
    context: AppContext, account: SandboxAccount, call: HookCall, node: str, edge: str
) -> HookAnswer:
    is_page = account.source in PAGES
    if (
        not is_page
        and call.method == "POST"
        and (answer := await _answer_template_edge(context, account, call, node, edge))
    ):
        return answer
    if node not in {"me", *account.public.values()} and find_kind(node) is None:
        return await _answer_media(context, account, call, node) if not (edge or is_page) else _unknown(node)
    match call.method, edge:
        case "GET", "":
            return _show_file(call, node) if find_kind(node) else build_answer(await _show(context, account))
        case "POST", "media" if not is_page and node == account.public["phone_number_id"]:
            return await whatsapp.accept_file(context, account, call)
        case "POST", "message_attachments" if is_page:
            return await social.accept_file(context, account, call)
        case "POST", "messages":
            accept_message = social.accept_message if is_page else whatsapp.accept_message
            return await accept_message(context, account, call)
        case _, "message_templates" if not is_page:
            return await templates.answer(context, account, call)
    return _unknown(f"{node}/{edge}")


async def _answer_template_edge(
    context: AppContext, account: SandboxAccount, call: HookCall, node: str, edge: str
) -> HookAnswer | None:
    """What belongs to templates, but not to the account's own nodes; None for anything else."""
    if (node, edge) == ("app", "uploads"):
        return uploads.open_session(call)
    if node.startswith(uploads.SESSION) and not edge:
        return uploads.take_bytes(call, node)
    return await templates.edit(context, account, call, node) if node.isdigit() and not edge else None


def _find_account(context: AppContext, call: HookCall) -> SandboxAccount | None:
    scheme, _, token = call.headers.get("authorization", "").partition(" ")
    if scheme not in {"Bearer", "OAuth"}:
        return None
    return find_account(context, token, "access_token", (*whatsapp.SOURCES, *PAGES))


async def _show(context: AppContext, account: SandboxAccount) -> dict[str, Any]:
    public = account.public
    match account.source:
        case Source.PHOTO_SOCIAL:
            return {"id": public["instagram_id"], "user_id": public["instagram_id"], "username": "sandbox"}
        case Source.SOCIAL_NETWORK:
            return {"id": public["page_id"], "name": "Sandbox"}
        case _:
            async with context.database.connection() as db:
                return await number_status.show_number(db, account)


async def _answer_media(context: AppContext, account: SandboxAccount, call: HookCall, node: str) -> HookAnswer:
    """An uploaded file."""
    found = await media.find(context, account, node)
    if found is None or call.method not in {"GET", "DELETE"}:
        return _unknown(node)
    if call.method == "DELETE":
        await media.delete(context, account, node)
        return build_answer({"success": True})
    return build_answer(media.describe(found, f"http://{call.headers.get('host', '')}{PATH}{node}"))


def _show_file(call: HookCall, node: str) -> HookAnswer:
    kind = find_kind(node) or ""
    url = f"http://{call.headers.get('host', '')}{PATH}{node}"
    return build_answer({"id": node, "url": url, "mime_type": MIME_TYPES[kind], "messaging_product": "whatsapp"})


def _unknown(path: str) -> HookAnswer:
    words = f"Unsupported request. Object with ID '{path}' does not exist"
    return build_answer(
        {"error": {"message": words, "type": "GraphMethodException", "code": 100, "error_subcode": 33}}, 400
    )


HOOKS: list[Hook[AppContext]] = [Hook("/sandbox/graph/", answer), Hook("/sandbox/instagram/", answer)]
