"""Queries for messages and their events."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from msgspec import Raw, Struct

from sapa.db.pool import Connection, Tx
from sapa.db.sql import build_instant_text, compose, sql
from sapa.events import RECORDED, EncodedEvents
from sapa.http.errors import NotFound
from sapa.messaging.channels.interface import Identity, Source
from sapa.messaging.channels.received_parts import MessageParts
from sapa.messaging.messages.types import (
    AmendableMessage,
    ChangedState,
    LockedMessage,
    Message,
    NewEvent,
    NewMessage,
    StoredMessageWithEvents,
)

_EXPRESSIONS = {
    "ack": """CASE WHEN status = 'failed' THEN -1 WHEN status = 'pending' THEN 0 WHEN status = 'sent' THEN 1
                WHEN status = 'read' THEN 3 ELSE 2 END AS ack""",
    "message_id": "provider_id AS message_id",
    "timestamp": "date_part('epoch', created_at - timestamptz 'epoch')::bigint AS timestamp",
    "message_id2": "id AS message_id2",
    **{
        name: f"parts -> '{wire_name}' AS \"{name}\""
        for name, wire_name in zip(MessageParts.__struct_fields__, MessageParts.__struct_encode_fields__, strict=True)
    },
}
COLUMNS = ", ".join(_EXPRESSIONS.get(name, name) for name in Message.__struct_fields__)


class UnsettledMessage(Struct, frozen=True):
    """A message without an outcome from its channel."""

    company_id: int
    id: str


class StoredChanges(Struct, frozen=True):
    has_deliveries: bool


class StoredPricing(Struct, frozen=True):
    pricing: Raw | None


GET = sql(f"SELECT {COLUMNS} FROM messages WHERE company_id = $1 AND id = $2", row=Message)

GET_WITH_EVENTS = sql(
    f"""
    SELECT {COLUMNS}, (
           SELECT coalesce(json_agg(json_build_object(
                      'kind', kind, 'at', {build_instant_text("at")},
                      'isImplied', is_implied, 'sequence', sequence, 'code', code, 'detail', detail)
                      ORDER BY number), '[]')
             FROM message_events
            WHERE company_id = $1 AND message_id = $2) AS events
      FROM messages
     WHERE company_id = $1 AND id = $2""",
    row=StoredMessageWithEvents,
)

_INSERTED = NewMessage.__struct_fields__

# A message with a known channel id is not stored again.
INSERT = sql(
    f"""
    INSERT INTO messages (company_id, {", ".join(_INSERTED)})
    VALUES ($1, {", ".join(f"${n}" for n in range(2, len(_INSERTED) + 2))})
        ON CONFLICT (company_id, source, provider_id) DO NOTHING
    RETURNING {COLUMNS}""",
    row=Message,
)

GET_RECIPIENT = sql(
    "SELECT identity_kind AS kind, identity AS value FROM messages WHERE company_id = $1 AND id = $2", row=Identity
)

_LOCKED_COLUMNS = f"{COLUMNS}, created_at, accepted_at"

LOCK = sql(
    f"SELECT {_LOCKED_COLUMNS} FROM messages WHERE company_id = $1 AND id = $2 AND direction = 'out' FOR NO KEY UPDATE",
    row=LockedMessage,
)

LOCK_BY_PROVIDER_ID = sql(
    f"""
    SELECT {_LOCKED_COLUMNS}
      FROM messages
     WHERE company_id = $1 AND source = $2 AND provider_id = $3 AND direction = 'out'
       FOR NO KEY UPDATE""",
    row=LockedMessage,
)

# Compares the time of our call: the channel's own time of the message, which a watermark refers to, is later.
LOCK_UP_TO = sql(
    f"""
    SELECT {_LOCKED_COLUMNS}
      FROM messages
     WHERE company_id = $1 AND source = $2 AND identity = ANY($3::text[]) AND created_at <= $4 AND direction = 'out'
       AND sent_at IS NOT NULL AND status = ANY($5::text[])
     ORDER BY created_at, id
       FOR NO KEY UPDATE""",
    row=LockedMessage,
)

LOCK_LATEST = sql(
    f"""
    SELECT {_LOCKED_COLUMNS}
      FROM messages
     WHERE company_id = $1 AND source = $2 AND identity = ANY($3::text[]) AND created_at BETWEEN $4 AND $5
       AND direction = 'out' AND status <> 'failed' AND sent_at IS NOT NULL
     ORDER BY created_at DESC, id DESC
     LIMIT 1
       FOR NO KEY UPDATE""",
    row=LockedMessage,
)

# A channel without choices gets them as text that contains the message's own body.
LOCK_PENDING = sql(
    f"""
    SELECT {_LOCKED_COLUMNS}
      FROM messages
     WHERE company_id = $1 AND source = $2 AND identity = ANY($3::text[]) AND created_at >= $4 AND direction = 'out'
       AND status = 'pending' AND provider_id IS NULL
       AND (body IS NOT DISTINCT FROM $5 OR (type = 'interactive' AND strpos($5, body) > 0))
     ORDER BY created_at, id
     LIMIT 1
       FOR NO KEY UPDATE""",
    row=LockedMessage,
)

LOCK_REPORTED = sql(
    f"""
    SELECT {_LOCKED_COLUMNS}
      FROM messages
     WHERE company_id = $1 AND direction = 'out'
       AND (id = ANY($3::text[]) OR (source = $2 AND provider_id = ANY($4::text[])))
     ORDER BY id
       FOR NO KEY UPDATE""",
    row=LockedMessage,
)

_CHANGED = ChangedState.__struct_fields__

HOLD = sql(
    f"""
    UPDATE messages SET provider_id = coalesce(provider_id, $3), error = $4
     WHERE company_id = $1 AND id = $2
    RETURNING {COLUMNS}""",
    row=Message,
)

SET_REPLIED = sql(
    """
    UPDATE messages SET replied_at = $3
     WHERE company_id = $1 AND id = $2 AND replied_at IS NULL"""
)

SET_ERROR = sql(f"UPDATE messages SET error = $3 WHERE company_id = $1 AND id = $2 RETURNING {COLUMNS}", row=Message)

SET_ATTACHMENTS = sql("UPDATE messages SET attachments = $3 WHERE company_id = $1 AND id = $2")

GET_PRICING = sql("SELECT pricing FROM messages WHERE company_id = $1 AND id = $2 FOR NO KEY UPDATE", row=StoredPricing)

SET_PRICING = sql("UPDATE messages SET pricing = $3 WHERE company_id = $1 AND id = $2")

SET_TICKET = sql(
    "UPDATE messages SET ticket_id = $3, agent_id = coalesce($4, agent_id) WHERE company_id = $1 AND id = $2"
)

SET_PARTS = sql(f"UPDATE messages SET parts = $3 WHERE company_id = $1 AND id = $2 RETURNING {COLUMNS}", row=Message)

LOCK_AMENDABLE = sql(
    f"""
    SELECT {", ".join(AmendableMessage.__struct_fields__)}
      FROM messages
     WHERE company_id = $1 AND source = $2 AND provider_id = $3
       FOR NO KEY UPDATE""",
    row=AmendableMessage,
)

AMEND = sql(
    f"""
    UPDATE messages SET body = $3, edited_at = $4, revoked_at = $5, reactions = $6
     WHERE company_id = $1 AND id = $2
    RETURNING {COLUMNS}""",
    row=Message,
)

FIND_DETAIL = sql(
    """
    SELECT detail
      FROM message_events
     WHERE company_id = $1 AND message_id = $2 AND kind = $3 AND reported_at = $4 AND NOT is_implied"""
)

FIND_ID = sql("SELECT id FROM messages WHERE company_id = $1 AND source = $2 AND provider_id = $3")

# The columns of an event, besides its message and its number.
_EVENT = NewEvent.__struct_fields__

# RETURNING, because Citus counts the rows of SELECT where nothing is returned.
INSERT_EVENTS = sql(
    f"""
    INSERT INTO message_events (company_id, {", ".join(_EVENT)})
    SELECT $1, {", ".join(f"input.{name}" for name in _EVENT)}
      FROM unnest($2::text[], $3::text[], $4::timestamptz[], $5::timestamptz[], $6::bool[], $7::int[], $8::text[],
                  $9::text[])
           AS input ({", ".join(_EVENT)})
        ON CONFLICT DO NOTHING
    RETURNING 1"""
)

STORE_CHANGES = compose(
    [
        f"""noted AS (
    INSERT INTO message_events (company_id, {", ".join(_EVENT)})
    SELECT $1, {", ".join(f"input.{name}" for name in _EVENT)}
      FROM unnest(:event_message_id::text[], :event_kind::text[], :event_reported_at::timestamptz[],
                  :event_at::timestamptz[], :event_is_implied::bool[], :event_sequence::int[], :event_code::text[],
                  :event_detail::text[])
           AS input ({", ".join(_EVENT)})
        ON CONFLICT DO NOTHING)""",
        f"""changed AS (
    UPDATE messages
       SET status = new_status, accepted_at = new_accepted_at, sent_at = new_sent_at, delivered_at = new_delivered_at,
           read_at = new_read_at, failed_at = new_failed_at, conflict = new_conflict, provider_id = new_provider_id,
           error = new_error::json, sequence = new_sequence, pricing = new_pricing::json
      FROM unnest(:new_id::text[], :new_status::text[], :new_accepted_at::timestamptz[], :new_sent_at::timestamptz[],
                  :new_delivered_at::timestamptz[], :new_read_at::timestamptz[], :new_failed_at::timestamptz[],
                  :new_conflict::bool[], :new_provider_id::text[], :new_error::text[], :new_sequence::int[],
                  :new_pricing::text[])
           AS input ({", ".join(f"new_{name}" for name in _CHANGED)})
     WHERE company_id = $1 AND id = new_id)""",
        """announced AS (
    SELECT *
      FROM unnest(:announced_ids::text[], :announced_kinds::text[], :announced_resource_ids::text[],
                  :announced_bodies::bytea[])
           AS a (id, kind, resource_id, body))""",
        RECORDED,
    ],
    "SELECT EXISTS (SELECT FROM deliveries) AS has_deliveries",
    row=StoredChanges,
)

# In the order in which they were stored, by id: channels report whole seconds, which would put a reply before its
# question.
NEWEST = sql(
    f"""
    SELECT {COLUMNS}
      FROM messages
     WHERE company_id = $1 AND ticket_id = $2 AND ($4::text IS NULL OR id < $4)
     ORDER BY id DESC
     LIMIT $3""",
    row=Message,
)

MOVE_TO_TICKET = sql("UPDATE messages SET ticket_id = $3 WHERE company_id = $1 AND ticket_id = $2")

IS_IN = sql("SELECT EXISTS (SELECT FROM messages WHERE company_id = $1 AND ticket_id = $2 AND id = $3)")

LIST_UNSETTLED = sql(
    """
    SELECT m.company_id, m.id
      FROM messages m
      JOIN companies c ON c.company_id = m.company_id
     WHERE m.direction = 'out' AND m.sent_at IS NULL AND m.failed_at IS NULL
       AND m.created_at <= now() + c.clock_offset - $1::interval
     ORDER BY m.created_at
     LIMIT $2""",
    row=UnsettledMessage,
    crosses="the worker finds messages without an outcome of all companies, then expires them one by one",
)

IS_IN_FLIGHT = sql(
    """
    SELECT EXISTS (
           SELECT FROM messages
            WHERE company_id = $1 AND source = $2 AND identity = ANY($3::text[]) AND created_at BETWEEN $4 AND $5
              AND direction = 'out' AND status = 'pending')"""
)


async def get_recipient(db: Connection, company_id: int, id: str) -> Identity:
    (found,) = await GET_RECIPIENT.all(db, company_id, id)
    return found


async def get_message(db: Connection, company_id: int, id: str) -> Message:
    message = await GET.find(db, company_id, id)
    if message is None:
        raise NotFound
    return message


async def get_with_events(db: Connection, company_id: int, id: str) -> StoredMessageWithEvents:
    message = await GET_WITH_EVENTS.find(db, company_id, id)
    if message is None:
        raise NotFound
    return message


async def find_id(db: Connection, company_id: int, source: Source, provider_id: str) -> str | None:
    found: str | None = await FIND_ID.value(db, company_id, source, provider_id)
    return found


async def insert_message(tx: Tx, company_id: int, new: NewMessage) -> Message | None:
    """None if the channel's id is stored already."""
    return await INSERT.find(tx, company_id, *(getattr(new, name) for name in _INSERTED))


