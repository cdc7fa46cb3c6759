"""Simulates visitors of the web chat without a page, `sim_…`; real pages of a test environment are served as usual."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from sapa.access.actions import read_clock
from sapa.context import AppContext
from sapa.http.errors import Invalid
from sapa.http.hooks import Hook
from sapa.messaging.channels.interface import Interaction, Source
from sapa.messaging.channels.widget import calls
from sapa.messaging.channels.widget.calls import SimulatedMessage, SimulatedStatus
from sapa.sandbox.channels.accounts import SandboxAccount, find_account
from sapa.sandbox.channels.inbound import SimulatedInbound
from sapa.sandbox.channels.scripts import Script, ScriptStep, get_script
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
from sapa.sandbox.external_access import ExternalAccess, RefusedCall
from sapa.sandbox.types import SandboxInboundIn
from sapa.values.hook_calls import HookAnswer, HookCall

PREFIX = "/sandbox/widget/"

_ERRORS: Mapping[int, tuple[int, str, str]] = {
    190: (401, "secret_revoked", "The secret was revoked."),
    130429: (429, calls.TOO_FAST, "Too many messages; try again in a moment."),
    131056: (429, "too_many", "Too many messages to this visitor; try again in a moment."),
    40064: (429, "too_many", "Too many messages to this visitor."),
}
_NO_VISITOR = (404, "unknown_visitor", "No visitor has this id.")


async def answer(context: AppContext, call: HookCall) -> HookAnswer:
    """POST /sandbox/widget/messages"""
    account = _find_caller(context, call)
    if account is None:
        return _refuse(call, "unauthorized")
    delivery = msgspec.json.decode(call.body, type=calls.WidgetDelivery)
    async with context.database.connection() as db:
        now = (await read_clock(db, account.company_id)).now
    message_id = f"{delivery.visitor_id}.{new_token(16)}"
    choice = _first_choice(delivery)
    accepted = AcceptedMessage(
        account, delivery.visitor_id, message_id, now,
        reference=delivery.reference, choice=choice, is_external=call.is_external,
    )  # fmt: skip
    return await run_script(
        context, call, accepted, _get_script(delivery.visitor_id),
        accept=lambda accepted: build_answer({"messageId": accepted.message_id}),
        refuse=build_error,
        broken=_build_failure(500, "broken", "Something went wrong."),
        build_callback=build_callback,
    )  # fmt: skip


def _find_caller(context: AppContext, call: HookCall) -> SandboxAccount | None:
    secret = call.headers.get("authorization", "").removeprefix("Bearer ")
    return find_account(context, secret, "secret", [Source.WIDGET])


def _find_company_id(context: AppContext, call: HookCall) -> int | None:
    account = _find_caller(context, call)
    return account.company_id if account else None


def _refuse(call: HookCall, reason: RefusedCall) -> HookAnswer:
    match reason:
        case "unauthorized":
            return _build_failure(401, reason, "The secret is invalid.")
        case "too_many":
            return build_error(130429)
        case "too_large":
            return _build_failure(413, reason, "The message is too large.")
        case "malformed":
            return _build_failure(400, reason, "The message cannot be read.")


def _get_script(visitor_id: str) -> Script:
    """The web chat has no window that could be closed."""
    script = get_script(visitor_id)
    return Script(script.steps) if script.refuses == "free" else script


def build_error(code: int) -> HookAnswer:
    return _build_failure(*_ERRORS.get(code, _NO_VISITOR))


def _build_failure(status: int, code: str, words: str) -> HookAnswer:
    return build_answer({"error": {"code": code, "message": words}}, status)


def build_callback(accepted: AcceptedMessage, step: ScriptStep, at: datetime) -> Post | None:
    """A page reports deliveries and reads, never that a message was sent or failed."""
    match step.action:
        case "delivered" | "read":
            status = SimulatedStatus(step.action, accepted.message_id, at, accepted.reference)
            return _post(accepted.account, status)
        case "reply" | "choice":
            quoted = accepted.message_id if step.quotes else None
            choice = accepted.choice if step.action == "choice" else None
            return build_inbound(
                accepted.account, SimulatedInbound(accepted.to, _new_id(accepted.to), at, "OK", choice, quoted=quoted)
            )
        case _:
            return None


def build_inbound(account: SandboxAccount, inbound: SimulatedInbound) -> Post:
    choice = None if inbound.choice is None else Interaction(*inbound.choice)  # type: ignore[arg-type]
    text = inbound.text or "" if choice is None else choice.title
    message = SimulatedMessage(
        inbound.message_id, inbound.sender, inbound.at, text, choice, inbound.quoted, inbound.name
    )
    return _post(account, message)


def _post(account: SandboxAccount, event: SimulatedStatus | SimulatedMessage) -> Post:
    return Post(*calls.build_callback(account.secrets["secret"], [event]))


def _new_id(visitor_id: str) -> str:
    return f"{visitor_id}.{new_token(16)}"


def _first_choice(delivery: calls.WidgetDelivery) -> tuple[str, str, str] | None:
    shown = delivery.content
    rows: list[tuple[str, Any]] = [("button", button) for button in shown.buttons]
    rows += [("list", row) for section in shown.sections for row in section.rows]
    return next(((kind, row.id, row.title) for kind, row in rows), None)


def check_inbound(body: SandboxInboundIn) -> None:
    if body.media is not None:
        raise Invalid.field("media", "must be absent: visitors of the web chat cannot send files")


SIMULATORS = [
    ChannelSimulator(
        source=Source.WIDGET,
        path="/sandbox/widget",
        get_address=on_loopback("/sandbox/widget"),
        build_inbound=build_inbound,
        build_message_id=build_plain_message_id,
        check_inbound=check_inbound,
        hooks=[Hook(PREFIX, answer)],
        access=[ExternalAccess(prefix=PREFIX, serve=answer, find_company_id=_find_company_id, refuse=_refuse)],
    )
]
