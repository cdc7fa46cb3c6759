"""Queries for tickets and their entries."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from sapa.db.due import build_clock
from sapa.db.listing import Listing
from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql
from sapa.http.errors import NotFound
from sapa.messaging.messages.types import Source
from sapa.support.response_times import Cycle
from sapa.support.rows import AnsweringAgent, DueTicket, LockedTicket, NewTicketEntry, ReplyTarget, StoredTicketEntry
from sapa.support.types import (
    Note,
    Ticket,
    TicketCounts,
    TicketEvent,
)
from sapa.values.json import encode

_NAME = "(SELECT c.name FROM contacts c WHERE c.company_id = $1 AND c.id = r.contact_id)"
# The web chat's id of a visitor is the ticket's client number.
_STATED = """(SELECT v.{} FROM widget_visitors v
     WHERE r.source = 'WIDGET' AND v.company_id = $1 AND v.id = r.client_number)"""
_EXPRESSIONS = {
    "client_name": _NAME,
    "stated_name": _STATED.format("stated_name"),
    "stated_contact": _STATED.format("stated_contact"),
    "sequence": "number",
}
_TICKET_COLUMNS = ", ".join(
    f"{_EXPRESSIONS[name]} AS {name}" if name in _EXPRESSIONS else name for name in Ticket.__struct_fields__
)


DEFAULT_RESOLVE_HOURS = 72

# Tickets in which the customer waits for an answer, and snoozed ones, are never resolved automatically. Companies
# alternate, so that one with many tickets does not delay the others.
LIST_SILENT = sql(
    f"""
    SELECT company_id, id, silent_since AS due_at
      FROM (SELECT t.company_id, t.id, t.silent_since,
                   row_number() OVER (PARTITION BY t.company_id ORDER BY t.silent_since) AS place
              FROM tickets t
              JOIN companies c ON c.company_id = t.company_id
              LEFT JOIN support_settings s ON s.company_id = t.company_id
             WHERE t.status <> 'resolved' AND t.waiting_since IS NULL AND t.snoozed_until IS NULL
               AND coalesce(s.auto_resolve_hours, {DEFAULT_RESOLVE_HOURS}) > 0
               AND t.silent_since <= now() + c.clock_offset
                                   - make_interval(hours => coalesce(s.auto_resolve_hours, {DEFAULT_RESOLVE_HOURS}))
           ) AS due
     ORDER BY place, silent_since
     LIMIT $1""",
    row=DueTicket,
    crosses="the worker finds silent tickets of all companies, then resolves them one by one",
)

LIST_SNOOZED = sql(
    """
    SELECT company_id, id, snoozed_until AS due_at
      FROM (SELECT t.company_id, t.id, t.snoozed_until,
                   row_number() OVER (PARTITION BY t.company_id ORDER BY t.snoozed_until) AS place
              FROM tickets t
              JOIN companies c ON c.company_id = t.company_id
             WHERE t.snoozed_until <= now() + c.clock_offset) AS due
     ORDER BY place, snoozed_until
     LIMIT $1""",
    row=DueTicket,
    crosses="the worker finds snoozed tickets of all companies, then wakes them one by one",
)

LIST_BREACHED = sql(
    """
    SELECT company_id, id, sla_due_at AS due_at
      FROM (SELECT t.company_id, t.id, t.sla_due_at,
                   row_number() OVER (PARTITION BY t.company_id ORDER BY t.sla_due_at) AS place
              FROM tickets t
              JOIN companies c ON c.company_id = t.company_id
             WHERE t.sla_due_at < now() + c.clock_offset) AS due
     ORDER BY place, sla_due_at
     LIMIT $1""",
    row=DueTicket,
    crosses="the worker finds missed targets of all companies, then marks them one by one",
)

GET = sql(f"SELECT {_TICKET_COLUMNS} FROM tickets r WHERE company_id = $1 AND id = $2", row=Ticket)

GET_REPLY_TARGET = sql(
    "SELECT source, connection_id, identity, contact_id FROM tickets WHERE company_id = $1 AND id = $2", row=ReplyTarget
)

_OWN = LockedTicket.__struct_fields__[:-1]
_LOCKED_COLUMNS = (
    ", ".join(f"t.{name}" for name in _OWN)
    + ", (SELECT a.type FROM agents a WHERE a.company_id = $1 AND a.id = t.agent_id) AS agent_type"
)

LOCK = sql(
    f"SELECT {_LOCKED_COLUMNS} FROM tickets t WHERE t.company_id = $1 AND t.id = $2 FOR UPDATE", row=LockedTicket
)

LOCK_MANY = sql(
    f"""
    SELECT {_LOCKED_COLUMNS}
      FROM tickets t
     WHERE t.company_id = $1 AND t.id = ANY($2::text[])
     ORDER BY t.id
       FOR UPDATE""",
    row=LockedTicket,
)

MOVE_NOTES = sql("UPDATE ticket_notes SET ticket_id = $3 WHERE company_id = $1 AND ticket_id = $2")

SET_CUSTOMER = sql("UPDATE tickets SET customer_id = $3 WHERE company_id = $1 AND contact_id = $2")

FIND_TICKET_OF_ENTRY = sql(
    """
    SELECT ticket_id FROM ticket_events
     WHERE company_id = $1 AND message_id = $2 AND kind IN ('said', 'announced')"""
)

# The active ticket, else the one resolved last.
LOCK_LATEST = sql(
    f"""
    SELECT {_LOCKED_COLUMNS}
      FROM tickets t
     WHERE t.company_id = $1 AND t.connection_id = $2 AND t.contact_id = $3
     ORDER BY t.resolved_at DESC NULLS FIRST
     LIMIT 1
       FOR UPDATE""",
    row=LockedTicket,
)

# Tickets of the remaining contact come first, then the oldest.
LOCK_ACTIVE_OF = sql(
    f"""
    SELECT {_LOCKED_COLUMNS}
      FROM tickets t
     WHERE t.company_id = $1 AND t.contact_id = ANY($3::text[]) AND t.status <> 'resolved'
     ORDER BY t.contact_id <> $2, t.id
       FOR UPDATE""",
    row=LockedTicket,
)

LOCK_ASSIGNED_TO = sql(
    """
    SELECT id FROM tickets
     WHERE company_id = $1 AND agent_id = $2 AND status = 'assigned'
     ORDER BY id
       FOR UPDATE"""
)

MOVE = sql(
    """
    UPDATE tickets
       SET contact_id = $2,
           customer_id = coalesce(customer_id, (SELECT customer_id FROM contacts WHERE company_id = $1 AND id = $2))
     WHERE company_id = $1 AND contact_id = ANY($3::text[])"""
)

FIND_ACTIVE = sql(
    """
    SELECT id FROM tickets
     WHERE company_id = $1 AND connection_id = $2 AND contact_id = $3 AND status <> 'resolved'
       AND (status = 'assigned' OR NOT $4)"""
)

INSERT = sql(
    """
    WITH counted AS (
        INSERT INTO counter_deltas (company_id, counter, cell, delta) VALUES ($1, 'tickets', 'open/' || $3, 1)
    )
    INSERT INTO tickets (company_id, id, source, connection_id, contact_id, customer_id, identity, client_number,
                         connected_number, status, last_message_at, silent_since, created_at, updated_at)
    VALUES ($1, $2, $3::text, $4, $5, $6, $7, $8, $9, 'open', $10, $10, $10, $10)"""
)

# All changeable columns at once; $20 is the counter's cell that the ticket leaves.
UPDATE = sql(
    f"""
    WITH counted AS (
        INSERT INTO counter_deltas (company_id, counter, cell, delta)
        SELECT $1, 'tickets', moved.cell, moved.delta
          FROM (VALUES ($20::text, -1), ($7::text || '/' || $19::text, 1)) AS moved (cell, delta)
         WHERE $20::text <> $7::text || '/' || $19::text
    )
    UPDATE tickets AS r
       SET customer_id = $3, identity = $4, client_number = $5, connected_number = $6, status = $7, agent_id = $8,
           ai_paused = $9, cycle = $10, clock = $11, waiting_since = $12, number = $13, last_message = $14,
           last_message_at = $15, silent_since = $16, resolved_at = $17, resolved_reason = $18,
           label_ids = $21, priority = $22, team_id = $23, snoozed_until = $24, sla = $25, sla_due_at = $26,
           merged_into_id = $27, updated_at = GREATEST(updated_at, clock.now)
      FROM {build_clock()}
     WHERE r.company_id = $1 AND r.id = $2
    RETURNING {_TICKET_COLUMNS}""",
    row=Ticket,
)

SET_CLOCK = sql("UPDATE tickets SET clock = $3, waiting_since = $4 WHERE company_id = $1 AND id = $2")

_ENTRY = NewTicketEntry.__struct_fields__

INSERT_ENTRIES = sql(
    f"""
    INSERT INTO ticket_events (company_id, ticket_id, {", ".join(_ENTRY)})
    SELECT $1, $2, {", ".join(f"input.{name}" for name in _ENTRY)}
      FROM unnest($3::int[], $4::int[], $5::text[], $6::timestamptz[], $7::bigint[], $8::text[], $9::bigint[],
                  $10::text[], $11::text[], $12::text[])
           AS input ({", ".join(_ENTRY)})"""
)

LIST_ENTRIES = sql(
    f"""
    SELECT {", ".join(f"e.{name}" for name in _ENTRY)}, m.status
      FROM ticket_events e
      LEFT JOIN messages m ON m.company_id = $1 AND m.id = e.message_id
     WHERE e.company_id = $1 AND e.ticket_id = $2 AND ($3::int IS NULL OR e.cycle = $3)
     ORDER BY e.number""",
    row=StoredTicketEntry,
)

FIND_ENTRY = sql(
    f"""
    SELECT {", ".join(f"e.{name}" for name in _ENTRY)}, m.status
      FROM ticket_events e
      JOIN messages m ON m.company_id = $1 AND m.id = e.message_id
     WHERE e.company_id = $1 AND e.message_id = $2 AND e.ticket_id = $3 AND e.kind IN ('said', 'announced')""",
    row=StoredTicketEntry,
)

FIND_ANSWERING_AGENT = sql(
    """
    SELECT a.id, a.name
      FROM ticket_events e
      JOIN agents a ON a.company_id = $1 AND a.id = e.agent_id
      LEFT JOIN messages m ON m.company_id = $1 AND m.id = e.message_id
     WHERE e.company_id = $1 AND e.ticket_id = $2 AND (e.agent_id <> $3 OR m.body = $5) AND e.number > $4
       AND e.kind IN ('said', 'announced') AND m.status IS DISTINCT FROM 'failed'
     ORDER BY e.number DESC
     LIMIT 1""",
    row=AnsweringAgent,
)

LIST_EVENTS = sql(
    """
    SELECT kind, at, cycle, agent_id, actor_id, reason
      FROM ticket_events
     WHERE company_id = $1 AND ticket_id = $2 AND kind NOT IN ('heard', 'said', 'announced')
     ORDER BY number""",
    row=TicketEvent,
)

INSERT_NOTE = sql(
    """
    INSERT INTO ticket_notes (company_id, id, ticket_id, agent_id, body, created_at)
    VALUES ($1, $2, $3, $4, $5, $6)
    RETURNING id, agent_id, body, created_at""",
    row=Note,
)

LIST_NOTES = sql(
    """
    SELECT id, agent_id, body, created_at
      FROM ticket_notes
     WHERE company_id = $1 AND ticket_id = $2
     ORDER BY created_at, id""",
    row=Note,
)

COUNT = sql(
    """
    SELECT count(*) FILTER (WHERE snoozed_until IS NULL AND agent_id = $2::bigint) AS mine,
           count(*) FILTER (WHERE snoozed_until IS NULL AND agent_id IS NULL) AS unassigned,
           count(*) FILTER (WHERE snoozed_until IS NULL) AS all,
           count(snoozed_until) AS snoozed,
           count(waiting_since) FILTER (WHERE snoozed_until IS NULL AND agent_id = $2) AS mine_waiting,
           count(waiting_since) FILTER (WHERE snoozed_until IS NULL AND agent_id IS NULL) AS unassigned_waiting
      FROM tickets
     WHERE company_id = $1 AND status <> 'resolved'""",
    row=TicketCounts,
)

LIST_NEWEST_OF = sql(
    f"""
    SELECT {_TICKET_COLUMNS}
      FROM tickets r
     WHERE company_id = $1 AND id = ANY($2::text[])
     ORDER BY last_message_at DESC, id DESC
     LIMIT $3""",
    row=Ticket,
)

LIST_IDS = sql("SELECT id FROM tickets WHERE company_id = $1 AND id > $2 ORDER BY id LIMIT $3")

LISTING = Listing(
    "tickets",
    row=Ticket,
    counter="tickets",
    cell="cell",
    filters={
        "agent_id": "agent_id = {}",
        "except_agent_id": "agent_id IS DISTINCT FROM {}",
        "customer_id": "customer_id = {}",
        "label_id": "label_ids <> '{{}}' AND label_ids @> ARRAY[{}::text]",
        "priority": "priority = {}",
        "rating": "rating = {}",
        "team_id": "team_id = {}",
        "is_breached": "(sla IS NOT NULL AND sla::jsonb -> 'breached' <> '[]') = {}",
        # Plain conditions, which the indexes serve; each is given true.
        "is_snoozed": "snoozed_until IS NOT NULL AND {}::boolean",
        "is_awake": "snoozed_until IS NULL AND {}::boolean",
        "is_waiting": "waiting_since IS NOT NULL AND {}::boolean",
        "is_answered": "waiting_since IS NULL AND {}::boolean",
    },
    sorts={"createdAt": "created_at", "lastMessageAt": "last_message_at", "waitingSince": "waiting_since"},
    columns=_EXPRESSIONS,
)


async def get_ticket(db: Connection, company_id: int, id: str) -> Ticket:
    return _or_not_found(await GET.find(db, company_id, id))


async def get_reply_target(db: Connection, company_id: int, id: str) -> ReplyTarget:
    target = await GET_REPLY_TARGET.find(db, company_id, id)
    if target is None:
        raise NotFound
    return target


async def lock_ticket(tx: Tx, company_id: int, id: str) -> LockedTicket:
    locked = await LOCK.find(tx, company_id, id)
    if locked is None:
        raise NotFound
    return locked


async def lock_tickets(tx: Tx, company_id: int, ids: Sequence[str]) -> list[LockedTicket]:
    return await LOCK_MANY.all(tx, company_id, list(ids))


async def move_notes(tx: Tx, company_id: int, from_id: str, to_id: str) -> None:
    await MOVE_NOTES.run(tx, company_id, from_id, to_id)


async def set_customer(tx: Tx, company_id: int, contact_id: str, customer_id: str) -> None:
    await SET_CUSTOMER.run(tx, company_id, contact_id, customer_id)


async def find_ticket_of_entry(db: Connection, company_id: int, message_id: str) -> str | None:
    """The ticket whose journal has an agent's message; another than the message's once tickets were merged."""
    found: str | None = await FIND_TICKET_OF_ENTRY.value(db, company_id, message_id)
    return found


async def find_locked_latest(tx: Tx, company_id: int, connection_id: str, contact_id: str) -> LockedTicket | None:
    return await LOCK_LATEST.find(tx, company_id, connection_id, contact_id)


async def lock_active_of(tx: Tx, company_id: int, first: str, contact_ids: Sequence[str]) -> list[LockedTicket]:
    return await LOCK_ACTIVE_OF.all(tx, company_id, first, list(contact_ids))


async def lock_assigned_to(tx: Tx, company_id: int, agent_id: int) -> list[str]:
    return [row[0] for row in await tx.fetch(LOCK_ASSIGNED_TO.text, company_id, agent_id)]


async def move_tickets(tx: Tx, company_id: int, contact_id: str, others: Sequence[str]) -> None:
    await MOVE.run(tx, company_id, contact_id, list(others))


async def find_active(
    db: Connection, company_id: int, connection_id: str, contact_id: str, *, only_assigned: bool = False
) -> str | None:
    found: str | None = await FIND_ACTIVE.value(db, company_id, connection_id, contact_id, only_assigned)
    return found


async def insert_ticket(
    tx: Tx, company_id: int, id: str, source: Source, connection_id: str, contact_id: str, customer_id: str | None,
    identity: str, client_number: str, connected_number: str, at: datetime,
) -> None:  # fmt: skip
    await INSERT.run(
        tx, company_id, id, source, connection_id, contact_id, customer_id, identity, client_number, connected_number,
        at,
    )  # fmt: skip


async def update_ticket(tx: Tx, company_id: int, ticket: LockedTicket, clock: Cycle, left: str) -> Ticket:
    """`left` is the counter's cell that the ticket leaves."""
    return _or_not_found(
        await UPDATE.find(
            tx, company_id, ticket.id, ticket.customer_id, ticket.identity, ticket.client_number,
            ticket.connected_number, ticket.status, ticket.agent_id, ticket.ai_paused, ticket.cycle, encode(clock),
            clock.waiting_since, ticket.number, ticket.last_message, ticket.last_message_at, ticket.silent_since,
            ticket.resolved_at, ticket.resolved_reason, ticket.source, left, ticket.label_ids, ticket.priority,
            ticket.team_id, ticket.snoozed_until, ticket.sla, ticket.sla_due_at, ticket.merged_into_id,
        )
    )  # fmt: skip


