"""SQL of settlements and differences."""

from collections.abc import Mapping, Sequence

from sapa.db.listing import Listing
from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql
from sapa.http.errors import NotFound
from sapa.shipping.settlements.types import CodDifference, Settlement, SettlementLine

_DIFFERENCE = "trim_scale(remitted_amount - expected_amount)"
_SETTLEMENT = ", ".join(
    f"{_DIFFERENCE} AS difference" if name == "difference" else name for name in Settlement.__struct_fields__
)
_LINE = ", ".join(
    f"{_DIFFERENCE} AS difference" if name == "difference" else name for name in SettlementLine.__struct_fields__
)
_COD_DIFFERENCE = ", ".join(CodDifference.__struct_fields__)

INSERT = sql(
    f"""
    WITH counted AS (
        INSERT INTO counter_deltas (company_id, counter, cell, delta) VALUES ($1, 'settlements', '', 1)
    )
    INSERT INTO settlements (company_id, id, provider, reference, remitted_at, currency, parcels, differing,
                             expected_amount, remitted_amount, fingerprint)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
    RETURNING {_SETTLEMENT}""",
    row=Settlement,
)

INSERT_LINES = sql(
    """
    INSERT INTO settlement_lines (company_id, settlement_id, number, parcel, shipment_id, cod_amount, cod_fee,
                                  carrier_fee, insurance_fee, expected_amount, remitted_amount)
    SELECT $1, $2, line.*
      FROM unnest($3::integer[], $4::text[], $5::text[], $6::numeric[], $7::numeric[], $8::numeric[], $9::numeric[],
                  $10::numeric[], $11::numeric[]) AS line"""
)

INSERT_DIFFERENCES = sql(
    """
    WITH inserted AS (
        INSERT INTO cod_differences (company_id, id, kind, parcel, shipment_id, order_id, settlement_id, line, currency,
                                     expected, actual, difference)
        SELECT $1, found.*
          FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::integer[], $9::text[],
                      $10::numeric[], $11::numeric[], $12::numeric[]) AS found
        RETURNING company_id, cell
    )
    INSERT INTO counter_deltas (company_id, counter, cell, delta)
    SELECT $1, 'cod_differences', cell, count(*) FROM inserted WHERE company_id = $1 GROUP BY cell"""
)

RESOLVE = sql(
    f"""
    WITH resolved AS (
        UPDATE cod_differences SET resolved_at = $3, note = $4
         WHERE company_id = $1 AND id = $2 AND resolved_at IS NULL
        RETURNING {_COD_DIFFERENCE}
    ), counted AS (
        INSERT INTO counter_deltas (company_id, counter, cell, delta)
        SELECT $1, 'cod_differences', moved.cell, moved.delta
          FROM resolved
         CROSS JOIN LATERAL (VALUES (kind || '/open', -1), (kind || '/resolved', 1)) AS moved (cell, delta)
    )
    SELECT {_COD_DIFFERENCE} FROM resolved""",
    row=CodDifference,
)

GET = sql(f"SELECT {_SETTLEMENT} FROM settlements WHERE company_id = $1 AND id = $2", row=Settlement)

# One statement at a time, so that the same one sent twice at once is stored once and found by the other call.
LOCK_STATEMENTS = sql("SELECT pg_advisory_xact_lock(hashtextextended('settlements of ' || $1::bigint, 0))")

FIND_SAME = sql(
    f"""
    SELECT {_SETTLEMENT}
      FROM settlements
     WHERE company_id = $1 AND provider = $2 AND reference = $3 AND fingerprint = $4""",
    row=Settlement,
)

LIST_LINES = sql(
    f"""
    SELECT {_LINE}
      FROM settlement_lines
     WHERE company_id = $1 AND settlement_id = $2
     ORDER BY number
     LIMIT $3 OFFSET $4""",
    row=SettlementLine,
)

GET_DIFFERENCE = sql(
    f"SELECT {_COD_DIFFERENCE} FROM cod_differences WHERE company_id = $1 AND id = $2", row=CodDifference
)

SETTLEMENTS = Listing(
    "settlements",
    row=Settlement,
    counter="settlements",
    filters={"provider": "provider = {}", "differing": "(differing > 0 AND {}::boolean)"},
    sorts={"createdAt": "created_at"},
    columns={"difference": "trim_scale(r.remitted_amount - r.expected_amount)"},
)

DIFFERENCES = Listing(
    "cod_differences",
    row=CodDifference,
    counter="cod_differences",
    cell="cell",
    filters={"shipment_id": "shipment_id = {}", "settlement_id": "settlement_id = {}"},
    sorts={"createdAt": "created_at"},
)


async def insert_settlement(tx: Tx, company_id: int, *values: object) -> Settlement:
    """In the order of the columns. Raises SettlementExists for a second one with the same reference."""
    inserted = await INSERT.find(tx, company_id, *values)
    if inserted is None:
        raise AssertionError("an insert returns its row")
    return inserted


async def insert_lines(tx: Tx, company_id: int, settlement_id: str, rows: Sequence[Sequence[object]]) -> None:
    await INSERT_LINES.run(tx, company_id, settlement_id, *map(list, zip(*rows, strict=True)))


async def insert_differences(tx: Tx, company_id: int, rows: Sequence[Sequence[object]]) -> None:
    if rows:
        await INSERT_DIFFERENCES.run(tx, company_id, *map(list, zip(*rows, strict=True)))


async def resolve_difference(tx: Tx, company_id: int, id: str, *values: object) -> CodDifference | None:
    """None if it is not there, or resolved before."""
    return await RESOLVE.find(tx, company_id, id, *values)


async def lock_statements(tx: Tx, company_id: int) -> None:
    """Until the transaction ends."""
    await LOCK_STATEMENTS.run(tx, company_id)


async def find_same(
    db: Connection, company_id: int, provider: str, reference: str, fingerprint: bytes
) -> Settlement | None:
    return await FIND_SAME.find(db, company_id, provider, reference, fingerprint)


async def get_settlement(db: Connection, company_id: int, id: str) -> Settlement:
    found = await GET.find(db, company_id, id)
    if found is None:
        raise NotFound
    return found


async def get_difference(db: Connection, company_id: int, id: str) -> CodDifference:
    found = await GET_DIFFERENCE.find(db, company_id, id)
    if found is None:
        raise NotFound
    return found


async def list_lines(
    db: Connection, company_id: int, settlement_id: str, limit: int, offset: int
) -> list[SettlementLine]:
    return await LIST_LINES.all(db, company_id, settlement_id, limit, offset)


async def list_settlements(
    db: Connection, company_id: int, filters: Mapping[str, object], limit: int, offset: int
) -> tuple[list[Settlement], int]:
    return await SETTLEMENTS.page(db, company_id, filters, "createdAt:desc", limit, offset)


async def list_differences(
    db: Connection, company_id: int, filters: Mapping[str, object], limit: int, offset: int
) -> tuple[list[CodDifference], int]:
    return await DIFFERENCES.page(db, company_id, filters, "createdAt:desc", limit, offset)