async def lock_message(tx: Tx, company_id: int, id: str) -> LockedMessage:
    locked = await LOCK.find(tx, company_id, id)
    if locked is None:
        raise NotFound
    return locked


async def find_locked(
    tx: Tx, company_id: int, source: Source, reference: str | None, provider_id: str | None
) -> LockedMessage | None:
    """By our reference if the channel returned it, else by the channel's id."""
    locked = await LOCK.find(tx, company_id, reference) if reference else None
    if locked is None and provider_id:
        locked = await LOCK_BY_PROVIDER_ID.find(tx, company_id, source, provider_id)
    return locked


async def lock_reported(
    tx: Tx, company_id: int, source: Source, references: Sequence[str], provider_ids: Sequence[str]
) -> list[LockedMessage]:
    """Messages by our references, and by the channel's ids."""
    return await LOCK_REPORTED.all(tx, company_id, source, list(references), list(provider_ids))


async def lock_up_to(
    tx: Tx, company_id: int, source: Source, identities: Sequence[str], until: datetime, statuses: Sequence[str]
) -> list[LockedMessage]:
    """Messages to a recipient up to an instant, with one of these statuses."""
    return await LOCK_UP_TO.all(tx, company_id, source, list(identities), until, list(statuses))


async def find_locked_latest(
    tx: Tx, company_id: int, source: Source, identities: Sequence[str], since: datetime, until: datetime
) -> LockedMessage | None:
    return await LOCK_LATEST.find(tx, company_id, source, list(identities), since, until)


