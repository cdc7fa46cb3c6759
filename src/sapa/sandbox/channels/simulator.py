"""What all channel simulators share: they record a message, respond by the recipient's script, and schedule
callbacks."""

import asyncio
import base64
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import msgspec
from msgspec import Struct

from sapa.context import AppContext
from sapa.db.pool import Tx
from sapa.http.hooks import Hook
from sapa.messaging.channels.interface import Source
from sapa.sandbox.channels import outbox, people, queries
from sapa.sandbox.channels.accounts import SandboxAccount
from sapa.sandbox.channels.inbound import SimulatedInbound
from sapa.sandbox.channels.scripts import COUNTED, REPLIES, Script, ScriptStep, get_script_name
from sapa.sandbox.external_access import ExternalAccess
from sapa.sandbox.types import PlannedCallback, SandboxInboundIn, SandboxStatusIn
from sapa.values.hook_calls import HookAnswer, HookCall

HANG_SECONDS = 25.0


class Post(Struct, frozen=True):
    """A callback as the channel would send it."""

    headers: dict[str, str]
    body: bytes


class AcceptedMessage(Struct, frozen=True):
    """A message that a simulator received."""

    account: SandboxAccount
    to: str
    message_id: str
    """The simulator's id of the message."""
    at: datetime
    reference: str | None = None
    is_template: bool = False
    choice: tuple[str, str, str] | None = None
    """The first choice of the message: its kind (button or list), id and title."""
    pricing: Mapping[str, Any] | None = None
    """How the channel charges for it, in the channel's format."""
    is_external: bool = False
    """A program outside sent it: Sapa does not know the message, and gets no reports on it."""


class ChannelSimulator(Struct, frozen=True, kw_only=True):
    """The simulator of one channel: where it listens, and how it builds callbacks."""

    source: Source
    path: str | None
    """Where it is at the installation's address; None if it is no HTTP server."""
    get_address: Callable[[AppContext], Awaitable[str]]
    """Where Sapa calls it."""
    build_inbound: Callable[[SandboxAccount, SimulatedInbound], Post]
    build_message_id: Callable[[], str]
    contents: frozenset[str] = frozenset()
    """The fields of `SimulatedContents` that it can make."""
    has_lone_referrals: bool = False
    """Whether it reports that somebody came by an ad before they write."""
    has_echoes: bool = False
    """Whether it sends echoes of what the company wrote elsewhere."""
    check_inbound: Callable[[SandboxInboundIn], None] = lambda body: None
    """Raises Invalid for what this channel cannot receive."""
    hooks: Sequence[Hook[AppContext]] = ()
    """The paths that it alone serves."""
    access: Sequence[ExternalAccess] = ()
    """The same for callers from outside."""
    change_status: Callable[[Tx, SandboxAccount, SandboxStatusIn, datetime], Awaitable[list[Post]]] | None = None
    """Changes how the channel rates and limits the account, and returns its callbacks; None if it does neither."""


def on_loopback(path: str) -> Callable[[AppContext], Awaitable[str]]:
    """On this process's loopback address, whatever the channel's real address is."""

    async def get_address(context: AppContext) -> str:
        return await context.loopback.address() + path

    return get_address


def build_plain_message_id() -> str:
    return f"m_{new_token(30)}"


BuildCallback = Callable[[AcceptedMessage, ScriptStep, datetime], Post | None]
"""Builds the callback of a step; None if the channel reports nothing for it."""


def build_url(context: AppContext, call: HookCall, path: str) -> str:
    """An address of this simulator that the caller can use."""
    if call.is_external:
        return context.settings.server.address + path
    return f"http://{call.headers.get('host', '')}{path}"


def build_answer(value: Any, status: int = 200) -> HookAnswer:
    return HookAnswer(status, msgspec.json.encode(value))


def new_token(length: int = 24) -> str:
    return base64.urlsafe_b64encode(uuid4().bytes + uuid4().bytes).decode()[:length]


async def _count_and_decide_refusal(tx: Tx, script: Script, accepted: AcceptedMessage) -> bool:
    """Whether this message is refused at once. Some scripts refuse by the number of messages so far."""
    match script.refuses:
        case "all":
            return True
        case "templates":
            return accepted.is_template
        case "free":
            return not accepted.is_template
        case _:
            account, to = accepted.account, accepted.to
            name = f"{account.source}/{get_script_name(to)}/{to}"
            return await queries.count_occurrence(tx, account.company_id, name) % 3 != 0


async def run_script(
    context: AppContext,
    call: HookCall,
    accepted: AcceptedMessage,
    script: Script,
    accept: Callable[[AcceptedMessage], HookAnswer],
    refuse: Callable[[int], HookAnswer],
    broken: HookAnswer,
    build_callback: BuildCallback,
) -> HookAnswer:
    """Everything is stored before the response; a script that hangs sends no response in time."""
    account, database = accepted.account, context.database
    stores_more = script.refuses == COUNTED or any(step.action in REPLIES for step in script.steps)
    planned: list[PlannedCallback] = []
    async with database.transaction() if stores_more else database.statement() as tx:
        if script.is_broken:
            response = broken
        elif script.refusal and await _count_and_decide_refusal(tx, script, accepted):
            response = refuse(script.refusal)
        else:
            response = accept(accepted)
            planned = await _plan_callbacks(tx, accepted, script.steps, build_callback)
        await outbox.record_with_callbacks(tx, account, call, response, planned)
    if script.hangs:
        await asyncio.sleep(HANG_SECONDS)
    return response


async def _plan_callbacks(
    tx: Tx, accepted: AcceptedMessage, steps: Sequence[ScriptStep], build_callback: BuildCallback
) -> list[PlannedCallback]:
    account = accepted.account
    planned = []
    for step in steps:
        at, is_reply = accepted.at + timedelta(seconds=step.after), step.action in REPLIES
        post = build_callback(accepted, step, at)
        if post is None:
            continue
        if is_reply:
            await people.record_inbound(tx, account.company_id, account.source, accepted.to, at)
        is_own = is_reply or not accepted.is_external
        planned.append(PlannedCallback(post.headers, post.body, step.after, is_own))
    return planned
