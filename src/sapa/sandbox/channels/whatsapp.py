"""Simulates the WhatsApp Cloud API: responses, errors and callbacks."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec
from msgspec.structs import replace

from sapa.access.actions import read_clock
from sapa.context import AppContext
from sapa.messaging.channels.interface import Source
from sapa.sandbox.channels import media, number_status, outbox, templates
from sapa.sandbox.channels.accounts import SandboxAccount
from sapa.sandbox.channels.files import MIME_TYPES
from sapa.sandbox.channels.graph_errors import build_refusal
from sapa.sandbox.channels.graph_posts import sign_post
from sapa.sandbox.channels.inbound import SimulatedInbound
from sapa.sandbox.channels.media import UploadForm
from sapa.sandbox.channels.scripts import Script, ScriptStep, get_script
from sapa.sandbox.channels.simulator import (
    AcceptedMessage,
    ChannelSimulator,
    Post,
    build_answer,
    new_token,
    on_loopback,
    run_script,
)
from sapa.sandbox.channels.whatsapp_contents import (
    CONTENTS,
    build_contents,
    build_preference,
    build_side_parts,
)
from sapa.values.hook_calls import HookAnswer, HookCall

SOURCES = (Source.MSGAPP_CLOUD, Source.MSGAPP_COEX)
FREE_ENTRY: Mapping[str, Any] = {
    "billable": False, "pricing_model": "PMP", "type": "free_entry_point", "category": "referral_conversion",
}  # fmt: skip
FREE_ENTRY_WINDOW = timedelta(hours=72)

_ERRORS: Mapping[int, tuple[int, str]] = {
    190: (401, "Error validating access token: the session has expired"),
    130429: (429, "Rate limit hit: too many messages were sent from this number in a short time"),
    131000: (500, "Something went wrong"),
    131008: (400, "Required parameter is missing"),
    131009: (400, "Parameter value is not valid"),
    131026: (400, "Message undeliverable"),
    131047: (400, "Re-engagement message: more than 24 hours have passed since the recipient last replied"),
    131053: (400, "Media upload error"),
    131049: (400, "This message was not delivered to maintain healthy ecosystem engagement"),
    131056: (400, "(Business account, consumer account) pair rate limit hit"),
    132000: (400, "Number of parameters does not match the expected number of params"),
    132001: (400, "Template name does not exist in the translation"),
}

_UPLOADS = (
    "audio/aac, audio/mp4, audio/mpeg, audio/amr, audio/ogg, audio/opus, application/vnd.ms-powerpoint, "
    "application/msword, application/vnd.openxmlformats-officedocument.wordprocessingml.document, "
    "application/vnd.openxmlformats-officedocument.presentationml.presentation, "
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet, application/pdf, text/plain, "
    "application/vnd.ms-excel, image/jpeg, image/png, image/webp, video/mp4, video/3gpp"
)
_MB = 1_048_576
_MOST_BYTES = {"image": 5 * _MB, "video": 16 * _MB, "audio": 16 * _MB}
_SENT_AS = {"image": "image/", "video": "video/", "audio": "audio/", "sticker": "image/webp"}


async def accept_message(context: AppContext, account: SandboxAccount, call: HookCall) -> HookAnswer:
    """POST /{phone_number_id}/messages"""
    body = msgspec.json.decode(call.body, type=dict[str, Any])
    to = str(body.get("recipient") or body.get("to") or "").removeprefix("+")
    if body.get("status") == "read":
        return await _record(context, account, call, build_answer({"success": True}))
    if body.get("messaging_product") != "whatsapp" or not to or not body.get("type"):
        return build_error(131008)
    if body["type"] == "template" and (refusal := await templates.find_refusal(context, account, body["template"])):
        return await _record(context, account, call, build_refusal(refusal))
    if refused := await _check_uploaded(context, account, body):
        return await _record(context, account, call, refused)
    if body["type"] == "reaction":
        sent = {"messaging_product": "whatsapp", "messages": [{"id": f"wamid.{new_token(32)}"}]}
        return await _record(context, account, call, build_answer(sent))
    async with context.database.connection() as db:
        now = (await read_clock(db, account.company_id)).now
        category = await templates.find_category(db, account, body["template"]) if body["type"] == "template" else None
    accepted = AcceptedMessage(
        account, to, f"wamid.{new_token(32)}", now,
        reference=body.get("biz_opaque_callback_data"),
        is_template=body["type"] == "template",
        choice=_first_choice(body.get("interactive") or {}),
    )  # fmt: skip
    script = get_script(to)
    recipient_id = script.alias or to
    accepted = replace(accepted, pricing=build_pricing(category, script))
    return await run_script(
        context, call, accepted, script,
        accept=lambda accepted: _accept(accepted, recipient_id),
        refuse=build_error,
        broken=build_error(131000),
        build_callback=lambda accepted, step, at: build_callback(accepted, step, at, recipient_id),
    )  # fmt: skip


async def _record(context: AppContext, account: SandboxAccount, call: HookCall, answer: HookAnswer) -> HookAnswer:
    """What no recipient's script decides."""
    async with context.database.transaction() as tx:
        await outbox.record(tx, account.company_id, account.source, call, answer)
    return answer


