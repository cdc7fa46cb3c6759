"""Simulates the WhatsApp Cloud API: responses, errors and callbacks."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec

from sapa.access.actions import read_clock
from sapa.context import AppContext
from sapa.db.pool import Connection
from sapa.messaging.channels.interface import Source
from sapa.sandbox.channels import limits, number_status, outbox, refusals, templates
from sapa.sandbox.channels.accounts import SandboxAccount
from sapa.sandbox.channels.files import MIME_TYPES
from sapa.sandbox.channels.graph_errors import GraphRefusal, build_refusal
from sapa.sandbox.channels.graph_posts import sign_post
from sapa.sandbox.channels.inbound import SimulatedInbound
from sapa.sandbox.channels.message_checks import check_read_mark, find_late_failure, find_mistake, get_type
from sapa.sandbox.channels.people import build_user_id, get_number, is_user_id
from sapa.sandbox.channels.scripts import SENT, Script, ScriptStep, get_script
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
from sapa.sandbox.channels.whatsapp_files import find_wrong_file
from sapa.values.hook_calls import HookAnswer, HookCall

SOURCES = (Source.MSGAPP_CLOUD, Source.MSGAPP_COEX)
FREE_ENTRY: Mapping[str, Any] = {
    "billable": False, "pricing_model": "PMP", "type": "free_entry_point", "category": "referral_conversion",
}  # fmt: skip
FREE_ENTRY_WINDOW = timedelta(hours=72)


async def accept_message(context: AppContext, account: SandboxAccount, call: HookCall) -> HookAnswer:
    """POST /{phone_number_id}/messages"""
    body = msgspec.json.decode(call.body, type=dict[str, Any])
    if body.get("status") == "read":
        refusal = check_read_mark(body)
        return await _record(context, account, call, _answer(refusal) or build_answer({"success": True}))
    if refusal := await _find_refusal(context, account, call, body):
        return await _record(context, account, call, build_refusal(refusal))
    to = _get_recipient(body)
    async with context.database.connection() as db:
        now = (await read_clock(db, account.company_id)).now
        script = await _choose_script(db, account, call, body, now)
        is_template = get_type(body) == "template"
        category = await templates.find_category(db, account, body["template"]) if is_template else None
    accepted = AcceptedMessage(
        account, to, f"wamid.{new_token(32)}", now,
        reference=body.get("biz_opaque_callback_data"),
        is_template=is_template,
        choice=_first_choice(body.get("interactive") or {}),
        is_external=call.is_external,
        pricing=build_pricing(category, script),
    )  # fmt: skip
    recipient_id = script.alias or get_number(to)
    return await run_script(
        context, call, accepted, script,
        accept=lambda accepted: _accept(accepted, recipient_id),
        refuse=build_error,
        broken=build_error(131000),
        build_callback=lambda accepted, step, at: build_callback(accepted, step, at, recipient_id),
    )  # fmt: skip


async def _find_refusal(
    context: AppContext, account: SandboxAccount, call: HookCall, body: dict[str, Any]
) -> GraphRefusal | None:
    """Why the message is refused at once; None if it is accepted, or its recipient's script decides."""
    if refusal := find_mistake(account.public["phone_number"], body):
        return refusal
    if get_type(body) == "template":
        refusal = await templates.find_refusal(context, account, body["template"], is_to_user_id=body.get("to") is None)
        if refusal is not None:
            return refusal
    if refusal := await find_wrong_file(context, account, body):
        return refusal
    return await limits.count_turn(context, account, _get_recipient(body)) if call.is_external else None


async def _choose_script(
    db: Connection, account: SandboxAccount, call: HookCall, body: dict[str, Any], now: datetime
) -> Script:
    """The recipient's, unless the message fails after it was accepted."""
    to = _get_recipient(body)
    if get_type(body) == "reaction":  # Sapa keeps no message for it that could be reported on
        return Script((SENT,) if call.is_external else ())
    if failure := find_late_failure(body):
        return Script([ScriptStep(1, "failed", failure[0], details=failure[1])])
    is_free_form = call.is_external and get_type(body) != "template"
    if is_free_form and not await limits.is_window_open(db, account, to, now):
        return Script([ScriptStep(1, "failed", 131047)])
    return get_script(get_number(to))


