"""Events: what the product announces, recorded in the transaction that made the change."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import msgspec

from sapa.db.pool import PooledConnection, Tx, notify_after_commit
from sapa.db.sql import compose
from sapa.values.api_base import Base
from sapa.values.company import Company
from sapa.values.ids import ALPHABET, IdKind
from sapa.values.json import encode

EVENT_ID = IdKind("evt_")

DELIVERY_ID = IdKind("whd_")
CHANNEL = "sapa_events"
"""Notified when there are new deliveries."""


# Due at the event's time, and so before later retries. A delivery's id is its event's, but for the number of the
# endpoint in the last two characters.
RECORDED = f"""recorded AS (
    INSERT INTO events (company_id, id, kind, resource_id, body)
    SELECT $1, id, kind, resource_id, body
      FROM announced
    RETURNING id, kind, created_at),
deliveries AS (
    SELECT e.id AS endpoint_id, r.id AS event_id, r.created_at AS event_at,
           (row_number() OVER (PARTITION BY r.id ORDER BY e.id) - 1)::int AS number
      FROM webhook_endpoints e
      JOIN recorded r ON e.kinds = '{{}}' OR r.kind = ANY(e.kinds)
     WHERE e.company_id = $1 AND e.status = 'active'),
queued AS (
    INSERT INTO webhook_queue (company_id, id, endpoint_id, due_at, event_id, event_at)
    SELECT $1, '{DELIVERY_ID.prefix}' || substr(event_id, {len(EVENT_ID.prefix) + 1}, 24)
                || substr('{ALPHABET}', number / 32 % 32 + 1, 1) || substr('{ALPHABET}', number % 32 + 1, 1),
           endpoint_id, event_at, event_id, event_at
      FROM deliveries),
counted_queue AS (
    INSERT INTO counter_deltas (company_id, counter, cell, delta)
    SELECT $1, 'webhook_queue', '', count(*)
      FROM deliveries
    HAVING count(*) > 0)"""
"""A part of statements: records the events of the part `announced` (id, kind, resource_id, body) and queues their
deliveries."""

ANNOUNCED = """announced AS (
    SELECT *
      FROM unnest(:event_ids::text[], :event_kinds::text[], :event_resource_ids::text[], :event_bodies::bytea[])
           AS a (id, kind, resource_id, body))"""
"""A part of statements: encoded events, for the part that records them."""


def build_announced(body: str) -> str:
    """A part of statements: the event of the row in the part `stored`, unless `:event_id` is null. `body` is an
    expression of that part's columns."""
    return f"""announced AS (
        SELECT :event_id::text AS id, :event_kind::text AS kind, id AS resource_id, {body} AS body
          FROM stored
         WHERE :event_id::text IS NOT NULL)"""


class RecordedEvents(msgspec.Struct, frozen=True):
    has_deliveries: bool


RECORD = compose([ANNOUNCED, RECORDED], "SELECT EXISTS (SELECT FROM deliveries) AS has_deliveries", row=RecordedEvents)


class Event:
    """One kind of event. A subclass is the whole declaration: kind, base, resource type, and a docstring for the
    catalogue."""

    kind: ClassVar[str]
    base: ClassVar[Base]
    """The part of the API whose document describes it."""
    resource_type: ClassVar[type[msgspec.Struct]]

    def __init__(self, resource: Any) -> None:
        self.resource = resource

    @property
    def resource_id(self) -> str:
        return str(self.resource.id)

    def __init_subclass__(cls) -> None:
        if missing := [name for name in ("kind", "base", "resource_type") if not hasattr(cls, name)]:
            raise TypeError(f"The event {cls.__name__} declares no {', '.join(missing)}.")
        CATALOGUE[cls.kind] = cls


CATALOGUE: dict[str, type[Event]] = {}
"""Every event kind, for the reference, the console and webhook subscriptions."""


async def emit(tx: Tx, company: Company, event: Event) -> None:
    """Records the event with the exact bytes that receivers get, and queues its deliveries."""
    await emit_all(tx, company, [event])


@contextmanager
def silence(tx: Tx) -> Iterator[None]:
    """Inside the block no event is recorded: for history that is brought in, which receivers know already."""
    if not isinstance(tx, PooledConnection):
        raise TypeError("only a connection of the pool can be silenced")
    tx.is_silent = True
    try:
        yield
    finally:
        tx.is_silent = False


class EncodedEvents(msgspec.Struct, frozen=True):
    """Many events, as `emit_encoded` records them."""

    ids: list[str]
    kinds: list[str]
    resource_ids: list[str]
    bodies: list[bytes]

    def name_values(self) -> dict[str, object]:
        """The parameters of `ANNOUNCED`."""
        return {
            "event_ids": self.ids,
            "event_kinds": self.kinds,
            "event_resource_ids": self.resource_ids,
            "event_bodies": self.bodies,
        }


def encode_events(events: Sequence[Event]) -> EncodedEvents:
    return EncodedEvents(
        [EVENT_ID.new() for _ in events],
        [event.kind for event in events],
        [event.resource_id for event in events],
        [encode(event.resource) for event in events],
    )


async def emit_all(tx: Tx, company: Company, events: Sequence[Event]) -> None:
    """Many events at once, in their order."""
    if not is_silent(tx):
        await emit_encoded(tx, company, encode_events(events))


async def emit_encoded(tx: Tx, company: Company, events: EncodedEvents) -> None:
    """For events that were encoded while the database stored what they are about."""
    if not events.ids or is_silent(tx):
        return
    has_deliveries = await RECORD.value(tx, company.id, *RECORD.order(events.name_values()))
    if has_deliveries:
        notify_after_commit(tx, CHANNEL)


def is_silent(tx: Tx) -> bool:
    """Whether the transaction records no events."""
    return isinstance(tx, PooledConnection) and tx.is_silent
