"""Events: what the product announces, recorded in the transaction that made the change."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import msgspec

from sapa.db.pool import PooledConnection, Tx, notify_after_commit
from sapa.db.sql import sql
from sapa.values.api_base import Base
from sapa.values.company import Company
from sapa.values.ids import IdKind
from sapa.values.json import encode

EVENT_ID = IdKind("evt_")

DELIVERY_ID = IdKind("whd_")
CHANNEL = "sapa_events"
"""Notified when there are new deliveries."""


class EventRecipient(msgspec.Struct, frozen=True):
    """An event that an endpoint is subscribed to."""

    endpoint_id: str
    event_id: str
    event_at: str


RECORD = sql(
    """
    WITH recorded AS (
        INSERT INTO events (company_id, id, kind, resource_id, body)
        SELECT $1, input.id, input.kind, input.resource_id, input.body
          FROM unnest($2::text[], $3::text[], $4::text[], $5::bytea[]) AS input (id, kind, resource_id, body)
        RETURNING id, kind, created_at
    )
    SELECT e.id AS endpoint_id, r.id AS event_id, r.created_at AS event_at
      FROM webhook_endpoints e
      JOIN recorded r ON e.kinds = '{}' OR r.kind = ANY(e.kinds)
     WHERE e.company_id = $1 AND e.status = 'active'""",
    row=EventRecipient,
)

# Due at the event's time, and so before later retries.
QUEUE = sql(
    """
    WITH counted AS (
        INSERT INTO counter_deltas (company_id, counter, cell, delta)
        VALUES ($1, 'webhook_queue', '', cardinality($2::text[]))
    )
    INSERT INTO webhook_queue (company_id, id, endpoint_id, due_at, event_id, event_at)
    SELECT $1, w.id, w.endpoint_id, w.event_at, w.event_id, w.event_at
      FROM unnest($2::text[], $3::text[], $4::text[], $5::text[]::timestamptz[])
           AS w (id, endpoint_id, event_id, event_at)"""
)


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


async def emit_all(tx: Tx, company: Company, events: Sequence[Event]) -> None:
    """Many events at once, in their order."""
    if isinstance(tx, PooledConnection) and tx.is_silent:
        return
    recipients = await RECORD.all(
        tx,
        company.id,
        [EVENT_ID.new() for _ in events],
        [event.kind for event in events],
        [event.resource_id for event in events],
        [encode(event.resource) for event in events],
    )
    if not recipients:
        return
    await QUEUE.run(
        tx,
        company.id,
        [DELIVERY_ID.new() for _ in recipients],
        [recipient.endpoint_id for recipient in recipients],
        [recipient.event_id for recipient in recipients],
        [recipient.event_at for recipient in recipients],
    )
    notify_after_commit(tx, CHANNEL)