async def accept_file(context: AppContext, account: SandboxAccount, call: HookCall) -> HookAnswer:
    """POST /{phone_number_id}/media"""
    form = media.parse_form(call)
    answer = await _store_file(context, account, form)
    return await media.record(context, account, call, form, answer)


async def _store_file(context: AppContext, account: SandboxAccount, form: UploadForm) -> HookAnswer:
    if form.fields.get("messaging_product") != "whatsapp":
        return _refuse_parameter("The parameter messaging_product is required.")
    file = form.files.get("file")
    if file is None:
        return _refuse_parameter("The parameter file is required.")
    media_type = file.media_type.partition(";")[0].strip() or form.fields.get("type", "")
    if media_type not in _UPLOADS.split(", "):
        return _refuse_parameter(
            f"Param file must be a file with one of the following types: {_UPLOADS}. "
            f"Received file of type '{media_type}'."
        )
    if not 0 < len(file.content) <= _MOST_BYTES.get(media_type.partition("/")[0], 100 * _MB):
        return build_error(131053)
    return build_answer({"id": await media.store(context, account, media_type, file.content)})


def _refuse_parameter(words: str) -> HookAnswer:
    error = {"message": f"(#100) {words}", "type": "OAuthException", "code": 100, "fbtrace_id": new_token(11)}
    return build_answer({"error": error}, 400)


async def _check_uploaded(context: AppContext, account: SandboxAccount, body: Mapping[str, Any]) -> HookAnswer | None:
    """A file that is sent by its id has to be one that was uploaded, and of the message's type."""
    for type, content in _list_media(body):
        if "id" not in content:
            continue
        found = await media.find(context, account, str(content["id"]))
        if found is None:
            return build_error(131009)
        if not found.media_type.startswith(_SENT_AS.get(type, "")):
            return build_error(131053)
    return None


