"""What messaging tells support: a customer wrote, something goes out, something became of it."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar

import asyncpg
from msgspec import Struct

from sapa.db.pool import Connection, Tx
from sapa.events import emit
from sapa.messaging.messages.types import Message, Source
from sapa.support import agent_queries, agents, queries
from sapa.support.queries import Held
from sapa.support.response_times import Doer, Said
from sapa.support.ticket_change import Chapter, build_happening
from sapa.support.timeline_entries import tell
from sapa.support.types import (
    TICKET_ID,
    Agent,
    AnotherTicketActive,
    TakenOver,
    Ticket,
    TicketClosed,
    TicketOpened,
    TicketUpdated,
)
from sapa.values.company import Company

MOST_RACES = 3

Result = TypeVar("Result")


class Arrival(Struct, frozen=True, kw_only=True):
    """A message that came in over a connection."""

    message_id: str
    source: Source
    connection_id: str
    contact_id: str
    customer_id: str | None
    identity: str
    client_number: str
    connected_number: str
    body: str | None
    at: datetime


class Departure(Struct, frozen=True, kw_only=True):
    """A message that is about to go out."""

    message_id: str
    connection_id: str
    contact_id: str
    body: str | None
    agent_id: int | None = None
    ticket_id: str | None = None
    """Of a reply: the ticket that it was written in."""
    is_handover: bool = False


class Joined(Struct, frozen=True):
    """The ticket that a message belongs to, and when it was noted there."""

    ticket_id: str
    at: datetime | None = None
    agent: Agent | None = None


async def hear(tx: Tx, company: Company, arrival: Arrival) -> Joined:
    """The ticket that a customer's message belongs to: the active one, the last one reopened, or a new one."""
    return Joined(await _look_again(tx, partial(_admit, tx, company, arrival)))


async def _look_again(tx: Tx, work: Callable[[], Awaitable[Result]]) -> Result:
    """A ticket may be reopened by hand at the same moment: whoever finds a customer's place taken looks again."""
    for tries_left in range(MOST_RACES, -1, -1):
        try:
            async with tx.transaction():
                return await work()
        except asyncpg.UniqueViolationError as error:
            if not tries_left or error.constraint_name != AnotherTicketActive.constraint:
                raise
    raise AssertionError("unreachable")


async def _admit(tx: Tx, company: Company, arrival: Arrival) -> str:
    latest = await queries.find_locked_latest(tx, company.id, arrival.connection_id, arrival.contact_id)
    if latest is not None and latest.is_active:
        chapter = Chapter(latest)
        is_burst = chapter.waiting_since is not None
        await _write_heard(tx, company, chapter, arrival)
        if not is_burst:
            await tell(tx, company, chapter.held, "customer_wrote")
        return latest.id
    if latest is not None and await _is_reopened(tx, company, latest, arrival.at):
        return await _reopen(tx, company, Chapter(latest), arrival)
    return await _open(tx, company, arrival)


async def _open(tx: Tx, company: Company, arrival: Arrival) -> str:
    id = TICKET_ID.new()
    await queries.insert_ticket(
        tx, company.id, id, arrival.source, arrival.connection_id, arrival.contact_id, arrival.customer_id,
        arrival.identity, arrival.client_number, arrival.connected_number, arrival.at,
    )  # fmt: skip
    chapter = Chapter(await queries.lock_ticket(tx, company.id, id))
    chapter.open(arrival.at)
    ticket = await _write_heard(tx, company, chapter, arrival)
    await tell(tx, company, chapter.held, "ticket_opened")
    await emit(tx, company, TicketOpened(ticket))
    return id


async def _is_reopened(tx: Tx, company: Company, resolved: Held, at: datetime) -> bool:
    hours = (await agent_queries.get_settings(tx, company.id)).reopen_window_hours
    return bool(hours) and at <= datetime.fromisoformat(resolved.resolved_at or "") + timedelta(hours=hours)


async def _reopen(tx: Tx, company: Company, chapter: Chapter, arrival: Arrival) -> str:
    owner = await find_next_owner(tx, company, chapter.held)
    chapter.reopen(arrival.at, owner)
    ticket = await _write_heard(tx, company, chapter, arrival)
    await tell(tx, company, chapter.held, "ticket_reopened")
    await emit(tx, company, TicketUpdated(ticket))
    return ticket.id


async def find_next_owner(tx: Tx, company: Company, held: Held) -> Agent | None:
    """Whose a reopened ticket is."""
    settings = await agent_queries.get_settings(tx, company.id)
    return await agents.find_able(tx, company, held.agent_id) if settings.reopen_assignee == "previous" else None


async def _write_heard(tx: Tx, company: Company, chapter: Chapter, arrival: Arrival) -> Ticket:
    chapter.change(
        customer_id=arrival.customer_id or chapter.held.customer_id,
        identity=arrival.identity,
        client_number=arrival.client_number,
        connected_number=arrival.connected_number,
    )
    chapter.hear(arrival.at, arrival.message_id, arrival.body)
    return await chapter.write(tx, company)


async def unite(tx: Tx, company: Company, contact_id: str, others: Sequence[str]) -> None:
    """Contacts turned out to be one person: of several active tickets on one connection the person keeps one, and goes
    on waiting there."""
    await _look_again(tx, partial(_unite, tx, company, contact_id, others))


