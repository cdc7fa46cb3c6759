"""Queries for events of channels."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from msgspec import Raw, Struct

from sapa.db.listing import Listing
from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql
from sapa.http.errors import NotFound
from sapa.messaging.channel_events.types import ChannelEvent, NewChannelEvent

COLUMNS = ", ".join(ChannelEvent.__struct_fields__)
_INSERTED = NewChannelEvent.__struct_fields__


class StoredAmendment(Struct, frozen=True):
    kind: str
    data: Raw
    occurred_at: datetime


GET = sql(f"SELECT {COLUMNS} FROM channel_events WHERE company_id = $1 AND id = $2", row=ChannelEvent)

# Channels repeat their reports.
INSERT = sql(
    f"""
    WITH inserted AS (
        INSERT INTO channel_events (company_id, {", ".join(_INSERTED)})
        VALUES ($1, {", ".join(f"${n}" for n in range(2, len(_INSERTED) + 2))})
            ON CONFLICT (company_id, connection_id, key) DO NOTHING
        RETURNING company_id, cell
    )
    INSERT INTO counter_deltas (company_id, counter, cell, delta)
    SELECT $1, 'channel_events', cell, 1 FROM inserted WHERE company_id = $1"""
)

LIST_AMENDMENTS = sql(
    """
    SELECT kind, data, occurred_at
      FROM channel_events
     WHERE company_id = $1 AND source = $2 AND message_id = $3 AND kind IN ('edit', 'revoke', 'reaction')
     ORDER BY occurred_at, id""",
    row=StoredAmendment,
)

LIST_OF_CONNECTION = sql(
    f"""
    SELECT {COLUMNS}
      FROM channel_events
     WHERE company_id = $1 AND connection_id = $2
     ORDER BY id DESC
     LIMIT $3""",
    row=ChannelEvent,
)

LISTING = Listing(
    "channel_events",
    row=ChannelEvent,
    counter="channel_events",
    cell="cell",
    filters={"contact_id": "contact_id = {}"},
    sorts={"createdAt": "created_at"},
)

LIST_TO_PURGE = sql(
    "SELECT DISTINCT company_id FROM channel_events WHERE created_at < now() - $1::interval",
    crosses="the worker purges old events of all companies",
)

PURGE = sql(
    """
    WITH purged AS (
        DELETE FROM channel_events
         WHERE company_id = $1 AND id IN (
               SELECT id FROM channel_events
                WHERE company_id = $1 AND created_at < now() - $2::interval
                ORDER BY created_at, id LIMIT $3)
        RETURNING cell
    ), counted AS (
        INSERT INTO counter_deltas (company_id, counter, cell, delta)
        SELECT $1, 'channel_events', cell, -count(*) FROM purged GROUP BY cell
    )
    SELECT count(*) FROM purged"""
)


async def get_event(db: Connection, company_id: int, id: str) -> ChannelEvent:
    event = await GET.find(db, company_id, id)
    if event is None:
        raise NotFound
    return event


async def insert_event(tx: Tx, company_id: int, new: NewChannelEvent) -> bool:
    """False if the report is stored already."""
    return await INSERT.run(tx, company_id, *(getattr(new, name) for name in _INSERTED)) > 0


async def list_amendments(db: Connection, company_id: int, source: str, message_id: str) -> list[StoredAmendment]:
    return await LIST_AMENDMENTS.all(db, company_id, source, message_id)


async def list_of_connection(db: Connection, company_id: int, connection_id: str, limit: int) -> list[ChannelEvent]:
    """The newest first."""
    return await LIST_OF_CONNECTION.all(db, company_id, connection_id, limit)


async def list_events(
    db: Connection, company_id: int, filters: Mapping[str, object], limit: int, offset: int
) -> tuple[list[ChannelEvent], int]:
    """One page, newest first, and the total."""
    return await LISTING.page(db, company_id, filters, "createdAt:desc", limit, offset)


async def list_companies_to_purge(db: Connection, age: timedelta) -> list[int]:
    return [record[0] for record in await db.fetch(LIST_TO_PURGE.text, age)]


async def purge(tx: Tx, company_id: int, age: timedelta, limit: int) -> int:
    return int(await PURGE.value(tx, company_id, age, limit))
