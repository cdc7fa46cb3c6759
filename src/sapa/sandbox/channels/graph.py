"""Simulates the Graph API for WhatsApp, Messenger and Instagram."""

import re
from hashlib import sha256
from typing import Any

from sapa.context import AppContext
from sapa.http.hooks import Hook
from sapa.messaging.channels.interface import Source
from sapa.messaging.channels.registry import CHANNELS
from sapa.sandbox.channels import (
    graph_subscriptions,
    media,
    number_status,
    refusals,
    social,
    templates,
    uploads,
    whatsapp,
    whatsapp_files,
)
from sapa.sandbox.channels.accounts import SandboxAccount, build_app_id, build_public, find_account
from sapa.sandbox.channels.files import FILES, MIME_TYPES, PATH, find_kind
from sapa.sandbox.channels.graph_errors import GraphRefusal, build_refusal
from sapa.sandbox.channels.simulator import build_answer, build_url
from sapa.sandbox.external_access import MALFORMED, ExternalAccess, RefusedCall
from sapa.values.hook_calls import HookAnswer, HookCall

PAGES = (Source.SOCIAL_NETWORK, Source.PHOTO_SOCIAL)
SOURCES = (*whatsapp.SOURCES, *PAGES)
PREFIXES = ("/sandbox/graph/", "/sandbox/instagram/")
MAX_BYTES = 16 * 1_048_576
"""Files for templates and messages are uploaded here."""

_match_path = re.compile(r"/sandbox/(?:graph|instagram)/(?:v[0-9]{1,3}(?:\.[0-9]{1,2})?(?:/|\Z))?(.*)").fullmatch


async def answer(context: AppContext, call: HookCall) -> HookAnswer:
    account = find_caller(context, call)
    if account is None:
        return build_refusal(refusals.refuse_token(_get_token(call)))
    parts = _match_path(call.path)
    node, _, edge = (parts[1] if parts else "").rstrip("/").partition("/")
    try:
        return await _answer_node(context, account, call, node, edge)
    except MALFORMED:
        return _refuse(call, "malformed")


async def _answer_node(
    context: AppContext, account: SandboxAccount, call: HookCall, node: str, edge: str
) -> HookAnswer:
    if (node, edge) == ("oauth", "access_token"):
        return build_answer(graph_subscriptions.get_app_token(account))
    if node in {"app", build_app_id(account.company_id, account.source)}:
        return await _answer_app(context, account, call, node, edge)
    if find_kind(node) and call.method == "GET" and not edge:
        return _show_file(context, call, node)
    answer_own = _answer_page if account.source in PAGES else _answer_whatsapp
    found = await answer_own(context, account, call, node, edge)
    if found is not None:
        return found
    refusal = refusals.build_error(10) if _is_foreign(account, node) else refusals.refuse_object(call.method, node)
    return build_refusal(refusal)


async def _answer_app(context: AppContext, account: SandboxAccount, call: HookCall, node: str, edge: str) -> HookAnswer:
    match call.method, edge:
        case "POST", "uploads" if account.source not in PAGES:
            return uploads.open_session(call)
        case "GET" | "POST" | "DELETE", "subscriptions" if "|" not in _get_token(call):
            words = "This method must be called with an app access_token."
            return build_refusal(GraphRefusal(code=15, message=words))
        case "GET" | "POST" | "DELETE", "subscriptions":
            return await graph_subscriptions.answer_app(context, account, call)
        case _:
            return build_refusal(refusals.refuse_object(call.method, node))


async def _answer_page(
    context: AppContext, account: SandboxAccount, call: HookCall, node: str, edge: str
) -> HookAnswer | None:
    """None for what does not exist, or does not belong to the account."""
    if node not in {"me", *account.public.values()}:
        return None
    match call.method, edge:
        case "GET", "":
            return build_answer(await _show(context, account))
        case "POST", "messages":
            return await social.accept_message(context, account, call)
        case "POST", "message_attachments":
            return await social.accept_file(context, account, call)
        case _:
            return None


async def _answer_whatsapp(
    context: AppContext, account: SandboxAccount, call: HookCall, node: str, edge: str
) -> HookAnswer | None:
    if node == account.public["waba_id"]:
        return await _answer_business_account(context, account, call, edge)
    if node == account.public["phone_number_id"]:
        return await _answer_number(context, account, call, edge)
    if not edge and (file := await _answer_media(context, account, call, node)) is not None:
        return file
    match call.method, edge:
        case "POST", "" if node.startswith(uploads.SESSION):
            return uploads.take_bytes(call, node)
        case "GET", "" if node == "me":
            return build_answer(await _show(context, account))
        case "GET", "" if node.isdigit():
            return await templates.show(context, account, node)
        case "POST", "" if node.isdigit():
            return await templates.edit(context, account, call, node)
        case _:
            return None


