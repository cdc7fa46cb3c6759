"""Actions on tickets, except replies."""

from collections.abc import Sequence
from datetime import datetime

from sapa.access.actions import read_clock
from sapa.db.pool import Connection, Tx, notify_after_commit
from sapa.events import emit
from sapa.http.errors import Invalid
from sapa.messaging.tickets import TakenOver, build_tickets_channel
from sapa.support import queries
from sapa.support.actions import find_next_owner
from sapa.support.agents import actions as agents
from sapa.support.mentions import actions as mentions
from sapa.support.presence import actions as presence
from sapa.support.ratings import actions as ratings
from sapa.support.requests import HandoverIn, NoteIn
from sapa.support.response_times import Actor
from sapa.support.rows import LockedTicket
from sapa.support.ticket_change import TicketChange, build_actor
from sapa.support.timeline_entries import record_timeline_entry
from sapa.support.types import (
    NOTE_ID,
    AlreadyAssigned,
    Note,
    Reason,
    Ticket,
    TicketClosed,
    TicketResolved,
    TicketUpdated,
)
from sapa.values.company import Company


async def list_newest_of(db: Connection, company: Company, ids: Sequence[str], limit: int) -> list[Ticket]:
    """Those of the tickets with the newest messages, newest first."""
    return await queries.list_newest_of(db, company.id, ids, limit)


async def assign(tx: Tx, company: Company, id: str, agent_id: int | None, field: str = "agentId") -> Ticket:
    """Assigns to an agent, or with None to nobody. The current owner changes nothing."""
    locked = await _lock_active(tx, company, id)
    agent = None if agent_id is None else await agents.get_next_owner(tx, company, agent_id, field)
    is_ai_readmitted = agent is not None and agent.type == "ai" and locked.ai_paused
    if locked.agent_id == agent_id and not is_ai_readmitted:
        return await queries.get_ticket(tx, company.id, id)
    change = TicketChange(locked)
    change.assign((await read_clock(tx, company.id)).now, agent)
    return await _announce_owner(tx, company, change)


async def take(tx: Tx, company: Company, id: str, agent_id: int) -> Ticket:
    """Assigns an unowned ticket. Of several agents who take it at once, one gets it."""
    locked = await _lock_active(tx, company, id)
    if locked.agent_id not in {None, agent_id}:
        raise AlreadyAssigned
    return await assign(tx, company, id, agent_id)


async def assign_to_free_agent(tx: Tx, company: Company, id: str) -> bool:
    """Assigns a waiting ticket to the agent who is there and has the fewest. False if it is not waiting any more, or
    nobody is there."""
    locked = await queries.lock_ticket(tx, company.id, id)
    if locked.status != "open" or locked.snoozed_until is not None:
        return False
    agent_id = await presence.find_free_agent(tx, company, id)
    if agent_id is None:
        return False
    await assign(tx, company, id, agent_id)
    return True


async def hand_over(tx: Tx, company: Company, id: str, body: HandoverIn) -> Ticket:
    """To an agent or to the queue."""
    locked = await _lock_active(tx, company, id)
    to = None if body.agent_id is None else await agents.get_next_owner(tx, company, body.agent_id)
    if to is not None and to.id == locked.agent_id:
        raise Invalid.field("agentId", "must be another agent: this one owns the ticket already")
    previous_owner = await _find_previous_owner(tx, company, locked, body.from_agent_id)
    change = TicketChange(locked)
    change.hand_over((await read_clock(tx, company.id)).now, previous_owner, to)
    return await _announce_owner(tx, company, change)


async def _find_previous_owner(tx: Tx, company: Company, locked: LockedTicket, agent_id: int | None) -> Actor | None:
    """The owner, unless the request names another agent. An AI agent cannot hand over a ticket that humans have taken
    over."""
    if agent_id is None:
        return build_actor(locked.agent_id, locked.agent_type)
    agent = await agents.get_active_agent(tx, company, agent_id, "fromAgentId")
    if agent.type == "ai" and locked.ai_paused:
        raise TakenOver
    return Actor(agent.id, agent.type)


async def resolve(tx: Tx, company: Company, id: str, agent_id: int | None, *, at: datetime | None = None) -> Ticket:
    """A resolved ticket stays unchanged. `at` is when it was resolved, if that was before now."""
    locked = await queries.lock_ticket(tx, company.id, id)
    resolver = None if agent_id is None else await agents.get_active_agent(tx, company, agent_id)
    if not locked.is_active:
        return await queries.get_ticket(tx, company.id, id)
    if resolver is None:
        return await close(tx, company, locked, None, "api", at=at)
    if resolver.type == "ai" and locked.ai_paused:
        raise TakenOver
    actor = Actor(resolver.id, resolver.type)
    return await close(tx, company, locked, actor, "ai" if resolver.type == "ai" else "manual", at=at)


async def close(
    tx: Tx,
    company: Company,
    locked: LockedTicket,
    resolver: Actor | None,
    reason: Reason,
    *,
    at: datetime | None = None,
) -> Ticket:
    """Resolves a locked ticket."""
    change = TicketChange(locked)
    change.resolve(at or (await read_clock(tx, company.id)).now, resolver, reason)
    ticket = await change.write(tx, company)
    await record_timeline_entry(tx, company, change.locked, "ticket_resolved", at)
    await ratings.ask(tx, company, change.locked)
    await emit(tx, company, TicketClosed(ticket))
    return ticket


async def reopen(tx: Tx, company: Company, id: str) -> Ticket:
    """Reopens a ticket of any age. An active ticket stays unchanged."""
    locked = await queries.lock_ticket(tx, company.id, id)
    if locked.is_active:
        return await queries.get_ticket(tx, company.id, id)
    change = TicketChange(locked)
    change.reopen((await read_clock(tx, company.id)).now, await find_next_owner(tx, company, locked))
    ticket = await change.write(tx, company)
    await record_timeline_entry(tx, company, change.locked, "ticket_reopened")
    await emit(tx, company, TicketUpdated(ticket))
    return ticket


async def add_note(tx: Tx, company: Company, id: str, body: NoteIn, *, at: datetime | None = None) -> Note:
    """Adds an internal note, which no clock measures. `at` is when it was written, if that was before now."""
    await queries.get_ticket(tx, company.id, id)
    agent = await agents.get_active_agent(tx, company, body.agent_id)
    if not body.body.strip() or "\0" in body.body:
        raise Invalid.field("body", "must not be blank or contain a NUL character")
    at = at or (await read_clock(tx, company.id)).now
    await mentions.record(tx, company, id, agent.id, body.body)
    notify_after_commit(tx, build_tickets_channel(company.id))
    return await queries.insert_note(tx, company.id, NOTE_ID.new(), id, agent.id, body.body, at)


async def _lock_active(tx: Tx, company: Company, id: str) -> LockedTicket:
    locked = await queries.lock_ticket(tx, company.id, id)
    if not locked.is_active:
        raise TicketResolved
    return locked


async def _announce_owner(tx: Tx, company: Company, change: TicketChange) -> Ticket:
    ticket = await change.write(tx, company)
    await record_timeline_entry(tx, company, change.locked, "ticket_assigned")
    await emit(tx, company, TicketUpdated(ticket))
    return ticket
