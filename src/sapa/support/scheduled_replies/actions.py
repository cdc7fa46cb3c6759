"""Schedules replies, and sends them when their time has come."""

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial

from sapa.access.actions import read_clock
from sapa.context import AppContext
from sapa.db.pool import Connection, Tx, announce_due, notify_after_commit
from sapa.http import idempotency
from sapa.http.allow_list import AllowList
from sapa.http.errors import ApiError, Invalid, NotFound
from sapa.http.keys import Key
from sapa.http.outbound_call import OutboundCall, Replayed, RequestInfo
from sapa.messaging.tickets import build_tickets_channel
from sapa.support import replies
from sapa.support.agents import actions as agents
from sapa.support.requests import ReplyIn
from sapa.support.scheduled_replies import queries
from sapa.support.scheduled_replies.types import (
    SCHEDULED_REPLY_ID,
    ClaimedReply,
    DueReply,
    ReplyBeingSent,
    ScheduledReply,
    ScheduledReplyIn,
    TooManyScheduledReplies,
)
from sapa.values.company import Company

MAX_OF_TICKET = 20
MAX_TRIES = 10
LATEST = datetime(9999, 1, 1, tzinfo=UTC)
"""Later ones may be in the year 10000 in UTC, which has no `datetime`."""
TRY_SECONDS = 90.0
"""How long one try may take; the next one follows after it."""


async def schedule(tx: Tx, company: Company, ticket_id: str, body: ScheduledReplyIn) -> ScheduledReply:
    await replies.lock_ticket(tx, company, ticket_id)
    agent = await agents.get_active_agent(tx, company, body.agent_id)
    if not body.body.strip():
        raise Invalid.field("body", "must not be blank")
    now = (await read_clock(tx, company.id)).now
    if not now < body.send_at < LATEST:
        raise Invalid.field("sendAt", f"must be in the future, and before {LATEST:%Y}")
    if await queries.count_of_ticket(tx, company.id, ticket_id) >= MAX_OF_TICKET:
        raise TooManyScheduledReplies
    id = SCHEDULED_REPLY_ID.new()
    scheduled = await queries.insert_reply(tx, company.id, id, ticket_id, agent.id, body.body, body.send_at, now)
    announce_due(tx, queries.QUEUE)
    notify_after_commit(tx, build_tickets_channel(company.id))
    return scheduled


async def list_of_ticket(db: Connection, company: Company, ticket_id: str) -> list[ScheduledReply]:
    """The next one first."""
    return await queries.list_of_ticket(db, company.id, ticket_id)


async def list_waiting_tickets(db: Connection, company: Company, ticket_ids: Sequence[str]) -> list[str]:
    """Those of the tickets that have a reply that waits to be sent."""
    return await queries.list_waiting_tickets(db, company.id, ticket_ids)


async def delete(tx: Tx, company: Company, id: str) -> ScheduledReply:
    """One that is not sent, because nobody wants it any more or because it failed."""
    scheduled = await queries.find_locked(tx, company.id, id)
    if scheduled is None:
        raise NotFound
    if scheduled.status == "sending":
        raise ReplyBeingSent
    await queries.delete_reply(tx, company.id, id)
    notify_after_commit(tx, build_tickets_channel(company.id))
    return scheduled


async def move(tx: Tx, company: Company, ticket_id: str, to_ticket_id: str) -> None:
    """When tickets are merged."""
    await queries.move(tx, company.id, ticket_id, to_ticket_id)


async def send(context: AppContext, company: Company, due: DueReply) -> None:
    """As the agent's reply, once: a try after one whose worker died finds that the message is stored."""
    async with context.database.transaction() as tx:
        claimed = await queries.claim(tx, due, TRY_SECONDS)
    if claimed is None:
        return
    call = _build_call(context, company, due)
    try:
        if await call.find_response() is None:
            await replies.reply(call, claimed.ticket_id, ReplyIn(agent_id=claimed.agent_id, body=claimed.body))
    except Replayed:
        pass
    except ApiError as error:
        await call.release()
        await context.database.transact(partial(_record_refusal, due=due, claimed=claimed, error=error))
        return
    await context.database.transact(lambda tx: queries.delete_reply(tx, due.company_id, due.id))


async def _record_refusal(tx: Tx, due: DueReply, claimed: ClaimedReply, error: ApiError) -> None:
    """What is refused for the moment is tried again."""
    if error.status in {429, 503} and claimed.tries < MAX_TRIES:
        await queries.set_scheduled(tx, due)
    else:
        await queries.set_failed(tx, due, error.details[0].message if error.details else error.message)
    notify_after_commit(tx, build_tickets_channel(due.company_id))


def _build_call(context: AppContext, company: Company, due: DueReply) -> OutboundCall:
    key = Key("worker", company, frozenset(), frozenset(), AllowList([]), 0, None, None)
    claim = idempotency.build_claim(company.id, f"scheduled-{due.id}", "scheduled reply", b"")
    return OutboundCall(context, key, RequestInfo("worker", "", "", "", "", "", [], {}, {}, b""), 200, claim)