async def _answer_business_account(
    context: AppContext, account: SandboxAccount, call: HookCall, edge: str
) -> HookAnswer | None:
    match call.method, edge:
        case "GET", "":
            id = account.public["waba_id"]
            return build_answer({"id": id, "name": "Sandbox", "currency": "USD", "timezone_id": "1"})
        case "GET", "phone_numbers":
            return build_answer(
                {"data": [await _show(context, account)], "paging": {"cursors": {"before": "0", "after": "0"}}}
            )
        case "GET" | "POST" | "DELETE", "message_templates":
            return await templates.answer(context, account, call)
        case "GET" | "POST" | "DELETE", "subscribed_apps":
            return await graph_subscriptions.answer_business_account(context, account, call, whatsapp.SOURCES)
        case _:
            return None


async def _answer_number(context: AppContext, account: SandboxAccount, call: HookCall, edge: str) -> HookAnswer | None:
    match call.method, edge:
        case "GET", "":
            return build_answer(await _show(context, account))
        case "POST", "messages":
            return await whatsapp.accept_message(context, account, call)
        case "POST", "media":
            return await whatsapp_files.accept_file(context, account, call)
        case "POST", "":
            return await graph_subscriptions.answer_number(context, account, call)
        case _:
            return None


def find_caller(context: AppContext, call: HookCall) -> SandboxAccount | None:
    """By the token of the account or of its app, in the header or the query; or by the app's secret, for a token."""
    if call.path.endswith("/oauth/access_token"):
        return _find_by_app(context, call.query.get("client_id", ""), call.query.get("client_secret", ""))
    token = _get_token(call)
    app_id, separator, secret = token.partition("|")
    if separator:
        is_for_app = call.path.endswith("/subscriptions")
        return _find_by_app(context, app_id, secret) if is_for_app else None
    return find_account(context, token, "access_token", SOURCES)


def _find_by_app(context: AppContext, app_id: str, secret: str) -> SandboxAccount | None:
    account = find_account(context, secret, "app_secret", SOURCES)
    return account if account and build_app_id(account.company_id, account.source) == app_id else None


def _get_token(call: HookCall) -> str:
    scheme, _, token = call.headers.get("authorization", "").partition(" ")
    in_query = call.query.get("access_token", "")
    if "|" in in_query or scheme not in {"Bearer", "OAuth"}:
        return in_query
    return token


def _is_foreign(account: SandboxAccount, node: str) -> bool:
    """Whether the node belongs to another account of the same company, which this token gives no access to."""
    return node not in account.public.values() and any(
        node in build_public(account.company_id, source, CHANNELS[source].fields).values()
        for source in SOURCES
        if source is not account.source
    )


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


async def _answer_media(context: AppContext, account: SandboxAccount, call: HookCall, node: str) -> HookAnswer | None:
    """GET and DELETE /{media id}; None if there is no such file."""
    if call.method not in {"GET", "DELETE"}:
        return None
    found = await media.find(context, account, node)
    if found is None:
        return None
    if call.method == "DELETE":
        await media.delete(context, account, node)
        return build_answer({"success": True})
    return build_answer(media.describe(found, build_url(context, call, PATH + node)))


def _show_file(context: AppContext, call: HookCall, node: str) -> HookAnswer:
    kind = find_kind(node) or ""
    return build_answer(
        {
            "messaging_product": "whatsapp",
            "id": node,
            "url": build_url(context, call, PATH + node),
            "mime_type": MIME_TYPES[kind],
            "sha256": sha256(FILES[kind]).hexdigest(),
            "file_size": len(FILES[kind]),
        }
    )


def _find_company_id(context: AppContext, call: HookCall) -> int | None:
    account = find_caller(context, call)
    return account.company_id if account else None


def _refuse(call: HookCall, reason: RefusedCall) -> HookAnswer:
    match reason:
        case "unauthorized":
            return build_refusal(refusals.refuse_token(_get_token(call)))
        case "too_many":
            return build_refusal(refusals.build_error(80007))
        case "too_large":
            return build_refusal(GraphRefusal(code=1, message="The request is too large", status=413))
        case "malformed":
            return build_refusal(GraphRefusal(code=100, message="Invalid parameter"))


HOOKS: list[Hook[AppContext]] = [Hook(prefix, answer) for prefix in PREFIXES]
ACCESS = [
    ExternalAccess(prefix=prefix, serve=answer, find_company_id=_find_company_id, refuse=_refuse, max_bytes=MAX_BYTES)
    for prefix in PREFIXES
]
