"""Simulates TikTok's Business Messaging: every response is a 200 with a code in its body."""

import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from sapa.access.actions import read_clock
from sapa.context import AppContext
from sapa.http.errors import Invalid
from sapa.http.hooks import Hook
from sapa.messaging.channels.interface import Source
from sapa.sandbox.channels import media
from sapa.sandbox.channels.accounts import SandboxAccount, find_account, sign
from sapa.sandbox.channels.files import PATH
from sapa.sandbox.channels.inbound import SimulatedInbound
from sapa.sandbox.channels.scripts import ScriptStep, get_script
from sapa.sandbox.channels.simulator import (
    AcceptedMessage,
    ChannelSimulator,
    Post,
    build_answer,
    build_plain_message_id,
    build_url,
    new_token,
    on_loopback,
    run_script,
)
from sapa.sandbox.external_access import ExternalAccess, RefusedCall
from sapa.sandbox.inbound_contents import SimulatedContents, SimulatedReferral
from sapa.sandbox.types import SandboxInboundIn
from sapa.values.hook_calls import HookAnswer, HookCall

PREFIX = "/sandbox/tiktok/"
_VERSION = "open_api/v1.3/"
_ERRORS: Mapping[int, tuple[int, str]] = {
    190: (40105, "Access token is incorrect or has been revoked."),
    130429: (40100, "Requests made too frequently."),
    131056: (40064, "Sending too fast."),
    131047: (40002, "The messaging window of this conversation is closed."),
    131026: (40002, "The conversation does not exist."),
}
_FILE = "media_image"
MAX_UPLOADED = 3 * 1_048_576
_PICTURES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff")
MAX_BYTES = 4 * 1_048_576
"""Pictures are uploaded here."""


async def answer(context: AppContext, call: HookCall) -> HookAnswer:
    account = _find_caller(context, call)
    path = call.path.removeprefix(PREFIX + _VERSION)
    if path == "tt_user/oauth2/refresh_token/":
        return _fail(40002, "Sandbox tokens do not expire.")
    if account is None:
        return build_error(190)
    match call.method, path:
        case "POST", "business/message/send/":
            return await _accept_message(context, account, call)
        case "POST", "business/message/media/upload/":
            return await _take_file(context, account, call)
        case "POST", "business/message/media/download/":
            return _succeed({"download_url": build_url(context, call, PATH + _FILE)})
        case "GET", "business/get/":
            return _succeed({"username": "sandbox", "display_name": "Sandbox"})
        case "GET", "business/message/capabilities/get/":
            return _succeed({"capability_infos": [{"capability_type": "IMAGE_SEND", "capability_result": True}]})
    return _fail(40002, f"The path {path} does not exist.")


def _find_caller(context: AppContext, call: HookCall) -> SandboxAccount | None:
    return find_account(context, call.headers.get("access-token", ""), "access_token", [Source.SHORT_VIDEO])


def _find_company_id(context: AppContext, call: HookCall) -> int | None:
    account = _find_caller(context, call)
    return account.company_id if account else None


def _refuse(call: HookCall, reason: RefusedCall) -> HookAnswer:
    """Unlike other errors, a missing token is a 401."""
    match reason:
        case "unauthorized":
            return _fail(*_ERRORS[190], 401)
        case "too_many":
            return build_error(130429)
        case "too_large":
            return _fail(40002, "The request is too large.", 413)
        case "malformed":
            return _fail(40002, "The request is malformed.")


async def _accept_message(context: AppContext, account: SandboxAccount, call: HookCall) -> HookAnswer:
    body = msgspec.json.decode(call.body, type=dict[str, Any])
    to, type = str(body.get("recipient") or ""), str(body.get("message_type") or "")
    if not to or body.get("recipient_type") != "CONVERSATION" or type.lower() not in body:
        return _fail(40002, "recipient, recipient_type or message_type is missing or invalid.")
    async with context.database.connection() as db:
        now = (await read_clock(db, account.company_id)).now
    accepted = AcceptedMessage(account, to, new_token(19), now, is_external=call.is_external)
    content = {"type": type.lower(), type.lower(): body[type.lower()]}
    return await run_script(
        context, call, accepted, get_script(to),
        accept=lambda accepted: _succeed({"message": {"message_id": accepted.message_id}}),
        refuse=build_error,
        broken=_fail(50000, "System error.", 500),
        build_callback=lambda accepted, step, at: build_callback(accepted, step, at, content),
    )  # fmt: skip


async def _take_file(context: AppContext, account: SandboxAccount, call: HookCall) -> HookAnswer:
    form = media.parse_form(call)
    file = form.files.get("file")
    is_picture = file is not None and file.content.startswith(_PICTURES) and len(file.content) <= MAX_UPLOADED
    if form.fields.get("media_type") != "IMAGE" or not form.fields.get("business_id") or not is_picture:
        answer = _fail(40002, "business_id, media_type or file is missing or invalid.")
    else:
        answer = _succeed({"media_id": f"{_FILE}_{new_token(8)}"})
    return await media.record(context, account, call, form, answer)


def build_error(code: int) -> HookAnswer:
    return _fail(*_ERRORS.get(code, (40002, "The message could not be sent.")))


def _fail(code: int, words: str, status: int = 200) -> HookAnswer:
    return build_answer({"code": code, "message": words, "request_id": new_token(20), "data": {}}, status)


def _succeed(data: Mapping[str, Any]) -> HookAnswer:
    return build_answer({"code": 0, "message": "OK", "request_id": new_token(20), "data": data})