async def set_clock(tx: Tx, company_id: int, id: str, clock: Cycle) -> None:
    await SET_CLOCK.run(tx, company_id, id, encode(clock), clock.waiting_since)


async def insert_entries(tx: Tx, company_id: int, ticket_id: str, entries: Sequence[NewTicketEntry]) -> None:
    columns = [[getattr(entry, name) for entry in entries] for name in _ENTRY]
    await INSERT_ENTRIES.run(tx, company_id, ticket_id, *columns)


async def list_entries(db: Connection, company_id: int, ticket_id: str, cycle: int | None) -> list[StoredTicketEntry]:
    """All entries of a ticket, or of one cycle."""
    return await LIST_ENTRIES.all(db, company_id, ticket_id, cycle)


async def find_entry(db: Connection, company_id: int, ticket_id: str, message_id: str) -> StoredTicketEntry | None:
    """The entry of an agent's message."""
    return await FIND_ENTRY.find(db, company_id, message_id, ticket_id)


async def find_answering_agent(
    db: Connection, company_id: int, ticket_id: str, agent_id: int, after: int, body: str | None
) -> AnsweringAgent | None:
    """Another agent who wrote after an entry, or this one if they wrote the same."""
    return await FIND_ANSWERING_AGENT.find(db, company_id, ticket_id, agent_id, after, body)