async def find_locked_pending(
    tx: Tx, company_id: int, source: Source, identities: Sequence[str], since: datetime, body: str | None
) -> LockedMessage | None:
    """One of our messages with this text and no outcome yet."""
    return await LOCK_PENDING.find(tx, company_id, source, list(identities), since, body)


async def store_changes(
    tx: Tx, company_id: int, events: Sequence[NewEvent], changed: Sequence[ChangedState], announced: EncodedEvents
) -> bool:
    """Whether there are webhooks to deliver."""
    values: dict[str, object] = {f"event_{name}": _build_column(events, name) for name in _EVENT}
    values |= {f"new_{name}": _build_column(changed, name) for name in _CHANGED}
    values |= {f"announced_{name}": getattr(announced, name) for name in announced.__struct_fields__}
    (stored,) = await STORE_CHANGES.all(tx, company_id, *STORE_CHANGES.order(values))
    return stored.has_deliveries


def _build_column(rows: Sequence[Struct], name: str) -> list[object]:
    """Nothing for a column of nulls: `unnest` fills it up, and the driver has no value to look at."""
    values = [getattr(row, name) for row in rows]
    return [] if values.count(None) == len(values) else values


async def hold(tx: Tx, company_id: int, id: str, provider_id: str, error: bytes) -> Message:
    message = await HOLD.find(tx, company_id, id, provider_id, error)
    if message is None:
        raise NotFound
    return message


