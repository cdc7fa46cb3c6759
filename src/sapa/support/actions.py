"""Implements messaging's port for tickets."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar

import asyncpg

from sapa.access.actions import read_clock
from sapa.db.pool import Connection, Tx
from sapa.db.retry import retry
from sapa.events import emit
from sapa.http.errors import translate
from sapa.messaging.tickets import InboundMessage, OutboundMessage, TakenOver, TicketLink, TicketOpening
from sapa.support import queries
from sapa.support.agents import actions as agents
from sapa.support.business_hours import actions as business_hours
from sapa.support.ratings import actions as ratings
from sapa.support.response_times import Actor, AgentMessage
from sapa.support.rows import LockedTicket
from sapa.support.ticket_change import TicketChange, build_clock_event
from sapa.support.timeline_entries import record_timeline_entry
from sapa.support.types import (
    TICKET_ID,
    Agent,
    AnotherTicketActive,
    AnsweredMeanwhile,
    Ticket,
    TicketClosed,
    TicketOpened,
    TicketUpdated,
)
from sapa.values.company import Company

MAX_TRIES = 4

Result = TypeVar("Result")


async def link_inbound(tx: Tx, company: Company, message: InboundMessage) -> TicketLink:
    """The ticket of a customer's message: the active one, the last one reopened, or a new one. A rating that the
    customer chose belongs to the rated ticket, and reopens nothing."""
    if message.choice_id and (rated := await ratings.rate_by_choice(tx, company, message.choice_id)):
        return TicketLink(rated.ticket_id)
    return TicketLink(await _retry_if_taken(tx, partial(_link_inbound, tx, company, message)))


async def _retry_if_taken(tx: Tx, work: Callable[[], Awaitable[Result]]) -> Result:
    """A ticket may be reopened at the same time: retries if the customer has another active ticket by now."""

    async def look() -> Result:
        async with tx.transaction():
            return await work()

    return await retry(
        look,
        asyncpg.UniqueViolationError,
        tries=MAX_TRIES,
        pause=lambda error: 0 if isinstance(translate(error), AnotherTicketActive) else None,
    )


async def _link_inbound(tx: Tx, company: Company, message: InboundMessage) -> str:
    latest = await queries.find_locked_latest(tx, company.id, message.connection_id, message.contact_id)
    if latest is not None and latest.is_active:
        change = TicketChange(latest)
        is_burst = change.waiting_since is not None
        await _write_inbound(tx, company, change, message)
        if not is_burst:
            await record_timeline_entry(tx, company, change.locked, "customer_wrote", message.at)
        return latest.id
    if latest is not None and await _is_reopened(tx, company, latest, message.at):
        return await _reopen(tx, company, TicketChange(latest), message)
    return await _open(tx, company, message)


async def _open(tx: Tx, company: Company, message: InboundMessage) -> str:
    id = TICKET_ID.new()
    await queries.insert_ticket(
        tx, company.id, id, message.source, message.connection_id, message.contact_id, message.customer_id,
        message.identity, message.client_number, message.connected_number, message.at,
    )  # fmt: skip
    change = TicketChange(await queries.lock_ticket(tx, company.id, id))
    change.open(message.at)
    ticket = await _write_inbound(tx, company, change, message)
    await record_timeline_entry(tx, company, change.locked, "ticket_opened", message.at)
    await emit(tx, company, TicketOpened(ticket))
    return id


async def _is_reopened(tx: Tx, company: Company, resolved: LockedTicket, at: datetime) -> bool:
    hours = (await agents.get_settings(tx, company)).reopen_window_hours
    return bool(hours) and resolved.resolved_at is not None and at <= resolved.resolved_at + timedelta(hours=hours)


async def _reopen(tx: Tx, company: Company, change: TicketChange, message: InboundMessage) -> str:
    owner = await find_next_owner(tx, company, change.locked)
    change.reopen(message.at, owner)
    ticket = await _write_inbound(tx, company, change, message)
    await record_timeline_entry(tx, company, change.locked, "ticket_reopened", message.at)
    await emit(tx, company, TicketUpdated(ticket))
    return ticket.id


async def find_next_owner(tx: Tx, company: Company, locked: LockedTicket) -> Agent | None:
    """The owner of a reopened ticket."""
    settings = await agents.get_settings(tx, company)
    return (
        await agents.find_next_owner(tx, company, locked.agent_id) if settings.reopen_assignee == "previous" else None
    )


async def _write_inbound(tx: Tx, company: Company, change: TicketChange, message: InboundMessage) -> Ticket:
    change.set(
        customer_id=message.customer_id or change.locked.customer_id,
        identity=message.identity,
        client_number=message.client_number,
        connected_number=message.connected_number,
    )
    change.record_inbound(message.at, message.message_id, message.body)
    return await change.write(tx, company)


async def merge_contacts(tx: Tx, company: Company, contact_id: str, others: Sequence[str]) -> None:
    """Merges contacts into one person: of several active tickets on one connection one remains and takes over
    the wait."""
    await _retry_if_taken(tx, partial(_merge_contacts, tx, company, contact_id, others))


async def _merge_contacts(tx: Tx, company: Company, contact_id: str, others: Sequence[str]) -> None:
    remaining: dict[str, TicketChange] = {}
    now = (await read_clock(tx, company.id)).now
    for locked in await queries.lock_active_of(tx, company.id, contact_id, [contact_id, *others]):
        change = TicketChange(locked)
        remaining_change = remaining.setdefault(locked.connection_id, change)
        if remaining_change is not change:
            remaining_change.inherit(change)
            remaining_change.record_merge(now, locked.id)
            change.merge(now, remaining_change.locked.id)
            await emit(tx, company, TicketClosed(await change.write(tx, company)))
    for change in remaining.values():
        if change.is_changed:
            await change.write(tx, company)
    await queries.move_tickets(tx, company.id, contact_id, others)


async def is_handled(db: Connection, company: Company, connection_id: str, contact_id: str) -> bool:
    """Whether an agent is handling the chat."""
    return await queries.find_active(db, company.id, connection_id, contact_id, only_assigned=True) is not None


async def find_opening(db: Connection, company: Company, now: datetime) -> datetime | None:
    """When somebody is there to answer again, by the business hours; None if somebody is now."""
    return await business_hours.find_opening(db, company, now)


async def check_agent(db: Connection, company: Company, agent_id: int) -> None:
    """Raises unless the agent may write."""
    await agents.get_active_agent(db, company, agent_id)


async def find_link(db: Connection, company: Company, connection_id: str, contact_id: str) -> TicketLink | None:
    """The active ticket of a chat. Nothing is opened, and nobody waits for an answer."""
    id = await queries.find_active(db, company.id, connection_id, contact_id)
    return TicketLink(id) if id else None


async def link_outbound(tx: Tx, company: Company, message: OutboundMessage) -> TicketLink | None:
    """The ticket of an outbound message. An agent's message is recorded there before it is sent: that order decides who
    answered the customer, however slow the channel is."""
    if message.agent_id is None:
        return await find_link(tx, company, message.connection_id, message.contact_id)
    if message.opening is None:
        locked = await _find_locked_ticket(tx, company, message)
    else:
        locked = await _retry_if_taken(tx, partial(_find_or_start, tx, company, message, message.opening))
    if locked is None:
        return None
    agent = await agents.get_active_agent(tx, company, message.agent_id)
    if message.seen_sequence is not None:
        await _check_seen(tx, company, locked, agent, message.seen_sequence, message.body)
    if _can_claim(locked, agent):
        agent = await agents.get_next_owner(tx, company, agent.id)
    change, at = TicketChange(locked), message.at or (await read_clock(tx, company.id)).now
    is_taken = _claim(change, agent, at)
    change.record_outbound(at, agent, message.message_id, message.body, is_handover=message.is_handover)
    is_handed_over = message.is_handover and locked.is_active
    if is_handed_over:
        change.hand_over(at, Actor(agent.id, agent.type), None)
    await _write_owner(tx, company, change, is_taken or is_handed_over)
    return TicketLink(locked.id, at)


async def _find_or_start(
    tx: Tx, company: Company, message: OutboundMessage, opening: TicketOpening
) -> LockedTicket | None:
    if (locked := await _find_locked_ticket(tx, company, message)) is not None:
        return locked
    id = TICKET_ID.new()
    at = (await read_clock(tx, company.id)).now
    await queries.insert_ticket(
        tx, company.id, id, opening.source, message.connection_id, message.contact_id, opening.customer_id,
        opening.identity, opening.client_number, opening.connected_number, at,
    )  # fmt: skip
    change = TicketChange(await queries.lock_ticket(tx, company.id, id))
    change.open(at)
    ticket = await change.write(tx, company)
    await record_timeline_entry(tx, company, change.locked, "ticket_opened")
    await emit(tx, company, TicketOpened(ticket))
    return change.locked


async def _check_seen(
    tx: Tx, company: Company, locked: LockedTicket, agent: Agent, seen: int, body: str | None
) -> None:
    """Under the ticket's lock: of two agents who answer at once, the second is refused, and so is a text that the same
    agent sends from two devices."""
    answering = await queries.find_answering_agent(tx, company.id, locked.id, agent.id, seen, body)
    if answering is None:
        return
    if answering.id == agent.id:
        raise AnsweredMeanwhile("You have already sent this text. Send again without seenSequence.")
    raise AnsweredMeanwhile(f"{answering.name} replied after you opened the ticket. Send again without seenSequence.")


async def _find_locked_ticket(tx: Tx, company: Company, message: OutboundMessage) -> LockedTicket | None:
    """The ticket of a reply, else the active one of the thread. A message after the resolution belongs to the resolved
    ticket only while there is no newer one."""
    if message.ticket_id is None:
        locked = await queries.find_locked_latest(tx, company.id, message.connection_id, message.contact_id)
        return locked if locked is not None and locked.is_active else None
    locked = await queries.lock_ticket(tx, company.id, message.ticket_id)
    if not locked.is_active:
        active = await queries.find_active(tx, company.id, locked.connection_id, locked.contact_id)
        if active is not None:
            raise AnotherTicketActive(f"This ticket is resolved, and the customer has a newer one. Reply in {active}.")
    return locked


def _claim(change: TicketChange, agent: Agent, at: datetime) -> bool:
    """Whether the agent became the owner: an unowned ticket goes to the first agent who answers, an AI agent's ticket
    to the first human."""
    if agent.type == "ai" and change.locked.ai_paused:
        raise TakenOver
    if _can_claim(change.locked, agent):
        change.assign(at, agent)
        return True
    return False


def _can_claim(locked: LockedTicket, agent: Agent) -> bool:
    is_free = locked.agent_id is None or (locked.agent_type == "ai" and agent.type == "human")
    return locked.is_active and is_free


async def _write_owner(tx: Tx, company: Company, change: TicketChange, is_new: bool) -> None:
    ticket = await change.write(tx, company)
    if is_new:
        await record_timeline_entry(tx, company, change.locked, "ticket_assigned")
        await emit(tx, company, TicketUpdated(ticket))


async def link_echo(tx: Tx, company: Company, message: InboundMessage) -> TicketLink | None:
    """A message from the company's own phone counts as an agent's reply in the active ticket."""
    locked = await queries.find_locked_latest(tx, company.id, message.connection_id, message.contact_id)
    if locked is None or not locked.is_active:
        return None
    agent = await agents.find_or_create_business_app(tx, company)
    change = TicketChange(locked)
    is_taken = _claim(change, agent, message.at)
    change.record_outbound(message.at, agent, message.message_id, message.body)
    change.apply(AgentMessage(message.at, Actor(agent.id, agent.type), message.message_id))
    await _write_owner(tx, company, change, is_taken)
    await _record_answer(tx, company, change)
    return TicketLink(locked.id, message.at, agent.id)


async def settle(tx: Tx, company: Company, ticket_id: str, message_id: str) -> None:
    """An agent's message was dispatched, or its dispatch was reverted. If it is not the ticket's last entry, the cycle
    is measured again."""
    ticket_id = await queries.find_ticket_of_entry(tx, company.id, message_id) or ticket_id
    change = TicketChange(await queries.lock_ticket(tx, company.id, ticket_id))
    entry = await queries.find_entry(tx, company.id, ticket_id, message_id)
    if entry is None:
        return
    event = build_clock_event(entry)
    if event is not None and entry.number == change.locked.number:
        change.apply(event)
        await change.write(tx, company)
    else:
        await change.replay(tx, company, entry.cycle)
    await _record_answer(tx, company, change)


async def _record_answer(tx: Tx, company: Company, change: TicketChange) -> None:
    """One timeline entry for all messages that the answer covers, even if another agent turns out to have been
    faster."""
    if change.response_count > 0:
        await record_timeline_entry(tx, company, change.locked, "ticket_answered")