async def _unite(tx: Tx, company: Company, contact_id: str, others: Sequence[str]) -> None:
    kept: dict[str, Chapter] = {}
    for held in await queries.lock_active_of(tx, company.id, contact_id, [contact_id, *others]):
        chapter = Chapter(held)
        staying = kept.setdefault(held.connection_id, chapter)
        if staying is not chapter:
            staying.inherit(chapter)
            chapter.merge(await queries.read_now(tx, company.id))
            await emit(tx, company, TicketClosed(await chapter.write(tx, company)))
    for chapter in kept.values():
        if chapter.is_changed:
            await chapter.write(tx, company)
    await queries.move_tickets(tx, company.id, contact_id, others)


async def is_handled(db: Connection, company: Company, connection_id: str, contact_id: str) -> bool:
    """Whether an agent has the chat in hand."""
    return await queries.find_active(db, company.id, connection_id, contact_id, only_assigned=True) is not None


async def check_agent(db: Connection, company: Company, agent_id: int | None) -> None:
    """Raises unless it is one that may write."""
    if agent_id is not None:
        await agents.get_able(db, company, agent_id)


async def send_off(tx: Tx, company: Company, departure: Departure) -> Joined | None:
    """The ticket that an outgoing message belongs to. Written by an agent, it is noted there before it leaves: in this
    order the customer is answered, whatever the channel takes its time with."""
    if departure.agent_id is None:
        id = await queries.find_active(tx, company.id, departure.connection_id, departure.contact_id)
        return Joined(id) if id else None
    held = await _lock_meant(tx, company, departure)
    if held is None:
        return None
    agent = await agents.get_able(tx, company, departure.agent_id)
    chapter, at = Chapter(held), await queries.read_now(tx, company.id)
    is_taken = _take(chapter, agent, at)
    chapter.say(at, agent, departure.message_id, departure.body, is_handover=departure.is_handover)
    is_given = departure.is_handover and held.is_active
    if is_given:
        chapter.hand_over(at, Doer(agent.id, agent.type), None)
    await _write_owner(tx, company, chapter, is_taken or is_given)
    return Joined(held.id, at)


async def _lock_meant(tx: Tx, company: Company, departure: Departure) -> Held | None:
    """A reply's own ticket, else the one that is active on the thread. What is written after a resolution stands in the
    resolved ticket only as long as there is no other."""
    if departure.ticket_id is None:
        held = await queries.find_locked_latest(tx, company.id, departure.connection_id, departure.contact_id)
        return held if held is not None and held.is_active else None
    held = await queries.lock_ticket(tx, company.id, departure.ticket_id)
    if not held.is_active:
        active = await queries.find_active(tx, company.id, held.connection_id, held.contact_id)
        if active is not None:
            raise AnotherTicketActive(f"This ticket is resolved, and the customer went on in {active}; reply there.")
    return held


def _take(chapter: Chapter, agent: Agent, at: datetime) -> bool:
    """Whether the ticket became the agent's: nobody's becomes that of the first who answers, an AI agent's that of the
    first human who does."""
    held = chapter.held
    if agent.type == "ai" and held.ai_paused:
        raise TakenOver
    is_free = held.agent_id is None or (held.agent_type == "ai" and agent.type == "human")
    if held.is_active and is_free:
        chapter.assign(at, agent)
        return True
    return False


async def _write_owner(tx: Tx, company: Company, chapter: Chapter, is_new: bool) -> None:
    ticket = await chapter.write(tx, company)
    if is_new:
        await tell(tx, company, chapter.held, "ticket_assigned")
        await emit(tx, company, TicketUpdated(ticket))


async def echo(tx: Tx, company: Company, arrival: Arrival) -> Joined | None:
    """What was written on the company's telephone is a person's answer in the ticket that is active."""
    held = await queries.find_locked_latest(tx, company.id, arrival.connection_id, arrival.contact_id)
    if held is None or not held.is_active:
        return None
    agent = await agent_queries.get_business_app(tx, company.id)
    chapter = Chapter(held)
    is_taken = _take(chapter, agent, arrival.at)
    chapter.say(arrival.at, agent, arrival.message_id, arrival.body)
    chapter.count(Said(arrival.at, Doer(agent.id, agent.type), arrival.message_id))
    await _write_owner(tx, company, chapter, is_taken)
    await _tell_answer(tx, company, chapter)
    return Joined(held.id, arrival.at, agent)


async def settle(tx: Tx, company: Company, message: Message) -> None:
    """An agent's message has gone out, or after all it has not. If something else happened since it was written, the
    cycle is measured again."""
    if message.ticket_id is None or message.agent_id is None:
        return
    chapter = Chapter(await queries.lock_ticket(tx, company.id, message.ticket_id))
    entry = await queries.find_entry(tx, company.id, message.ticket_id, message.message_id2)
    if entry is None:
        return
    happening = build_happening(entry)
    if happening is not None and entry.number == chapter.held.number:
        chapter.count(happening)
        await chapter.write(tx, company)
    else:
        await chapter.replay(tx, company, entry.cycle)
    await _tell_answer(tx, company, chapter)


async def _tell_answer(tx: Tx, company: Company, chapter: Chapter) -> None:
    """Once for all that the customer wrote before it, though it turn out later that somebody else was faster."""
    if chapter.answers > 0:
        await tell(tx, company, chapter.held, "ticket_answered")