async def set_replied(tx: Tx, company_id: int, id: str, at: datetime) -> bool:
    """True for the first reply."""
    return await SET_REPLIED.run(tx, company_id, id, at) > 0


async def set_error(tx: Tx, company_id: int, id: str, error: bytes) -> Message:
    message = await SET_ERROR.find(tx, company_id, id, error)
    if message is None:
        raise NotFound
    return message


async def set_attachments(tx: Tx, company_id: int, id: str, attachments: bytes) -> None:
    await SET_ATTACHMENTS.run(tx, company_id, id, attachments)


async def find_locked_pricing(tx: Tx, company_id: int, id: str) -> Raw | None:
    found = await GET_PRICING.find(tx, company_id, id)
    return found.pricing if found else None


async def set_pricing(tx: Tx, company_id: int, id: str, pricing: bytes) -> None:
    await SET_PRICING.run(tx, company_id, id, pricing)


async def set_ticket(tx: Tx, company_id: int, id: str, ticket_id: str, agent_id: int | None = None) -> None:
    await SET_TICKET.run(tx, company_id, id, ticket_id, agent_id)


async def set_parts(tx: Tx, company_id: int, id: str, parts: bytes | None) -> Message:
    message = await SET_PARTS.find(tx, company_id, id, parts)
    if message is None:
        raise NotFound
    return message


async def find_amendable(tx: Tx, company_id: int, source: Source, provider_id: str) -> AmendableMessage | None:
    return await LOCK_AMENDABLE.find(tx, company_id, source, provider_id)


async def amend(tx: Tx, company_id: int, amended: AmendableMessage) -> Message:
    message = await AMEND.find(
        tx, company_id, amended.id, amended.body, amended.edited_at, amended.revoked_at, amended.reactions
    )
    if message is None:
        raise NotFound
    return message


async def find_event_detail(db: Connection, company_id: int, event: NewEvent) -> str | None:
    """Of the stored event with the same message, kind and time."""
    found: str | None = await FIND_DETAIL.value(db, company_id, event.message_id, event.kind, event.reported_at)
    return found


async def insert_events(tx: Tx, company_id: int, events: Sequence[NewEvent]) -> int:
    """The number of new ones."""
    columns = [[getattr(event, name) for event in events] for name in _EVENT]
    return await INSERT_EVENTS.run(tx, company_id, *columns)


async def move_to_ticket(tx: Tx, company_id: int, from_id: str, to_id: str) -> None:
    await MOVE_TO_TICKET.run(tx, company_id, from_id, to_id)


async def is_in_ticket(db: Connection, company_id: int, ticket_id: str, id: str) -> bool:
    return bool(await IS_IN.value(db, company_id, ticket_id, id))


async def list_newest(db: Connection, company_id: int, ticket_id: str, limit: int, before: str | None) -> list[Message]:
    return await NEWEST.all(db, company_id, ticket_id, limit, before)


async def list_unsettled(db: Connection, max_silence: timedelta, limit: int) -> list[UnsettledMessage]:
    """Messages without a report for `max_silence`, by the company's time; oldest first."""
    return await LIST_UNSETTLED.all(db, max_silence, limit)


async def is_in_flight(
    db: Connection, company_id: int, source: Source, identities: Sequence[str], since: datetime, until: datetime
) -> bool:
    """Whether a message to these recipients since then is not accepted by the channel yet."""
    return bool(await IS_IN_FLIGHT.value(db, company_id, source, list(identities), since, until))
