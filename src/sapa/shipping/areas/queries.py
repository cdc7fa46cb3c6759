"""SQL of areas: the installation's dictionary and the coverage cache."""

from collections.abc import Sequence

from msgspec import Raw, Struct

from sapa.db.pool import Connection, Tx
from sapa.db.sql import compose, sql
from sapa.shipping.areas.statement_parts import AREA_NAMES, NAMES, SUB_DISTRICTS
from sapa.shipping.areas.types import AreaDataset, AreaRow, AreaWords
from sapa.shipping.carriers.interface import AreaPath, CarrierArea
from sapa.shipping.connections.statement_parts import STORED_ACCOUNT

_LOCK = 0xA5EA5  # any number that no other advisory lock uses
_DICTIONARY = "the dictionary of places belongs to no company"


class CachedCoverage(Struct, frozen=True):
    areas: Raw
    fresh_seconds: float
    """For how long it is still fresh; negative if it is out of date."""


class CachedList(Struct, frozen=True):
    parent: str
    areas: Raw


class CachedNames(Struct, frozen=True):
    """From the sub-district to the province; null where no list is cached."""

    names: list[str | None]


class CachedLocation(Struct, frozen=True):
    """What the cache has about both ends of a shipment."""

    adapter: str | None
    sub_districts: Raw | None
    """By district, as a JSON object."""
    names: list[str | None]
    """Of the receiver's areas, from the sub-district to the province."""


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
        INSERT INTO areas AS a (code, level, parent, name, zip)
        SELECT code, level, parent, name, zip FROM area_arrivals WHERE code = ANY($1::bigint[])
        ON CONFLICT (code) DO UPDATE SET level = excluded.level, parent = excluded.parent, name = excluded.name,
                                         zip = excluded.zip, retired_at = NULL
         WHERE a.retired_at IS NOT NULL OR a.name <> excluded.name OR a.zip IS DISTINCT FROM excluded.zip
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
    SELECT code AS id, name, NULLIF(parent, 0) AS parent_id, zip
      FROM areas
     WHERE parent = $1 AND level = $2 AND retired_at IS NULL
     ORDER BY name, code""",
    row=CarrierArea,
    crosses=_DICTIONARY,
)

_PATH = """p.code AS province_id, c.code AS city_id, d.code AS district_id, v.code AS sub_district_id,
           ARRAY[v.name, d.name, c.name, p.name] AS names, coalesce(v.zip, d.zip) AS zip"""
_UNINDEXED = """v.level = 4 AND v.retired_at IS NULL
       AND v.code > coalesce((SELECT max(code) FROM area_words), 0)"""

# Sub-districts are indexed in the order of their codes.
IS_INDEXED = sql(f"SELECT NOT EXISTS (SELECT FROM areas v WHERE {_UNINDEXED})", crosses=_DICTIONARY)

LIST_UNINDEXED = sql(
    f"""
    SELECT {_PATH}
      FROM areas v
      JOIN areas d ON d.code = v.parent
      JOIN areas c ON c.code = d.parent
      JOIN areas p ON p.code = c.parent
     WHERE {_UNINDEXED}
     ORDER BY v.code
     LIMIT $1""",
    row=AreaPath,
    crosses=_DICTIONARY,
)

CLEAR_WORDS = sql("DELETE FROM area_words", crosses=_DICTIONARY)

CLEAR_SPELLINGS = sql("DELETE FROM area_spellings", crosses=_DICTIONARY)

INSERT_WORDS = sql(
    """
    INSERT INTO area_words (code, words)
    SELECT code, setweight(to_tsvector('simple', own), 'A') || setweight(to_tsvector('simple', district), 'B')
                 || setweight(to_tsvector('simple', city), 'C') || setweight(to_tsvector('simple', province), 'D')
      FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[])
           AS input (code, own, district, city, province)""",
    crosses=_DICTIONARY,
)

INSERT_SPELLINGS = sql(
    """
    INSERT INTO area_spellings (spelling, word)
    SELECT spelling, word FROM unnest($1::text[], $2::text[]) AS input (spelling, word)
    ON CONFLICT DO NOTHING""",
    crosses=_DICTIONARY,
)

LIST_SIMILAR = sql("SELECT DISTINCT word FROM area_spellings WHERE spelling = ANY($1::text[])", crosses=_DICTIONARY)

# A vague search matches a large part of the country: the best of the first thousand are good enough.
SEARCH = sql(
    f"""
    WITH found AS MATERIALIZED (
        SELECT code, words FROM area_words WHERE words @@ $1::text::tsquery LIMIT 1000
    ), best AS (
        SELECT code, ts_rank('{{0.1, 0.2, 0.4, 1.0}}', words, $1::text::tsquery, 1) AS rank
          FROM found
         ORDER BY rank DESC, code
         LIMIT $2
    )
    SELECT {_PATH}
      FROM best
      JOIN areas v ON v.code = best.code
      JOIN areas d ON d.code = v.parent
      JOIN areas c ON c.code = d.parent
      JOIN areas p ON p.code = c.parent
     ORDER BY best.rank DESC, v.name, v.code""",
    row=AreaPath,
    crosses=_DICTIONARY,
)

FIND_NAMES = sql(
    """
    SELECT ARRAY[v.name, d.name, c.name, p.name]
      FROM areas d
      JOIN areas c ON c.code = d.parent
      JOIN areas p ON p.code = c.parent
      LEFT JOIN areas v ON v.parent = d.code AND v.code = $2
     WHERE d.code = $1 AND d.level = 3""",
    crosses=_DICTIONARY,
)

HAS_AREAS = sql("SELECT EXISTS (SELECT FROM areas WHERE retired_at IS NULL)", crosses=_DICTIONARY)

FIND_CACHED = sql(
    """
    SELECT areas, extract(epoch FROM fetched_at + make_interval(days => $5) - now())::float8 AS fresh_seconds
      FROM coverage_cache
     WHERE company_id = $1 AND adapter = $2 AND level = $3 AND parent = $4
       AND fetched_at > now() - make_interval(days => $6)""",
    row=CachedCoverage,
)

LIST_CACHED = sql(
    """
    SELECT parent, areas
      FROM coverage_cache
     WHERE company_id = $1 AND adapter = $2 AND level = $3 AND parent = ANY($4::text[])
       AND fetched_at > now() - make_interval(days => $5)""",
    row=CachedList,
)

FIND_CACHED_NAMES = compose(
    ["account AS (SELECT :adapter::text AS adapter)", *AREA_NAMES], f"SELECT {NAMES}", row=CachedNames
)

FIND_SERVED_NAMES = compose([STORED_ACCOUNT, *AREA_NAMES], f"SELECT {NAMES}", row=CachedNames)

LOCATE = compose(
    [STORED_ACCOUNT, SUB_DISTRICTS, *AREA_NAMES],
    f"""
    SELECT (SELECT adapter FROM account) AS adapter,
           (SELECT json_object_agg(parent, areas) FROM sub_districts) AS sub_districts, {NAMES}""",
    row=CachedLocation,
)

SAVE = sql(
    """
    INSERT INTO coverage_cache (company_id, adapter, level, parent, areas)
    VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (company_id, adapter, level, parent) DO UPDATE
       SET areas = excluded.areas, fetched_at = excluded.fetched_at"""
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


async def list_unindexed(db: Connection, most: int) -> list[AreaPath]:
    """The next sub-districts that a search does not find yet."""
    return await LIST_UNINDEXED.all(db, most)


async def is_indexed(db: Connection) -> bool:
    """Whether a search finds all sub-districts of the dictionary."""
    return bool(await IS_INDEXED.value(db))


async def clear_index(tx: Tx) -> None:
    await CLEAR_WORDS.run(tx)
    await CLEAR_SPELLINGS.run(tx)


async def insert_words(tx: Tx, words: Sequence[AreaWords]) -> None:
    await INSERT_WORDS.run(tx, *(list(column) for column in zip(*words, strict=True)))


async def insert_spellings(tx: Tx, spellings: Sequence[tuple[str, str]]) -> None:
    if spellings:
        await INSERT_SPELLINGS.run(tx, *(list(column) for column in zip(*spellings, strict=True)))


async def list_similar(db: Connection, spellings: Sequence[str]) -> list[str]:
    return [row[0] for row in await db.fetch(LIST_SIMILAR.text, spellings)]


async def search(db: Connection, query: str, limit: int) -> list[AreaPath]:
    """The best matches first."""
    return await SEARCH.all(db, query, limit)


async def find_names(db: Connection, district_id: int, sub_district_id: int | None) -> list[str | None]:
    """From the sub-district to the province; empty if the dictionary lacks the district."""
    return await FIND_NAMES.value(db, district_id, sub_district_id) or []


async def has_areas(db: Connection) -> bool:
    return bool(await HAS_AREAS.value(db))


async def find_cached(
    db: Connection, company_id: int, adapter: str, level: str, parent: str, fresh_days: int, max_age_days: int
) -> CachedCoverage | None:
    return await FIND_CACHED.find(db, company_id, adapter, level, parent, fresh_days, max_age_days)


async def list_cached(
    db: Connection, company_id: int, adapter: str, level: str, parents: Sequence[str], max_age_days: int
) -> dict[str, Raw]:
    """Those of the lists that are cached, by their parent."""
    rows = await LIST_CACHED.all(db, company_id, adapter, level, parents, max_age_days)
    return {row.parent: row.areas for row in rows}


async def find_cached_names(
    db: Connection, company_id: int, adapter: str, district_id: int, sub_district_id: int | None
) -> Sequence[str | None]:
    """From the sub-district to the province; null where no list is cached."""
    values = {"adapter": adapter, "district": str(district_id), "sub_district": _to_text(sub_district_id)}
    found = await FIND_CACHED_NAMES.find(db, company_id, *FIND_CACHED_NAMES.order(values))
    return found.names if found else ()


async def find_served_names(
    db: Connection, company_id: int, provider: str, district_id: int, sub_district_id: int | None
) -> Sequence[str | None]:
    """The same, of the carrier that serves the provider now."""
    values = {"provider": provider, "district": str(district_id), "sub_district": _to_text(sub_district_id)}
    found = await FIND_SERVED_NAMES.find(db, company_id, *FIND_SERVED_NAMES.order(values))
    return found.names if found else ()


async def locate(
    db: Connection, company_id: int, provider: str, districts: Sequence[str], max_age_days: int,
    receiver: tuple[int | None, int | None],
) -> CachedLocation:  # fmt: skip
    """What the cache has of the account that serves the provider. The receiver is its district and sub-district."""
    district_id, sub_district_id = receiver
    values = {
        "provider": provider, "districts": districts, "max_age_days": max_age_days,
        "district": _to_text(district_id), "sub_district": _to_text(sub_district_id),
    }  # fmt: skip
    (found,) = await LOCATE.all(db, company_id, *LOCATE.order(values))
    return found


def _to_text(id: int | None) -> str | None:
    return None if id is None else str(id)


async def save_coverage(db: Connection, company_id: int, adapter: str, level: str, parent: str, areas: bytes) -> None:
    await SAVE.run(db, company_id, adapter, level, parent, areas)