async def list_events(db: Connection, company_id: int, ticket_id: str) -> list[TicketEvent]:
    return await LIST_EVENTS.all(db, company_id, ticket_id)


async def insert_note(tx: Tx, company_id: int, id: str, ticket_id: str, agent_id: int, body: str, at: datetime) -> Note:
    note = await INSERT_NOTE.find(tx, company_id, id, ticket_id, agent_id, body, at)
    if note is None:
        raise NotFound
    return note


async def list_notes(db: Connection, company_id: int, ticket_id: str) -> list[Note]:
    return await LIST_NOTES.all(db, company_id, ticket_id)


async def list_ids(db: Connection, company_id: int, after: str, limit: int) -> list[str]:
    return [row[0] for row in await db.fetch(LIST_IDS.text, company_id, after, limit)]


async def count_tickets(db: Connection, company_id: int, agent_id: int | None) -> TicketCounts:
    counts = await COUNT.find(db, company_id, agent_id)
    assert counts is not None  # noqa: S101 - an aggregate has a row
    return counts


async def list_newest_of(db: Connection, company_id: int, ids: Sequence[str], limit: int) -> list[Ticket]:
    return await LIST_NEWEST_OF.all(db, company_id, list(ids), limit)


async def list_tickets(
    db: Connection, company_id: int, filters: Mapping[str, object], sort: str, limit: int, offset: int
) -> tuple[list[Ticket], int]:
    return await LISTING.page(db, company_id, filters, sort, limit, offset)


def _or_not_found(ticket: Ticket | None) -> Ticket:
    if ticket is None:
        raise NotFound
    return ticket


async def list_silent(db: Connection, limit: int) -> list[DueTicket]:
    """Tickets of all companies without a message for as long as their company allows."""
    return await LIST_SILENT.all(db, limit)


async def list_breached(db: Connection, limit: int) -> list[DueTicket]:
    """Tickets of all companies that missed a target which is not marked as missed yet."""
    return await LIST_BREACHED.all(db, limit)


async def list_snoozed(db: Connection, limit: int) -> list[DueTicket]:
    """Tickets of all companies whose time to wake has come."""
    return await LIST_SNOOZED.all(db, limit)
