"""SQL of shipments."""

from collections.abc import Mapping, Sequence
from typing import TypeVar

from msgspec import Struct

from sapa.db.due import TEST_CLOCKS, build_clock
from sapa.db.listing import Listing
from sapa.db.pool import Connection, Tx
from sapa.db.sql import build_instant_text, compose, sql
from sapa.db.write_columns import WriteColumns
from sapa.events import RECORDED, build_announced
from sapa.shipping.carriers.interface import CarrierEvent
from sapa.shipping.errors import ShipmentNotFound
from sapa.shipping.providers import PROVIDERS
from sapa.shipping.shipments.types import LONGEST_CANCEL, LONGEST_POLL, InsertedShipment, ParcelMatch, ShipmentKey
from sapa.shipping.states import WITHOUT_CASH
from sapa.shipping.types import Shipment, StoredShipment

Row = TypeVar("Row", bound=Struct)

COUNTER = "shipments"
COLUMNS = ", ".join(Shipment.__struct_fields__)
STORED_COLUMNS = ", ".join(StoredShipment.__struct_fields__)

WRITTEN = WriteColumns(StoredShipment, "search_text", "quoted_days", without={"id", "created_at", "updated_at", "cell"})
_NEXT = len(WRITTEN.names) + 3

GET = sql(f"SELECT {COLUMNS} FROM shipments WHERE company_id = $1 AND id = $2", row=Shipment)

GET_STORED = sql(f"SELECT {STORED_COLUMNS} FROM shipments WHERE company_id = $1 AND id = $2", row=StoredShipment)

LIST_STORED = sql(
    f"SELECT {STORED_COLUMNS} FROM shipments WHERE company_id = $1 AND id = ANY($2::text[])", row=StoredShipment
)

FIND_TRACKING_PAGE = sql(
    "SELECT company_id, id FROM shipments WHERE tracking_page = $1 LIMIT 1",
    row=ShipmentKey,
    crosses="a public tracking page names no company; its address is as good as a key",
)

FIND_ORDER_ID = sql("SELECT order_id FROM shipments WHERE company_id = $1 AND id = $2")

LOCK = sql(
    f"SELECT {STORED_COLUMNS} FROM shipments WHERE company_id = $1 AND id = $2 FOR UPDATE",
    row=StoredShipment,
)

_BODY = f""":body_start::bytea || convert_to({build_instant_text("created_at")} || '","updatedAt":"'
                                                || {build_instant_text("updated_at")} || '"}}', 'UTF8')"""

INSERT = compose(
    [
        f"""stored AS (
        INSERT INTO shipments (company_id, id, {WRITTEN.listed}, created_at, updated_at)
        SELECT $1, :id::text, {WRITTEN.named("")}, at, at
          FROM (SELECT clock_timestamp() AS at) AS clock
        RETURNING id, created_at, updated_at, cell)""",
        """counted AS (
        INSERT INTO counter_deltas (company_id, counter, cell, delta) SELECT $1, 'shipments', cell, 1 FROM stored)""",
        build_announced(_BODY),
        RECORDED,
    ],
    "SELECT created_at, updated_at, cell, EXISTS (SELECT FROM deliveries) AS has_deliveries FROM stored",
    row=InsertedShipment,
)

# The update may have waited for the row's lock, so the time is that of the change and never precedes an earlier one.
# Changes that are not visible leave updated_at as it is.
SAVE = sql(
    f"""
    WITH changed AS (
        UPDATE shipments
           SET {WRITTEN.assigned(3)},
               updated_at = CASE WHEN ${_NEXT + 1} THEN GREATEST(clock.now, updated_at) ELSE updated_at END
          FROM (SELECT statement_timestamp() AS now) AS clock
         WHERE company_id = $1 AND id = $2
        RETURNING {STORED_COLUMNS}
    ), counted AS (
        INSERT INTO counter_deltas (company_id, counter, cell, delta)
        SELECT $1, 'shipments', moved.cell, moved.delta
          FROM changed
         CROSS JOIN LATERAL (VALUES (${_NEXT}, -1), (changed.cell, 1)) AS moved (cell, delta)
         WHERE changed.cell <> ${_NEXT}
    )
    SELECT {STORED_COLUMNS} FROM changed""",
    row=StoredShipment,
)

DELETE = sql(
    """
    WITH deleted AS (
        DELETE FROM shipments WHERE company_id = $1 AND id = $2 RETURNING cell
    )
    INSERT INTO counter_deltas (company_id, counter, cell, delta)
    SELECT $1, 'shipments', cell, -1 FROM deleted"""
)

LIST_REMITTED = sql(
    """
    SELECT coalesce(array_agg(reference), '{}') AS found
      FROM shipments
     WHERE company_id = $1 AND cod_amount IS NOT NULL AND cod_remitted_at IS NOT NULL AND reference = ANY($2)"""
)

