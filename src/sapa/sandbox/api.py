"""Endpoints that control a test environment. Live keys are refused."""

from sapa.access.types import Scope
from sapa.http.endpoints import Base, Call, Routes, ToolTraits
from sapa.http.query_string import PageQuery
from sapa.http.responses import Page, build_page
from sapa.messaging.channels.interface import Source
from sapa.messaging.connections.types import SimulatorAccount
from sapa.sandbox import actions
from sapa.sandbox.channels import outbox
from sapa.sandbox.channels.environment import build_simulator_account
from sapa.sandbox.types import (
    Clock,
    ClockIn,
    OutboxEntry,
    SandboxInbound,
    SandboxInboundIn,
    SandboxStatus,
    SandboxStatusIn,
    TestKeyRequired,
)

routes = Routes(
    "/sandbox",
    base=Base.MESSAGING,
    tag="Sandbox",
    about="Controls of a test environment: simulated messages, its clock, and what the channels would get.",
)


class OutboxQuery(PageQuery, frozen=True, kw_only=True):
    """Which page of the outbox."""


FOR_TESTS = ToolTraits(is_for_tests=True)


@routes.post("/inbound", scope=Scope.MESSAGES_WRITE, status=200, raises=[TestKeyRequired], tool=FOR_TESTS)
async def simulate_inbound_message(call: Call, body: SandboxInboundIn) -> SandboxInbound:
    """Simulate a message from a customer.

    The channel's simulator sends a callback in the channel's own format, with its signature. It is processed as in
    production: a contact, a message, `message.received`. Send `text`, `button`, `media` (a file can have a text), or
    one of the other contents that the channel has.
    """
    actions.refuse_live(call.company)
    return await actions.simulate_inbound(call.context, call.db, call.company, body)


@routes.post("/channel-status", scope=Scope.MESSAGES_WRITE, status=200, raises=[TestKeyRequired], tool=FOR_TESTS)
async def change_sandbox_channel_status(call: Call, body: SandboxStatusIn) -> SandboxStatus:
    """Change how a channel rates and limits your account.

    The simulator sends the callbacks of the change. The quality is in none of them: as with the real channel it is read
    from the number afterwards. Then `channel.status.updated` is sent.
    """
    actions.refuse_live(call.company)
    return await actions.change_status(call.context, call.db, call.company, body)


@routes.post(
    "/clock/advance",
    scope=Scope.MESSAGES_WRITE,
    status=200,
    raises=[TestKeyRequired],
    tool=ToolTraits(is_for_tests=True, is_destructive=True),
)
async def advance_sandbox_clock(call: Call, body: ClockIn) -> Clock:
    """Move the test environment's clock forward.

    Windows close, delayed callbacks arrive, points expire. `sapa clock reset` sets it back.
    """
    actions.refuse_live(call.company)
    return await actions.advance_clock(call.db, call.company, body.seconds)


@routes.post(
    "/accounts",
    scope=Scope.MESSAGES_WRITE,
    status=200,
    raises=[TestKeyRequired],
    tool=ToolTraits(hidden="It returns credentials."),
)
async def open_sandbox_channel_accounts(call: Call) -> list[SimulatorAccount]:
    """Open the accounts with the channels' simulators.

    With an account's address and token, a program that was made for the channel, such as a WhatsApp library, uses the
    simulator instead. Every call returns the same credentials.
    """
    actions.refuse_live(call.company)
    return [build_simulator_account(call.context, call.company, source) for source in Source]


@routes.get("/outbox", scope=Scope.MESSAGES_READ, raises=[TestKeyRequired], tool=FOR_TESTS)
async def list_sandbox_outbox(call: Call, query: OutboxQuery) -> Page[OutboxEntry]:
    """List the requests to channels, newest first.

    Each entry is the request that the real channel would get, without its token.
    """
    actions.refuse_live(call.company)
    rows, total = await outbox.list_page(call.db, call.company.id, query.limit, query.offset)
    entries = [
        OutboxEntry(row.id, Source(row.source), *(getattr(row, name) for name in row.__struct_fields__[2:]))
        for row in rows
    ]
    return build_page(entries, query.page, query.limit, total)
