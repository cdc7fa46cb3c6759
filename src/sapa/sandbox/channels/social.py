"""Simulates Messenger and Instagram: one Send API, with the reports of each."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from sapa.access.actions import read_clock
from sapa.context import AppContext
from sapa.messaging.channels.interface import Source
from sapa.sandbox.channels import media, outbox
from sapa.sandbox.channels.accounts import SandboxAccount
from sapa.sandbox.channels.files import ADDRESS
from sapa.sandbox.channels.graph_posts import sign_post
from sapa.sandbox.channels.inbound import SimulatedInbound
from sapa.sandbox.channels.media import UploadForm
from sapa.sandbox.channels.scripts import ScriptStep, get_script
from sapa.sandbox.channels.simulator import (
    AcceptedMessage,
    ChannelSimulator,
    Post,
    build_answer,
    build_plain_message_id,
    new_token,
    on_loopback,
    run_script,
)
from sapa.sandbox.channels.social_contents import CONTENTS, build_event, build_referral, list_attachments
from sapa.values.hook_calls import HookAnswer, HookCall

MAX_UPLOADED = 25 * 1_048_576
LONGEST_TEXT: Mapping[Source, int] = {Source.SOCIAL_NETWORK: 2000, Source.PHOTO_SOCIAL: 1000}
LONGEST_TEMPLATE_TEXT = 640
MAX_QUICK_REPLIES = 13
SENDER_ACTIONS = frozenset({"mark_seen", "typing_on", "typing_off", "react", "unreact"})

_UPLOAD_FAILED = 2018047
_NO_USER = (400, 100, 2018001, "(#100) No matching user found")
_ERRORS: Mapping[int, tuple[int, int, int, str]] = {
    190: (401, 190, 460, "Error validating access token: the session has been invalidated"),
    130429: (429, 613, 0, "(#613) Calls to this api have exceeded the rate limit."),
    131056: (429, 613, 0, "(#613) Calls to this api have exceeded the rate limit."),
    131047: (400, 10, 2018278, "(#10) This message is sent outside of allowed window."),
    131026: (400, 551, 1545041, "(#551) This person isn't available right now."),
    132000: (400, 100, 0, "(#100) Invalid parameter"),
    132001: (400, 100, 0, "(#100) Invalid parameter"),
}


async def accept_message(context: AppContext, account: SandboxAccount, call: HookCall) -> HookAnswer:
    """POST /{page or account}/messages"""
    body = msgspec.json.decode(call.body, type=dict[str, Any])
    to, message = str((body.get("recipient") or {}).get("id") or ""), body.get("message") or {}
    if to and body.get("sender_action") in SENDER_ACTIONS:
        return await _record(context, account, call, build_answer({"recipient_id": to}))
    if not to or not message:
        return build_answer({"error": _error(100, 0, "(#100) The parameter recipient is required")}, 400)
    payload = (message.get("attachment") or {}).get("payload") or {}
    if too_long := _find_too_long(account, message, payload):
        return await _record(context, account, call, _refuse(too_long))
    attachment_id = payload.get("attachment_id")
    if attachment_id is not None and await media.find(context, account, str(attachment_id)) is None:
        return _refuse("(#100) Invalid attachment id")
    async with context.database.connection() as db:
        now = (await read_clock(db, account.company_id)).now
    accepted = AcceptedMessage(
        account, to, f"m_{new_token(40)}", now,
        reference=message.get("metadata"), choice=_first_choice(message), is_external=call.is_external,
    )  # fmt: skip
    return await run_script(
        context, call, accepted, get_script(to),
        accept=lambda accepted: build_answer({"recipient_id": accepted.to, "message_id": accepted.message_id}),
        refuse=build_error,
        broken=build_answer({"error": _error(2, 0, "An unexpected error has occurred.")}, 500),
        build_callback=lambda accepted, step, at: build_callback(accepted, step, at, message),
    )  # fmt: skip


def _find_too_long(account: SandboxAccount, message: Mapping[str, Any], payload: Mapping[str, Any]) -> str | None:
    lengths = (
        ("message[text]", message.get("text"), LONGEST_TEXT[account.source]),
        ("message[quick_replies]", message.get("quick_replies"), MAX_QUICK_REPLIES),
        ("message[attachment][payload][text]", payload.get("text"), LONGEST_TEMPLATE_TEXT),
    )
    for name, value, most in lengths:
        if len(value or ()) > most:
            return f"(#100) Length of param {name} must be less than or equal to {most}"
    return None


async def _record(context: AppContext, account: SandboxAccount, call: HookCall, answer: HookAnswer) -> HookAnswer:
    """A reaction, a read mark or typing, or what is refused: nothing follows."""
    async with context.database.transaction() as tx:
        await outbox.record(tx, account.company_id, account.source, call, answer)
    return answer


async def accept_file(context: AppContext, account: SandboxAccount, call: HookCall) -> HookAnswer:
    """POST /{page or account}/message_attachments"""
    form = media.parse_form(call)
    answer = await _store_file(context, account, form)
    return await media.record(context, account, call, form, answer)


async def _store_file(context: AppContext, account: SandboxAccount, form: UploadForm) -> HookAnswer:
    if account.source is Source.PHOTO_SOCIAL and form.fields.get("platform") != "instagram":
        return _refuse("(#100) The parameter platform is required")
    message, file = msgspec.json.decode(form.fields.get("message") or b"{}"), form.files.get("filedata")
    attachment = message.get("attachment") or {}
    if attachment.get("type") not in {"image", "video", "audio", "file"} or file is None:
        return _refuse("(#100) The parameter message is required")
    kind = file.media_type.partition("/")[0]
    is_accepted = attachment["type"] in {"file", kind} and file.filename.isascii()
    if not is_accepted or not 0 < len(file.content) <= MAX_UPLOADED:
        return _refuse("(#100) Upload attachment failure.", _UPLOAD_FAILED)
    return build_answer({"attachment_id": await media.store(context, account, file.media_type, file.content)})


def _refuse(words: str, subcode: int = 0) -> HookAnswer:
    return build_answer({"error": _error(100, subcode, words)}, 400)


def build_error(code: int) -> HookAnswer:
    status, own_code, subcode, words = _ERRORS.get(code, _NO_USER)
    return build_answer({"error": _error(own_code, subcode, words)}, status)


def _error(code: int, subcode: int, words: str) -> dict[str, Any]:
    error = {"message": words, "type": "OAuthException", "code": code, "fbtrace_id": new_token(11)}
    return {**error, "error_subcode": subcode} if subcode else error


def build_callback(
    accepted: AcceptedMessage, step: ScriptStep, at: datetime, message: Mapping[str, Any]
) -> Post | None:
    """Neither channel reports failures later, and only Messenger reports deliveries."""
    account, milliseconds = accepted.account, int(at.timestamp() * 1000)
    match step.action:
        case "sent":
            echo = {"mid": accepted.message_id, "is_echo": True, "app_id": 1, **_echoed(message)}
            return _post(account, [_event(account, accepted.to, at, {"message": echo}, is_ours=True)])
        case "delivered" if account.source is Source.SOCIAL_NETWORK:
            delivery = {"mids": [accepted.message_id], "watermark": milliseconds}
            return _post(account, [_event(account, accepted.to, at, {"delivery": delivery})])
        case "read":
            is_page = account.source is Source.SOCIAL_NETWORK
            read = {"watermark": milliseconds} if is_page else {"mid": accepted.message_id}
            return _post(account, [_event(account, accepted.to, at, {"read": read})])
        case "reply" | "choice":
            quoted = accepted.message_id if step.quotes else None
            choice = accepted.choice if step.action == "choice" else None
            return build_inbound(
                account, SimulatedInbound(accepted.to, f"m_{new_token(40)}", at, "OK", choice, quoted=quoted)
            )
        case _:
            return None


def _echoed(message: Mapping[str, Any]) -> dict[str, Any]:
    echoed = {name: message[name] for name in ("text", "metadata") if name in message}
    return {**echoed, "attachments": [message["attachment"]]} if "attachment" in message else echoed


def build_inbound(account: SandboxAccount, inbound: SimulatedInbound) -> Post:
    if (event := build_event(inbound)) is not None:
        return _post(account, [_event(account, inbound.sender, inbound.at, event, is_ours=inbound.is_echo)])
    message: dict[str, Any] = {"mid": inbound.message_id}
    if attachments := list_attachments(account.source, inbound):
        message["attachments"] = attachments
    if inbound.contents.referral is not None:
        message["referral"] = build_referral(inbound.contents.referral)
    if inbound.text is not None:
        message["text"] = inbound.text
    if inbound.choice is not None:
        message |= {"text": inbound.choice[2], "quick_reply": {"payload": inbound.choice[1]}}
    if inbound.media is not None:
        type = "file" if inbound.media == "document" else inbound.media
        message["attachments"] = [{"type": type, "payload": {"url": f"{ADDRESS}media_{inbound.media}"}}]
    if inbound.quoted:
        message["reply_to"] = {"mid": inbound.quoted}
    if (story := inbound.contents.story) is not None:
        message["reply_to"] = {"story": {"id": story.id, "url": story.url}}
    if inbound.is_echo:
        message["is_echo"] = True
    return _post(account, [_event(account, inbound.sender, inbound.at, {"message": message}, is_ours=inbound.is_echo)])


def _first_choice(message: Mapping[str, Any]) -> tuple[str, str, str] | None:
    first = next(iter(message.get("quick_replies") or ()), None)
    return ("button", first["payload"], first["title"]) if first else None


def _event(
    account: SandboxAccount, person: str, at: datetime, content: Mapping[str, Any], is_ours: bool = False
) -> dict[str, Any]:
    ours = {"id": _own_id(account)}
    sender, recipient = (ours, {"id": person}) if is_ours else ({"id": person}, ours)
    return {"sender": sender, "recipient": recipient, "timestamp": int(at.timestamp() * 1000), **content}


def _own_id(account: SandboxAccount) -> str:
    return account.public["page_id" if account.source is Source.SOCIAL_NETWORK else "instagram_id"]


def _post(account: SandboxAccount, events: list[dict[str, Any]]) -> Post:
    is_page = account.source is Source.SOCIAL_NETWORK
    entry = {"id": _own_id(account), "time": events[0]["timestamp"], "messaging": events}
    return sign_post(account, {"object": "page" if is_page else "instagram", "entry": [entry]})


def build_simulator(source: Source, path: str) -> ChannelSimulator:
    return ChannelSimulator(
        source=source,
        path=path,
        get_address=on_loopback(path),
        build_inbound=build_inbound,
        build_message_id=build_plain_message_id,
        contents=CONTENTS[source],
        has_lone_referrals=source is Source.SOCIAL_NETWORK,
        has_echoes=True,
    )