# A batch is locked in the order in which all who change several shipments lock them.
DETACH_STORE = sql(
    f"""
    UPDATE shipments
       SET store_location_id = NULL, updated_at = GREATEST(statement_timestamp(), updated_at)
     WHERE company_id = $1 AND id = ANY(ARRAY(
           SELECT id FROM shipments
            WHERE company_id = $1 AND store_location_id = $2 AND id = ANY(ARRAY(
                  SELECT id FROM shipments WHERE company_id = $1 AND store_location_id = $2 LIMIT $3))
            ORDER BY id
              FOR UPDATE))
    RETURNING {COLUMNS}""",
    row=Shipment,
)

_WITHOUT_CASH = ", ".join(f"'{status}'" for status in sorted(WITHOUT_CASH))

# One array for all: the folded search text, and the range of ids.
_BY_NUMBER = """awb = ({0}::text[])[2] OR order_no = ({0}::text[])[2]
              OR (id >= ({0}::text[])[2] AND id < ({0}::text[])[3])"""

LISTING = Listing(
    "shipments",
    row=Shipment,
    counter=COUNTER,
    cell="cell",
    filters={
        "search": f"(search_text LIKE ({{0}}::text[])[1] OR {_BY_NUMBER})",
        "short_search": f"(strpos(search_text, ({{0}}::text[])[1]) > 0 OR {_BY_NUMBER})",
        "order_id": "order_id = {}",
        "order_ids": "order_id = ANY({}::text[])",
        "awb": "awb = {}",
        "store_location_id": "store_location_id = {}",
        "needing_action": "(needs_action AND {}::boolean)",
        "no_action_needed": "(NOT needs_action AND {}::boolean)",
        "cod_expected": "(cod_amount IS NOT NULL AND cod_collected_at IS NULL AND {}::boolean"
        f" AND shipping_status NOT IN ({_WITHOUT_CASH}))",
        "cod_collected": "(cod_amount IS NOT NULL AND cod_collected_at IS NOT NULL AND cod_remitted_at IS NULL"
        " AND {}::boolean)",
        "cod_remitted": "(cod_amount IS NOT NULL AND cod_remitted_at IS NOT NULL AND {}::boolean)",
        "return_of": "return_of = {}",
        "created_from": "created_at >= {}",
        "created_to": "created_at <= {}",
    },
    sorts={"createdAt": "created_at"},
)


INSERT_EVENT = sql(
    """
    INSERT INTO shipment_events (company_id, shipment_id, dedupe_key, occurred_at, status, status_code, text, reason,
                                 receiver, proof, source, applied)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
        ON CONFLICT (company_id, shipment_id, dedupe_key) DO NOTHING"""
)

LOCK_MANY = sql(
    f"SELECT {STORED_COLUMNS} FROM shipments WHERE company_id = $1 AND id = ANY($2) ORDER BY id FOR UPDATE",
    row=StoredShipment,
)

# Each number by its own index; a parcel that was booked again is found by its earlier references, too.
MATCH_PARCELS = sql(
    """
    SELECT s.id, s.awb AS number FROM shipments s
     WHERE s.company_id = $1 AND s.awb = ANY($2) AND s.provider = $3 AND s.currency = $4
     UNION ALL
    SELECT s.id, s.order_no FROM shipments s
     WHERE s.company_id = $1 AND s.order_no = ANY($2) AND s.provider = $3 AND s.currency = $4
     UNION ALL
    SELECT s.id, s.id FROM shipments s
     WHERE s.company_id = $1 AND s.id = ANY($2) AND s.provider = $3 AND s.currency = $4
     UNION ALL
    SELECT s.id, b.reference FROM shipment_bookings b
      JOIN shipments s ON s.company_id = $1 AND s.id = b.shipment_id
     WHERE b.company_id = $1 AND b.reference = ANY($2) AND s.provider = $3 AND s.currency = $4""",
    row=ParcelMatch,
)

_IS_CANCEL_LOST = f"s.cancel_due_at - clock.now > make_interval(secs => {LONGEST_CANCEL})"
_TAKES_HOURS = " AND ".join(f"s.provider <> '{name}'" for name, traits in PROVIDERS.items() if traits.pace == "parcel")
_IS_POLL_LOST = f"""(s.poll_at - clock.now > make_interval(secs => {LONGEST_POLL["ride"]})
                AND ({_TAKES_HOURS}
                     OR s.poll_at - clock.now > make_interval(secs => {LONGEST_POLL["parcel"]})))"""