def _get_recipient(body: Mapping[str, Any]) -> str:
    return str(body.get("to") or body.get("recipient") or "").removeprefix("+")


async def _record(context: AppContext, account: SandboxAccount, call: HookCall, answer: HookAnswer) -> HookAnswer:
    """What no recipient's script decides."""
    async with context.database.transaction() as tx:
        await outbox.record(tx, account.company_id, account.source, call, answer)
    return answer


def _answer(refusal: GraphRefusal | None) -> HookAnswer | None:
    return None if refusal is None else build_refusal(refusal)


def build_error(code: int) -> HookAnswer:
    return build_refusal(refusals.build_error(code))


def _accept(accepted: AcceptedMessage, recipient_id: str) -> HookAnswer:
    contact = {"input": accepted.to, ("user_id" if is_user_id(recipient_id) else "wa_id"): recipient_id}
    message = {"id": accepted.message_id, **({"message_status": "accepted"} if accepted.is_template else {})}
    return build_answer({"messaging_product": "whatsapp", "contacts": [contact], "messages": [message]})


def build_callback(accepted: AcceptedMessage, step: ScriptStep, at: datetime, recipient_id: str) -> Post | None:
    if step.action in {"reply", "choice"}:
        quoted = accepted.message_id if step.quotes else None
        choice = accepted.choice if step.action == "choice" else None
        return build_inbound(
            accepted.account, SimulatedInbound(recipient_id, f"wamid.{new_token(32)}", at, "OK", choice, quoted=quoted)
        )
    statuses = [_status(accepted, step, at, recipient_id)]
    return _post(accepted.account, "messages", {"contacts": [_contact(recipient_id)], "statuses": statuses})


def _status(accepted: AcceptedMessage, step: ScriptStep, at: datetime, recipient_id: str) -> dict[str, Any]:
    status: dict[str, Any] = {
        "id": accepted.message_id,
        "status": step.action,
        "timestamp": str(int(at.timestamp())),
        **_name_person(recipient_id, "recipient_id", "recipient_user_id"),
    }
    if accepted.reference:
        status["biz_opaque_callback_data"] = accepted.reference
    if step.action == "failed":
        status["errors"] = [_build_failure(step)]
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
    sender, contact = _people(inbound)
    if contents.preference is not None:
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
        echo = {"from": ours, **_name_person(inbound.sender, "to", "to_user_id"), **message}
        return _post(account, "smb_message_echoes", {"contacts": [contact], "message_echoes": [echo]})
    return _post(account, "messages", {"contacts": [contact], "messages": [{**sender, **message}]})


def _people(inbound: SimulatedInbound) -> tuple[dict[str, str], dict[str, Any]]:
    """The sender's ids in the message, and their contact."""
    return _name_person(inbound.sender, "from", "from_user_id"), _contact(inbound.sender, inbound.name)


def _build_failure(step: ScriptStep) -> dict[str, Any]:
    error = refusals.get_error(step.code)
    details = step.details or error.details or error.message
    return {
        "code": step.code,
        "title": error.message,
        "message": error.message,
        "error_data": {"details": details},
        "href": "https://developers.facebook.com/docs/whatsapp/cloud-api/support/error-codes/",
    }


def _contact(person: str, name: str | None = None) -> dict[str, Any]:
    return {"profile": {"name": name or "Sandbox customer"}, **_name_person(person, "wa_id", "user_id")}


def _name_person(person: str, number: str, user_id: str) -> dict[str, str]:
    """By the number and the user id; people who hide their number have the latter only."""
    if is_user_id(person):
        return {user_id: person}
    return {number: person.removeprefix("+"), user_id: build_user_id(person)}


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
        path="/sandbox/graph/v25.0",
        get_address=on_loopback("/sandbox/graph/v25.0"),
        build_inbound=build_inbound,
        build_message_id=lambda: f"wamid.{new_token(32)}",
        contents=CONTENTS,
        has_echoes=source is Source.MSGAPP_COEX,
        change_status=number_status.change,
    )
    for source in SOURCES
]