def _list_media(body: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """The media of a message, or of the headers of a template and of its cards."""
    type = str(body["type"])
    if type in {*_SENT_AS, "document"} and isinstance(body.get(type), dict):
        return [(type, body[type])]
    components = list((body.get("template") or {}).get("components") or [])
    cards = [card for component in components for card in component.get("cards") or []]
    components += [component for card in cards for component in card.get("components") or []]
    parameters = [each for component in components for each in component.get("parameters") or []]
    return [
        (each["type"], each[each["type"]])
        for each in parameters
        if each.get("type") in {"image", "video", "document"} and isinstance(each.get(each["type"]), dict)
    ]


def build_error(code: int) -> HookAnswer:
    status, words = _ERRORS.get(code, (400, "Message failed to send"))
    return build_answer({"error": _error(code, words)}, status)


def _error(code: int, words: str) -> dict[str, Any]:
    return {
        "message": f"(#{code}) {words}",
        "type": "OAuthException",
        "code": code,
        "error_data": {"messaging_product": "whatsapp", "details": words},
        "fbtrace_id": new_token(11),
    }


def _accept(accepted: AcceptedMessage, recipient_id: str) -> HookAnswer:
    contact = {"input": accepted.to, ("user_id" if _is_user_id(recipient_id) else "wa_id"): recipient_id}
    message = {"id": accepted.message_id, **({"message_status": "accepted"} if accepted.is_template else {})}
    return build_answer({"messaging_product": "whatsapp", "contacts": [contact], "messages": [message]})


def build_callback(accepted: AcceptedMessage, step: ScriptStep, at: datetime, recipient_id: str) -> Post | None:
    if step.action in {"reply", "choice"}:
        quoted = accepted.message_id if step.quotes else None
        choice = accepted.choice if step.action == "choice" else None
        return build_inbound(
            accepted.account, SimulatedInbound(recipient_id, f"wamid.{new_token(32)}", at, "OK", choice, quoted=quoted)
        )
    return _post(accepted.account, "messages", {"statuses": [_status(accepted, step, at, recipient_id)]})


def _status(accepted: AcceptedMessage, step: ScriptStep, at: datetime, recipient_id: str) -> dict[str, Any]:
    status: dict[str, Any] = {
        "id": accepted.message_id,
        "status": step.action,
        "timestamp": str(int(at.timestamp())),
        ("recipient_user_id" if _is_user_id(recipient_id) else "recipient_id"): recipient_id,
    }
    if accepted.reference:
        status["biz_opaque_callback_data"] = accepted.reference
    if step.action == "failed":
        words = _ERRORS[step.code][1]
        status["errors"] = [{"code": step.code, "title": words, "message": words, "error_data": {"details": words}}]
    else:
        status["pricing"] = accepted.pricing
        if accepted.pricing == FREE_ENTRY:
            ends = accepted.at + FREE_ENTRY_WINDOW
            origin = {"type": FREE_ENTRY["category"]}
            conversation = {"id": accepted.message_id[-32:], "origin": origin}
            status["conversation"] = conversation | {"expiration_timestamp": str(int(ends.timestamp()))}
    return status


def build_pricing(category: str | None, script: Script) -> Mapping[str, Any]:
    """Each message is charged, also an answer to a customer, unless the customer came by an advertisement."""
    if script.is_free:
        return FREE_ENTRY
    return {"billable": True, "pricing_model": "PMP", "type": "regular", "category": category or "service"}


def build_inbound(account: SandboxAccount, inbound: SimulatedInbound) -> Post:
    """A customer's message; with `is_echo`, one from the company's own phone."""
    ours, contents = account.public["phone_number"].removeprefix("+"), inbound.contents
    if contents.error is not None:
        words = contents.error.message
        error = {"code": contents.error.code, "title": words, "message": words, "error_data": {"details": words}}
        return _post(account, "messages", {"errors": [error]})
    if contents.preference is not None:
        _, contact = _people(inbound)
        ids: dict[str, Any] = {name: contact[name] for name in ("wa_id", "user_id") if name in contact}
        return _post(account, "user_preferences", {"contacts": [contact], **build_preference(inbound, ids)})
    content = build_contents(contents) or _content(inbound)
    message = {
        "id": inbound.message_id,
        "timestamp": str(int(inbound.at.timestamp())),
        **content,
        **build_side_parts(contents),
    }
    if inbound.quoted:
        message["context"] = {**message.get("context", {}), "from": ours, "id": inbound.quoted}
    if inbound.is_echo:
        echo = {"from": ours, "to": inbound.sender.removeprefix("+"), **message}
        return _post(account, "smb_message_echoes", {"message_echoes": [echo]})
    sender, contact = _people(inbound)
    return _post(account, "messages", {"contacts": [contact], "messages": [{**sender, **message}]})


def _people(inbound: SimulatedInbound) -> tuple[dict[str, str], dict[str, Any]]:
    profile = {"profile": {"name": inbound.name or "Sandbox customer"}}
    if _is_user_id(inbound.sender):
        return {"from_user_id": inbound.sender}, {**profile, "user_id": inbound.sender}
    digits = inbound.sender.removeprefix("+")
    return {"from": digits}, {**profile, "wa_id": digits}


def _content(inbound: SimulatedInbound) -> dict[str, Any]:
    if inbound.choice is not None:
        kind, id, title = inbound.choice
        reply = f"{kind}_reply"
        return {"type": "interactive", "interactive": {"type": reply, reply: {"id": id, "title": title}}}
    if inbound.media is not None:
        named = {"filename": f"sandbox.{inbound.media}"} if inbound.media == "document" else {}
        file = {"id": f"media_{inbound.media}", "mime_type": MIME_TYPES[inbound.media], "sha256": "", **named}
        return {
            "type": inbound.media,
            inbound.media: {**file, **({"caption": inbound.text} if inbound.text and inbound.media != "audio" else {})},
        }
    return {"type": "text", "text": {"body": inbound.text or ""}}


def _first_choice(interactive: Mapping[str, Any]) -> tuple[str, str, str] | None:
    action = interactive.get("action") or {}
    if interactive.get("type") == "button":
        reply = action["buttons"][0]["reply"]
        return "button", reply["id"], reply["title"]
    if interactive.get("type") == "list":
        row = action["sections"][0]["rows"][0]
        return "list", row["id"], row["title"]
    return None


def _is_user_id(name: str) -> bool:
    return not name.removeprefix("+").isdigit()


def _post(account: SandboxAccount, field: str, value: dict[str, Any]) -> Post:
    public = account.public
    metadata = {
        "display_phone_number": public["phone_number"].removeprefix("+"),
        "phone_number_id": public["phone_number_id"],
    }
    value = {"messaging_product": "whatsapp", "metadata": metadata, **value}
    entry = {"id": public["waba_id"], "changes": [{"field": field, "value": value}]}
    return sign_post(account, {"object": "whatsapp_business_account", "entry": [entry]})


SIMULATORS = [
    ChannelSimulator(
        source=source,
        get_address=on_loopback("/sandbox/graph/v25.0"),
        build_inbound=build_inbound,
        build_message_id=lambda: f"wamid.{new_token(32)}",
        contents=CONTENTS,
        has_echoes=source is Source.MSGAPP_COEX,
        change_status=number_status.change,
    )
    for source in SOURCES
]
