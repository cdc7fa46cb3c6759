"""SQL of callbacks, of the tracking history and of shipments to poll."""

from hashlib import sha256

import msgspec

from sapa.db.due import (
    NOW,
    WORKER,
    build_due,
    build_in_turn,
    build_in_turn_of_shards,
    build_next_due,
    build_next_real_due,
    build_take,
)
from sapa.db.planning import is_sharded
from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql
from sapa.shipping.carriers.interface import CarrierEvent
from sapa.shipping.shipments.types import DueShipment
from sapa.shipping.tracking.types import DueCallback, ShipmentEvent, StoredCarrierCallback

# A repeated callback is ignored, unless it was given up: its shipment may be known now.
INSERT = sql(
    """
    INSERT INTO carrier_callbacks AS stored (company_id, adapter, digest, body, events)
    VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (company_id, adapter, digest) DO UPDATE
       SET events = excluded.events, due_at = excluded.due_at, tries = 0, processed_at = NULL, note = NULL
     WHERE stored.processed_at IS NOT NULL AND stored.note IS NOT NULL"""
)


LIST_DUE = sql(
    "SELECT company_id, id FROM carrier_callbacks WHERE due_at <= statement_timestamp() ORDER BY due_at, id LIMIT $1",
    row=DueCallback,
    crosses="the worker looks for callbacks over all companies, then applies them one by one",
)

LIST_DUE_IN_TURN = sql(
    build_in_turn("carrier_callbacks", "id", "due_at", NOW),
    row=DueCallback,
    crosses="the worker takes callbacks from every company in turn, then applies them one by one",
)

LIST_DUE_OF_SHARDS = sql(
    build_in_turn_of_shards("carrier_callbacks", "id", "due_at", NOW),
    row=DueCallback,
    crosses="the worker takes callbacks from every company in turn, then applies them one by one",
)

LOCK = sql(
    """
    SELECT adapter, events, tries FROM carrier_callbacks
     WHERE company_id = $1 AND id = $2 AND due_at <= statement_timestamp()
       FOR UPDATE SKIP LOCKED""",
    row=StoredCarrierCallback,
)

SETTLE = sql(
    """
    UPDATE carrier_callbacks SET processed_at = statement_timestamp(), due_at = NULL, tries = tries + 1, note = $3
     WHERE company_id = $1 AND id = $2"""
)

POSTPONE = sql(
    """
    UPDATE carrier_callbacks
       SET tries = tries + 1, due_at = statement_timestamp() + make_interval(secs => $3), note = $4
     WHERE company_id = $1 AND id = $2"""
)

COMPANIES_TO_PURGE = sql(
    "SELECT DISTINCT company_id FROM carrier_callbacks WHERE received_at < now() - make_interval(days => $1)",
    crosses="the worker looks for old callbacks over all companies, then deletes them company by company",
)

PURGE = sql(
    """
    DELETE FROM carrier_callbacks
     WHERE company_id = $1 AND processed_at IS NOT NULL AND received_at < now() - make_interval(days => $2)"""
)

# Bounded, because a carrier may send any number of events.
LIST_EVENTS = sql(
    f"""
    SELECT {", ".join(ShipmentEvent.__struct_fields__)}
      FROM (SELECT {", ".join(ShipmentEvent.__struct_fields__)}, dedupe_key
              FROM shipment_events
             WHERE company_id = $1 AND shipment_id = $2
             ORDER BY occurred_at DESC, received_at DESC, dedupe_key DESC
             LIMIT 1000) AS latest
     ORDER BY occurred_at, received_at, dedupe_key""",
    row=ShipmentEvent,
)

LIST_UNTRACKED = sql(
    build_due("shipments", "id", "poll_at"),
    row=DueShipment,
    crosses="the worker looks for shipments to ask after over all companies, then asks for them one by one",
)

LIST_UNTRACKED_IN_TURN = sql(
    build_in_turn("shipments", "id", "poll_at"),
    row=DueShipment,
    crosses="the worker takes shipments from every company in turn, then asks for them one by one",
)

LIST_UNTRACKED_OF_SHARDS = sql(
    build_in_turn_of_shards("shipments", "id", "poll_at"),
    row=DueShipment,
    crosses="the worker takes shipments from every company in turn, then asks for them one by one",
)

NEXT_POLLS = sql(build_next_due("shipments", "poll_at"), crosses=WORKER)

NEXT_CALLBACKS = sql(build_next_real_due("carrier_callbacks", "due_at"), crosses=WORKER)

LEASE_UNTRACKED = sql(build_take("shipments", "id", "poll_at"))


async def insert_callback(
    db: Connection, company_id: int, adapter: str, body: bytes, events: list[CarrierEvent]
) -> None:
    """Without its headers, which may carry tokens."""
    await INSERT.run(db, company_id, adapter, sha256(body).digest(), body, msgspec.json.encode(events))


async def list_due(db: Connection, most: int) -> list[DueCallback]:
    """In order of arrival per company."""
    found = await LIST_DUE.all(db, most)
    if len(found) < most:
        return found
    return await (LIST_DUE_OF_SHARDS if await is_sharded(db) else LIST_DUE_IN_TURN).all(db, most)


async def find_locked_callback(tx: Tx, due: DueCallback) -> StoredCarrierCallback | None:
    """None if it is no longer due, or another worker holds it."""
    return await LOCK.find(tx, due.company_id, due.id)


async def settle(db: Connection, due: DueCallback, note: str | None) -> None:
    await SETTLE.run(db, due.company_id, due.id, note)


async def postpone(db: Connection, due: DueCallback, seconds: float, note: str) -> None:
    await POSTPONE.run(db, due.company_id, due.id, seconds, note)


async def purge_old(db: Connection, days: int) -> None:
    for (company_id,) in await db.fetch(COMPANIES_TO_PURGE.text, days):
        await PURGE.run(db, company_id, days)


async def list_events(db: Connection, company_id: int, shipment_id: str) -> list[ShipmentEvent]:
    """The latest events, oldest first."""
    return await LIST_EVENTS.all(db, company_id, shipment_id)


async def list_untracked(db: Connection, most: int) -> list[DueShipment]:
    """Shipments without a recent event."""
    found = await LIST_UNTRACKED.all(db, most)
    if len(found) < most:
        return found
    return await (LIST_UNTRACKED_OF_SHARDS if await is_sharded(db) else LIST_UNTRACKED_IN_TURN).all(db, most)


async def lease_untracked(db: Connection, due: DueShipment, seconds: float) -> bool:
    return await LEASE_UNTRACKED.run(db, due.company_id, due.id, seconds) > 0
