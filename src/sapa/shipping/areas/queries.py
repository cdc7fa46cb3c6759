"""SQL of areas: the installation's dictionary and the coverage cache."""

from collections.abc import Sequence

from msgspec import Raw, Struct

from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql
from sapa.shipping.areas.types import AreaDataset, AreaRow
from sapa.shipping.carriers.interface import CarrierArea

_LOCK = 0xA5EA5  # any number that no other advisory lock uses
_DICTIONARY = "the dictionary of places belongs to no company"


class CachedCoverage(Struct, frozen=True):
    areas: Raw
    is_fresh: bool


class AreaChanges(Struct, frozen=True):
    created: int
    updated: int


LOCK_CHANGES = sql("SELECT pg_advisory_xact_lock($1)", crosses=_DICTIONARY)

LIST_DATASETS = sql(
    "SELECT name, sha512, areas, imported_at FROM area_datasets ORDER BY id DESC LIMIT $1",
    row=AreaDataset,
    crosses=_DICTIONARY,
)

INSERT_DATASET = sql(
    "INSERT INTO area_datasets (name, sha512, areas) VALUES ($1, $2, $3) RETURNING name, sha512, areas, imported_at",
    row=AreaDataset,
    crosses=_DICTIONARY,
)

CLEAR_STAGING = sql("DELETE FROM area_arrivals", crosses=_DICTIONARY)

UPSERT_AREAS = sql(
    """
    WITH changed AS (
        INSERT INTO areas AS a (code, level, parent, name)
        SELECT code, level, parent, name FROM area_arrivals WHERE code = ANY($1::bigint[])
        ON CONFLICT (code) DO UPDATE SET level = excluded.level, parent = excluded.parent, name = excluded.name,
                                         retired_at = NULL
         WHERE a.retired_at IS NOT NULL OR a.name <> excluded.name
        RETURNING xmax = 0 AS is_new
    )
    SELECT count(*) FILTER (WHERE is_new) AS created, count(*) FILTER (WHERE NOT is_new) AS updated FROM changed""",
    row=AreaChanges,
    crosses=_DICTIONARY,
)

RETIRE_MISSING = sql(
    """
    UPDATE areas
       SET retired_at = now()
     WHERE retired_at IS NULL AND NOT EXISTS (SELECT FROM area_arrivals AS n WHERE n.code = areas.code)""",
    crosses=_DICTIONARY,
)

LIST_AREAS = sql(
    """
    SELECT code AS id, name, NULLIF(parent, 0) AS parent_id, NULL::text AS zip
      FROM areas
     WHERE parent = $1 AND level = $2 AND retired_at IS NULL
     ORDER BY name, code""",
    row=CarrierArea,
    crosses=_DICTIONARY,
)

HAS_AREAS = sql("SELECT EXISTS (SELECT FROM areas WHERE retired_at IS NULL)", crosses=_DICTIONARY)

FIND_CACHED = sql(
    """
    SELECT areas, fetched_at > now() - make_interval(days => $5) AS is_fresh
      FROM coverage_cache
     WHERE company_id = $1 AND adapter = $2 AND level = $3 AND parent = $4
       AND fetched_at > now() - make_interval(days => $6)""",
    row=CachedCoverage,
)

SAVE = sql(
    """
    INSERT INTO coverage_cache (company_id, adapter, level, parent, areas)
    VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (company_id, adapter, level, parent) DO UPDATE SET areas = excluded.areas, fetched_at = now()"""
)


async def lock_changes(tx: Tx) -> None:
    """One import at a time."""
    await LOCK_CHANGES.value(tx, _LOCK)


async def find_latest_dataset(db: Connection) -> AreaDataset | None:
    return await LIST_DATASETS.find(db, 1)


async def list_datasets(db: Connection, limit: int) -> list[AreaDataset]:
    """Newest first."""
    return await LIST_DATASETS.all(db, limit)


async def insert_dataset(tx: Tx, name: str, sha512: str, areas: int) -> AreaDataset:
    (created,) = await INSERT_DATASET.all(tx, name, sha512, areas)
    return created


async def clear_staging(tx: Tx) -> None:
    await CLEAR_STAGING.run(tx)


async def upsert_areas(tx: Tx, rows: Sequence[AreaRow]) -> AreaChanges:
    """Returns how many are new and how many changed."""
    await tx.copy_records_to_table("area_arrivals", records=rows, columns=list(AreaRow._fields))
    (changes,) = await UPSERT_AREAS.all(tx, [row.code for row in rows])
    return changes


async def retire_missing(tx: Tx) -> int:
    """Returns how many were retired."""
    return await RETIRE_MISSING.run(tx)


async def list_areas(db: Connection, level: int, parent: int) -> list[CarrierArea]:
    """From the dictionary, by name."""
    return await LIST_AREAS.all(db, parent, level)


async def has_areas(db: Connection) -> bool:
    return bool(await HAS_AREAS.value(db))


async def find_cached(
    db: Connection, company_id: int, adapter: str, level: str, parent: str, fresh_days: int, max_age_days: int
) -> CachedCoverage | None:
    return await FIND_CACHED.find(db, company_id, adapter, level, parent, fresh_days, max_age_days)


async def save_coverage(db: Connection, company_id: int, adapter: str, level: str, parent: str, areas: bytes) -> None:
    await SAVE.run(db, company_id, adapter, level, parent, areas)
