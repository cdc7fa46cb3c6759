"""Queries for SLA policies."""

from collections.abc import Mapping

from sapa.db.listing import Listing
from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql
from sapa.http.errors import NotFound
from sapa.support.sla.types import SlaPolicy

COLUMNS = ", ".join(SlaPolicy.__struct_fields__)

GET = sql(f"SELECT {COLUMNS} FROM sla_policies WHERE company_id = $1 AND id = $2", row=SlaPolicy)

INSERT = sql(
    f"""
    WITH inserted AS (
        INSERT INTO sla_policies (company_id, id, name, position, priorities, sources, label_ids,
                                  first_response_minutes, resolution_minutes, in_business_hours)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
        RETURNING company_id, {COLUMNS}
    ), counted AS (
        INSERT INTO counter_deltas (company_id, counter, cell, delta) SELECT $1, 'sla_policies', '', 1 FROM inserted
    )
    SELECT {COLUMNS} FROM inserted WHERE company_id = $1""",
    row=SlaPolicy,
)

UPDATE = sql(
    f"""
    UPDATE sla_policies
       SET name = $3, position = $4, priorities = $5, sources = $6, label_ids = $7, first_response_minutes = $8,
           resolution_minutes = $9, in_business_hours = $10, updated_at = statement_timestamp()
     WHERE company_id = $1 AND id = $2
    RETURNING {COLUMNS}""",
    row=SlaPolicy,
)

DELETE = sql(
    """
    WITH deleted AS (
        DELETE FROM sla_policies WHERE company_id = $1 AND id = $2 RETURNING id
    ), counted AS (
        INSERT INTO counter_deltas (company_id, counter, cell, delta)
        SELECT $1, 'sla_policies', '', -1 FROM deleted
    )
    SELECT id FROM deleted"""
)

LIST_ALL = sql(f"SELECT {COLUMNS} FROM sla_policies WHERE company_id = $1 ORDER BY position, id", row=SlaPolicy)

LISTING = Listing(
    "sla_policies",
    row=SlaPolicy,
    counter="sla_policies",
    filters={},
    sorts={"createdAt": "created_at"},
)


async def get_sla_policy(db: Connection, company_id: int, id: str) -> SlaPolicy:
    return _or_not_found(await GET.find(db, company_id, id))


async def insert_sla_policy(tx: Tx, company_id: int, id: str, *columns: object) -> SlaPolicy:
    return _or_not_found(await INSERT.find(tx, company_id, id, *columns))


async def update_sla_policy(tx: Tx, company_id: int, id: str, *columns: object) -> SlaPolicy:
    return _or_not_found(await UPDATE.find(tx, company_id, id, *columns))


async def delete_sla_policy(tx: Tx, company_id: int, id: str) -> None:
    if await DELETE.value(tx, company_id, id) is None:
        raise NotFound


async def list_all_policies(db: Connection, company_id: int) -> list[SlaPolicy]:
    """In the order in which they are tried."""
    return await LIST_ALL.all(db, company_id)


async def list_sla_policies(
    db: Connection, company_id: int, filters: Mapping[str, object], limit: int, offset: int
) -> tuple[list[SlaPolicy], int]:
    return await LISTING.page(db, company_id, filters, "createdAt:desc", limit, offset)


def _or_not_found(sla_policy: SlaPolicy | None) -> SlaPolicy:
    if sla_policy is None:
        raise NotFound
    return sla_policy