def build_callback(
    accepted: AcceptedMessage, step: ScriptStep, at: datetime, content: Mapping[str, Any]
) -> Post | None:
    """TikTok reports what was sent and read, not deliveries or failures."""
    account, milliseconds = accepted.account, int(at.timestamp() * 1000)
    match step.action:
        case "sent":
            sent = {"message_id": accepted.message_id, "timestamp": milliseconds, **content}
            return _post(account, "im_send_msg", accepted.to, {**sent, **_people(account, accepted.to, is_ours=True)})
        case "read":
            return _post(account, "im_mark_read_msg", accepted.to, {"read": {"last_read_timestamp": milliseconds}})
        case "reply" | "choice":
            quoted = accepted.message_id if step.quotes else None
            return build_inbound(account, SimulatedInbound(accepted.to, new_token(19), at, "OK", quoted=quoted))
        case _:
            return None


def build_inbound(account: SandboxAccount, inbound: SimulatedInbound) -> Post:
    """TikTok has no buttons: a choice arrives as text."""
    words = inbound.choice[2] if inbound.choice else inbound.text or ""
    content: dict[str, Any] = {"type": "text", "text": {"body": words}}
    if inbound.media is not None:
        content = {"type": "image", "image": {"media_id": _FILE}}
    content = _build_contents(inbound.contents) or content
    if inbound.contents.referral is not None and inbound.text is None:
        return _post_referral(account, inbound, inbound.contents.referral)
    content |= {"message_id": inbound.message_id, "timestamp": int(inbound.at.timestamp() * 1000)}
    if inbound.quoted:
        content["referenced_message_info"] = {"referenced_message_id": inbound.quoted}
    content |= _people(account, inbound.sender, is_ours=inbound.is_echo, name=inbound.name)
    return _post(account, "im_send_msg" if inbound.is_echo else "im_receive_msg", inbound.sender, content)


def _build_contents(contents: SimulatedContents) -> dict[str, Any] | None:
    if contents.share is not None:
        shared = {"embed_url": contents.share.url, **({"item_id": contents.share.id} if contents.share.id else {})}
        return {"type": "share_post", "share_post": shared}
    if contents.reaction is not None:
        emoji, id = contents.reaction.emoji, contents.reaction.message_id
        operation = {"operation": "ADD", "emoji": emoji} if emoji else {"operation": "REMOVE"}
        return {"type": "reaction", "reaction": [{"original_msg_id": id, **operation}]}
    if contents.unknown is not None:
        return {"type": contents.unknown.type, contents.unknown.type: contents.unknown.content}
    return None


def _post_referral(account: SandboxAccount, inbound: SimulatedInbound, referral: SimulatedReferral) -> Post:
    """It comes before the customer writes, and is no message."""
    ad = {"ad_id": referral.source_id, "ad_name": referral.headline, "embed_url": referral.source_url}
    content = {
        "timestamp": int(inbound.at.timestamp() * 1000),
        "referral": {"source": "ad", "ad": {name: value for name, value in ad.items() if value}},
        **_people(account, inbound.sender, is_ours=False, name=inbound.name),
    }
    return _post(account, "im_referral_msg", inbound.sender, content)


def _people(account: SandboxAccount, person: str, is_ours: bool, name: str | None = None) -> dict[str, Any]:
    ours, theirs = ("sandbox", account.public["business_id"]), (name or "customer", f"user_{person}")
    (from_name, from_id), (to_name, to_id) = (ours, theirs) if is_ours else (theirs, ours)
    return {"from": from_name, "to": to_name, "from_user": {"id": from_id}, "to_user": {"id": to_id}}


def _post(account: SandboxAccount, event: str, conversation: str, content: Mapping[str, Any]) -> Post:
    inner = msgspec.json.encode({"conversation_id": conversation, **content}).decode()
    outer = {
        "client_key": account.public.get("client_key", ""),
        "event": event,
        "create_time": int(time.time()),
        "user_openid": account.public["business_id"],
        "content": inner,
    }
    body = msgspec.json.encode(outer)
    at = int(time.time())
    signature = f"t={at},s={sign(account.secrets['app_secret'], f'{at}.'.encode() + body)}"
    return Post({"content-type": "application/json", "tiktok-signature": signature}, body)


def check_inbound(body: SandboxInboundIn) -> None:
    if body.media not in {None, "image"}:
        raise Invalid.field("media", "must be an image on this channel")
    if body.media is not None and body.text is not None:
        raise Invalid.field("text", "must be absent with an image on this channel")
    if body.referral is not None and (body.text is not None or body.media is not None or body.button is not None):
        raise Invalid.field("referral", "must be alone on this channel")


SIMULATORS = [
    ChannelSimulator(
        source=Source.SHORT_VIDEO,
        path=PREFIX + _VERSION.rstrip("/"),
        get_address=on_loopback(PREFIX + _VERSION.rstrip("/")),
        build_inbound=build_inbound,
        build_message_id=build_plain_message_id,
        contents=frozenset({"share", "reaction", "referral", "unknown"}),
        has_lone_referrals=True,
        has_echoes=True,
        check_inbound=check_inbound,
        hooks=[Hook(PREFIX, answer)],
        access=[
            ExternalAccess(
                prefix=PREFIX, serve=answer, find_company_id=_find_company_id, refuse=_refuse, max_bytes=MAX_BYTES
            )
        ],
    )
]
