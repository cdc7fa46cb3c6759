"""What agents and callers do with tickets, besides answering."""

from sapa.db.pool import Tx, notify_after_commit
from sapa.events import emit
from sapa.http.errors import Invalid
from sapa.messaging.tickets import TakenOver, build_bell
from sapa.support import queries
from sapa.support.actions import find_next_owner
from sapa.support.agents import actions as agents
from sapa.support.response_times import Actor
from sapa.support.ticket_change import TicketChange, find_doer
from sapa.support.timeline_entries import tell
from sapa.support.types import (
    NOTE_ID,
    HandoverIn,
    LockedTicket,
    Note,
    NoteIn,
    Reason,
    Ticket,
    TicketClosed,
    TicketResolved,
    TicketUpdated,
)
from sapa.values.company import Company


async def assign(tx: Tx, company: Company, id: str, agent_id: int | None) -> Ticket:
    """To an agent, or with None to nobody. What it is already changes nothing."""
    held = await _lock_active(tx, company, id)
    agent = None if agent_id is None else await agents.get_able(tx, company, agent_id)
    is_let_in = agent is not None and agent.type == "ai" and held.ai_paused
    if held.agent_id == agent_id and not is_let_in:
        return await queries.get_ticket(tx, company.id, id)
    chapter = TicketChange(held)
    chapter.assign(await queries.read_now(tx, company.id), agent)
    return await _announce_owner(tx, company, chapter)


async def hand_over(tx: Tx, company: Company, id: str, given: HandoverIn) -> Ticket:
    """To an agent or to the queue."""
    held = await _lock_active(tx, company, id)
    to = None if given.agent_id is None else await agents.get_able(tx, company, given.agent_id)
    if to is not None and to.id == held.agent_id:
        raise Invalid.field("agentId", "names the agent who has the ticket already")
    giver = await _find_giver(tx, company, held, given.from_agent_id)
    chapter = TicketChange(held)
    chapter.hand_over(await queries.read_now(tx, company.id), giver, to)
    return await _announce_owner(tx, company, chapter)


async def _find_giver(tx: Tx, company: Company, held: LockedTicket, agent_id: int | None) -> Actor | None:
    """Its owner, unless another one says so: an AI agent has nothing to give any more once people have taken over."""
    if agent_id is None:
        return find_doer(held.agent_id, held.agent_type)
    agent = await agents.get_able(tx, company, agent_id, "fromAgentId")
    if agent.type == "ai" and held.ai_paused:
        raise TakenOver
    return Actor(agent.id, agent.type)


async def resolve(tx: Tx, company: Company, id: str, agent_id: int | None) -> Ticket:
    """What is resolved already stays as it is."""
    held = await queries.lock_ticket(tx, company.id, id)
    resolver = None if agent_id is None else await agents.get_able(tx, company, agent_id)
    if not held.is_active:
        return await queries.get_ticket(tx, company.id, id)
    if resolver is None:
        return await close(tx, company, held, None, "api")
    if resolver.type == "ai" and held.ai_paused:
        raise TakenOver
    doer = Actor(resolver.id, resolver.type)
    return await close(tx, company, held, doer, "ai" if resolver.type == "ai" else "manual")


async def close(tx: Tx, company: Company, held: LockedTicket, resolver: Actor | None, reason: Reason) -> Ticket:
    """Resolves a ticket that is locked."""
    chapter = TicketChange(held)
    chapter.resolve(await queries.read_now(tx, company.id), resolver, reason)
    ticket = await chapter.write(tx, company)
    await tell(tx, company, chapter.held, "ticket_resolved")
    await emit(tx, company, TicketClosed(ticket))
    return ticket


async def reopen(tx: Tx, company: Company, id: str) -> Ticket:
    """Whatever its age. What is not resolved stays as it is."""
    held = await queries.lock_ticket(tx, company.id, id)
    if held.is_active:
        return await queries.get_ticket(tx, company.id, id)
    chapter = TicketChange(held)
    chapter.reopen(await queries.read_now(tx, company.id), await find_next_owner(tx, company, held))
    ticket = await chapter.write(tx, company)
    await tell(tx, company, chapter.held, "ticket_reopened")
    await emit(tx, company, TicketUpdated(ticket))
    return ticket


async def note(tx: Tx, company: Company, id: str, given: NoteIn) -> Note:
    """For the agents alone: no clock hears of it."""
    await queries.get_ticket(tx, company.id, id)
    agent = await agents.get_able(tx, company, given.agent_id)
    if not given.body.strip() or "\0" in given.body:
        raise Invalid.field("body", "must hold more than blanks, and no NUL character")
    at = await queries.read_now(tx, company.id)
    notify_after_commit(tx, build_bell(company.id))
    return await queries.insert_note(tx, company.id, NOTE_ID.new(), id, agent.id, given.body, at)


async def _lock_active(tx: Tx, company: Company, id: str) -> LockedTicket:
    held = await queries.lock_ticket(tx, company.id, id)
    if not held.is_active:
        raise TicketResolved
    return held


async def _announce_owner(tx: Tx, company: Company, chapter: TicketChange) -> Ticket:
    ticket = await chapter.write(tx, company)
    await tell(tx, company, chapter.held, "ticket_assigned")
    await emit(tx, company, TicketUpdated(ticket))
    return ticket