LIST_REWOUND = sql(
    f"""
    SELECT DISTINCT s.company_id
      FROM shipments s
      JOIN {TEST_CLOCKS} ON clock.company_id = s.company_id
     WHERE {_IS_POLL_LOST} OR {_IS_CANCEL_LOST}""",
    crosses="the worker looks for test clocks that were set back, in all companies",
)

RESCHEDULE = sql(
    f"""
    UPDATE shipments s
       SET poll_at = CASE WHEN {_IS_POLL_LOST} THEN clock.now ELSE s.poll_at END,
           cancel_due_at = CASE WHEN {_IS_CANCEL_LOST} THEN clock.now ELSE s.cancel_due_at END
      FROM {build_clock()}
     WHERE s.company_id = $1 AND ({_IS_POLL_LOST} OR {_IS_CANCEL_LOST})"""
)


async def get_shipment(db: Connection, company_id: int, id: str) -> Shipment:
    return _or_not_found(await GET.find(db, company_id, id))


async def get_stored(db: Connection, company_id: int, id: str) -> StoredShipment:
    return _or_not_found(await GET_STORED.find(db, company_id, id))


async def list_stored(db: Connection, company_id: int, ids: Sequence[str]) -> list[StoredShipment]:
    return await LIST_STORED.all(db, company_id, ids)


async def find_tracking_page(db: Connection, path: str) -> ShipmentKey | None:
    return await FIND_TRACKING_PAGE.find(db, path)


async def find_order_id(db: Connection, company_id: int, id: str) -> str | None:
    order_id: str | None = await FIND_ORDER_ID.value(db, company_id, id)
    return order_id


async def lock_shipment(tx: Tx, company_id: int, id: str) -> StoredShipment:
    return _or_not_found(await LOCK.find(tx, company_id, id))


async def lock_shipments(tx: Tx, company_id: int, ids: Sequence[str]) -> list[StoredShipment]:
    """In the order of their ids, so that two calls with the same ones cannot wait for each other."""
    return await LOCK_MANY.all(tx, company_id, list(ids))


async def match_parcels(
    db: Connection, company_id: int, numbers: Sequence[str], provider: str, currency: str
) -> list[ParcelMatch]:
    """The shipments that have one of the numbers: an awb, an orderNo, a reference or an id."""
    return await MATCH_PARCELS.all(db, company_id, list(numbers), provider, currency)


async def list_remitted(db: Connection, company_id: int, references: Sequence[str]) -> list[str]:
    found: list[str] = await LIST_REMITTED.value(db, company_id, list(references))
    return found


async def insert_shipment(
    tx: Tx, company_id: int, shipment: StoredShipment, event_id: str | None, event_kind: str, body_start: bytes
) -> InsertedShipment:
    """Stores it with its event, unless that has no id."""
    values = {
        **WRITTEN.name_values("", shipment),
        "id": shipment.id,
        "event_id": event_id,
        "event_kind": event_kind,
        "body_start": body_start,
    }
    return _or_not_found(await INSERT.find(tx, company_id, *INSERT.order(values)))


async def save_shipment(tx: Tx, company_id: int, stored: StoredShipment, is_visible: bool) -> StoredShipment:
    """`stored.cell` is the counter cell it leaves."""
    return _or_not_found(await SAVE.find(tx, company_id, stored.id, *WRITTEN.values(stored), stored.cell, is_visible))


async def delete_shipment(tx: Tx, company_id: int, id: str) -> None:
    await DELETE.run(tx, company_id, id)


async def detach_store(tx: Tx, company_id: int, store_id: str, most: int) -> list[Shipment]:
    """Clears the store of up to `most` shipments and returns them."""
    return await DETACH_STORE.all(tx, company_id, store_id, most)


async def list_shipments(
    db: Connection, company_id: int, filters: Mapping[str, object], limit: int, offset: int
) -> tuple[list[Shipment], int]:
    """One page, newest first, and the total."""
    return await LISTING.page(db, company_id, filters, "createdAt:desc", limit, offset)


async def insert_event(
    tx: Tx, company_id: int, shipment_id: str, event: CarrierEvent, source: str, applied: bool
) -> bool:
    """False if the event is known already."""
    inserted = await INSERT_EVENT.run(
        tx, company_id, shipment_id, event.dedupe_key, event.occurred_at, event.status, event.status_code,
        event.text, event.reason, event.receiver, list(event.proof), source, applied,
    )  # fmt: skip
    return inserted > 0


async def list_rewound(db: Connection) -> list[int]:
    """Companies whose shipments wait for a time from which a test clock was set back."""
    return [company_id for (company_id,) in await db.fetch(LIST_REWOUND.text)]


async def reschedule(db: Connection, company_id: int) -> None:
    """Makes those shipments due now."""
    await RESCHEDULE.run(db, company_id)


def _or_not_found(row: Row | None) -> Row:
    if row is None:
        raise ShipmentNotFound
    return row
