"""How companies and keys are stored. They are a directory, not confined to one company."""

from datetime import datetime, timedelta

from msgspec import Struct

from sapa.access import statement_parts
from sapa.access.types import ApiKey, CompanyClock, CompanyNotFound, CompanyRow, KeyNotFound, NewCompany
from sapa.db.due import add_interval, build_clock
from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql
from sapa.values.company import Company

DIRECTORY = "the directory of companies and keys"

INSERT_COMPANY = sql(
    """
    WITH organisation AS (
        INSERT INTO organisations (name) VALUES ($1) RETURNING id, name
    ), live AS (
        INSERT INTO companies (organisation_id, environment, region, currency)
        SELECT id, 'live', $2, $3 FROM organisation RETURNING company_id
    ), test AS (
        INSERT INTO companies (organisation_id, environment, region, currency)
        SELECT id, 'test', $2, $3 FROM organisation RETURNING company_id
    )
    SELECT organisation.name AS name, live.company_id AS live_company_id, test.company_id AS test_company_id
      FROM organisation, live, test""",
    row=NewCompany,
    crosses=DIRECTORY,
)

_COMPANY = """
    SELECT c.company_id, c.environment, c.region, c.currency, c.time_zone, c.language, c.cart_orders, o.name,
           extract(epoch FROM c.clock_offset)::float8 AS clock_offset_seconds, c.created_at
      FROM companies c
      JOIN organisations o ON o.id = c.organisation_id"""

LIST_COMPANIES = sql(f"{_COMPANY} ORDER BY c.company_id", row=CompanyRow, crosses=DIRECTORY)

GET_COMPANY = sql(f"{_COMPANY} WHERE c.company_id = $1", row=CompanyRow)

RENAME_COMPANY = sql(
    """
    UPDATE organisations
       SET name = $2
     WHERE id = (SELECT organisation_id FROM companies WHERE company_id = $1)"""
)

UPDATE_SETTINGS = sql(
    """
    UPDATE companies
       SET region = $2, currency = $3, language = $4, time_zone = $5, cart_orders = $6
     WHERE company_id = $1"""
)

LOCK_SETTINGS = sql("SELECT 1 FROM companies WHERE company_id = $1 FOR UPDATE")

HAS_TIME_ZONE = sql(
    "SELECT EXISTS (SELECT FROM pg_timezone_names WHERE name = $1)",
    crosses="the time zones that the database knows",
)

# To the millisecond, as instants are stored and answered.
READ_CLOCK = sql(statement_parts.READ_CLOCK, row=CompanyClock)

MOVE_CLOCK = sql(
    """
    UPDATE companies
       SET clock_offset = CASE WHEN $2::interval IS NULL THEN '0' ELSE clock_offset + $2 END
     WHERE company_id = $1"""
)

# Retries wait for company time. When the clock goes back, their due time goes back with it.
PULL_RETRIES = sql(
    f"""
    UPDATE webhook_queue AS q
       SET due_at = {add_interval("q.due_at", "-c.back")}
      FROM (SELECT back, now() + clock_offset - back AS since
              FROM (SELECT clock_offset, CASE WHEN $2::interval IS NULL THEN clock_offset ELSE -$2 END AS back
                      FROM companies
                     WHERE company_id = $1) AS moved OFFSET 0) AS c
     WHERE q.company_id = $1 AND c.back > '0' AND q.due_at <> q.event_at AND q.due_at > c.since"""
)

# Probes of suspended endpoints wait for company time, too.
PULL_PROBES = sql(
    f"""
    UPDATE webhook_endpoints AS e
       SET next_probe_at = {add_interval("e.next_probe_at", "-c.back")}
      FROM (SELECT CASE WHEN $2::interval IS NULL THEN clock_offset ELSE -$2 END AS back
              FROM companies
             WHERE company_id = $1) AS c
     WHERE e.company_id = $1 AND c.back > '0' AND e.next_probe_at IS NOT NULL"""
)

_KEY_COLUMNS = """k.id, k.company_id, c.environment, k.name, k.prefix, k.last_four, k.scopes, k.products, k.allow_list,
           k.rate_limit, k.allows_mcp, k.status, k.replaced_by, k.created_at, k.expires_at, k.last_used_at,
           k.last_used_ip"""

INSERT_KEY = sql(
    f"""
    WITH k AS (
        INSERT INTO api_keys (company_id, id, name, hash, prefix, last_four, scopes, products, allow_list, rate_limit,
                              allows_mcp, expires_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
        RETURNING company_id, id, name, prefix, last_four, scopes, products, allow_list, rate_limit, allows_mcp, status,
                  replaced_by, created_at, expires_at, last_used_at, last_used_ip
    )
    SELECT {_KEY_COLUMNS}
      FROM k JOIN companies c ON c.company_id = k.company_id
     WHERE k.company_id = $1""",
    row=ApiKey,
)

FIND_KEY = sql(
    f"""
    SELECT {_KEY_COLUMNS}
      FROM api_keys k JOIN companies c ON c.company_id = k.company_id
     WHERE k.id = $1""",
    row=ApiKey,
    crosses=DIRECTORY,
)

LIST_KEYS = sql(
    f"""
    SELECT {_KEY_COLUMNS}
      FROM api_keys k JOIN companies c ON c.company_id = k.company_id
     WHERE $1::bigint IS NULL OR k.company_id = $1
     ORDER BY k.company_id, k.created_at, k.id""",
    row=ApiKey,
    crosses=DIRECTORY,
)

GET_KEY = sql(
    f"""
    SELECT {_KEY_COLUMNS}
      FROM api_keys k JOIN companies c ON c.company_id = k.company_id
     WHERE k.company_id = $1 AND k.id = $2""",
    row=ApiKey,
)

# Of two keys that change each other at once, one waits: both lock in the order of their ids.
LOCK_KEYS = sql(
    f"""
    SELECT {_KEY_COLUMNS}
      FROM api_keys k JOIN companies c ON c.company_id = k.company_id
     WHERE k.company_id = $1 AND k.id = ANY($2)
     ORDER BY k.id
       FOR NO KEY UPDATE OF k""",
    row=ApiKey,
)

IS_VALID = sql(
    """
    SELECT k.status = 'active' AND (k.expires_at IS NULL OR k.expires_at > now() + c.clock_offset)
      FROM api_keys k JOIN companies c ON c.company_id = k.company_id
     WHERE k.company_id = $1 AND k.id = $2"""
)

PAGE_OF_KEYS = sql(
    f"""
    SELECT {_KEY_COLUMNS}
      FROM api_keys k JOIN companies c ON c.company_id = k.company_id
     WHERE k.company_id = $1 AND ($2::text IS NULL OR k.status = $2)
     ORDER BY k.created_at DESC, k.id DESC
     LIMIT $3 OFFSET $4""",
    row=ApiKey,
)

COUNT_KEYS = sql("SELECT count(*) FROM api_keys WHERE company_id = $1 AND ($2::text IS NULL OR status = $2)")

USED_AFTER_ROTATION = sql(
    """
    SELECT coalesce(array_agg(k.id), '{}')
      FROM api_keys k
      JOIN api_keys successor ON successor.company_id = $1 AND successor.id = k.replaced_by
     WHERE k.company_id = $1 AND k.last_used_at > successor.created_at + $2::interval"""
)

HIGHEST_RATE_LIMIT = sql("SELECT max(rate_limit) FROM api_keys WHERE company_id = $1 AND status = 'active'")

SET_MCP = sql("UPDATE api_keys SET allows_mcp = $3 WHERE company_id = $1 AND id = $2")

UPDATE_KEY = sql(
    """
    UPDATE api_keys SET name = $3, scopes = $4, products = $5, allow_list = $6, rate_limit = $7
     WHERE company_id = $1 AND id = $2 AND status = 'active'"""
)

REVOKE_KEY = sql("UPDATE api_keys SET status = 'revoked' WHERE company_id = $1 AND id = $2 AND status <> 'revoked'")

# The old key stops after its grace period, or when it expires if that is earlier. In company time.
REPLACE_KEY = sql(
    f"""
    UPDATE api_keys AS k
       SET replaced_by = $3, expires_at = LEAST(k.expires_at, clock.later)
      FROM {build_clock("make_interval(secs => $4)")}
     WHERE k.company_id = $1 AND k.id = $2 AND k.status = 'active' AND k.replaced_by IS NULL
       AND (k.expires_at IS NULL OR k.expires_at > clock.now)"""
)


class StoredKey(Struct, frozen=True):
    """A valid key as the edge needs it, its times already compared with company time."""

    id: str
    company_id: int
    environment: str
    region: str
    currency: str
    time_zone: str
    language: str
    scopes: list[str]
    products: list[str]
    allow_list: list[str]
    rate_limit: int
    allows_mcp: bool
    ends_in: float | None
    retired_since: int | None
    stops: int | None


LOAD_KEY = sql(
    """
    SELECT k.id, k.company_id, c.environment, c.region, c.currency, c.time_zone, c.language, k.scopes, k.products,
           k.allow_list, k.rate_limit, k.allows_mcp,
           extract(epoch FROM k.expires_at - now() - c.clock_offset)::float8 AS ends_in,
           extract(epoch FROM successor.created_at)::bigint AS retired_since,
           extract(epoch FROM k.expires_at)::bigint AS stops
      FROM api_keys k
      JOIN companies c ON c.company_id = k.company_id
      LEFT JOIN api_keys successor ON successor.id = k.replaced_by
     WHERE k.hash = $1 AND k.status = 'active'
       AND (k.expires_at IS NULL OR k.expires_at > now() + c.clock_offset)""",
    row=StoredKey,
    crosses="a request brings only a raw key, which identifies the company",
)

LIST_BEYOND = sql(
    """
    SELECT coalesce(array_agg(k.hash), '{}')
      FROM api_keys k
      JOIN companies c ON c.company_id = $1
     WHERE k.company_id = $1 AND k.hash = ANY($2) AND k.status = 'active'
       AND (k.expires_at IS NULL OR k.expires_at > now() + c.clock_offset)
       AND NOT (k.scopes <@ $3::text[] AND k.products <@ $4::text[])"""
)

EXPIRE_KEYS = sql(
    """
    UPDATE api_keys AS k
       SET status = 'expired'
      FROM (SELECT company_id, now() + clock_offset AS now FROM companies OFFSET 0) AS clock
     WHERE clock.company_id = k.company_id AND k.status = 'active' AND k.expires_at <= clock.now
    RETURNING k.company_id""",
    crosses=DIRECTORY,
)

RECORD_USE = sql(
    """
    UPDATE api_keys AS k
       SET last_used_at = now(), last_used_ip = used.ip
      FROM unnest($1::text[], $2::text[]) AS used (id, ip)
     WHERE k.id = used.id""",
    crosses=DIRECTORY,
)

LOCK_FIRST_START = sql("SELECT pg_advisory_xact_lock(23189)", crosses="one first start at a time per database")

ANNOUNCE = sql("SELECT pg_notify($1, $2)", crosses="a message to every process, no table")


async def lock_first_start(tx: Tx) -> None:
    """Until the transaction ends."""
    await LOCK_FIRST_START.value(tx)


async def insert_company(tx: Tx, name: str, region: str, currency: str) -> NewCompany:
    company = await INSERT_COMPANY.find(tx, name, region, currency)
    assert company is not None  # noqa: S101 - INSERT … RETURNING
    return company


async def list_companies(db: Connection) -> list[CompanyRow]:
    return await LIST_COMPANIES.all(db)


async def get_company(db: Connection, company_id: int) -> CompanyRow:
    company = await GET_COMPANY.find(db, company_id)
    if company is None:
        raise CompanyNotFound
    return company


async def rename_company(tx: Tx, company_id: int, name: str) -> None:
    await RENAME_COMPANY.run(tx, company_id, name)


async def lock_settings(tx: Tx, company_id: int) -> CompanyRow:
    await LOCK_SETTINGS.value(tx, company_id)
    return await get_company(tx, company_id)


async def update_settings(tx: Tx, company: Company) -> None:
    await UPDATE_SETTINGS.run(
        tx, company.id, company.region, company.currency, company.language, company.time_zone, company.cart_orders
    )


async def has_time_zone(db: Connection, name: str) -> bool:
    return bool(await HAS_TIME_ZONE.value(db, name))


async def read_clock(db: Connection, company_id: int) -> CompanyClock:
    clock = await READ_CLOCK.find(db, company_id)
    if clock is None:
        raise CompanyNotFound
    return clock


async def move_clock(tx: Tx, company_id: int, by: timedelta | None) -> None:
    await PULL_RETRIES.run(tx, company_id, by)
    await PULL_PROBES.run(tx, company_id, by)
    await MOVE_CLOCK.run(tx, company_id, by)


async def insert_key(
    tx: Tx, company_id: int, id: str, name: str, hash: bytes, prefix: str, last_four: str, scopes: list[str],
    products: list[str], allow_list: list[str], rate_limit: int, allows_mcp: bool, expires_at: datetime | None,
) -> ApiKey:  # fmt: skip
    key = await INSERT_KEY.find(
        tx, company_id, id, name, hash, prefix, last_four, scopes, products, allow_list, rate_limit, allows_mcp,
        expires_at,
    )  # fmt: skip
    assert key is not None  # noqa: S101 - INSERT … RETURNING
    return key


async def get_key(db: Connection, id: str) -> ApiKey:
    key = await FIND_KEY.find(db, id)
    if key is None:
        raise KeyNotFound
    return key


async def get_key_of(db: Connection, company_id: int, id: str) -> ApiKey:
    key = await GET_KEY.find(db, company_id, id)
    if key is None:
        raise KeyNotFound
    return key


async def lock_keys(tx: Tx, company_id: int, ids: list[str]) -> dict[str, ApiKey]:
    return {key.id: key for key in await LOCK_KEYS.all(tx, company_id, ids)}


async def is_valid(db: Connection, company_id: int, id: str) -> bool:
    return bool(await IS_VALID.value(db, company_id, id))


async def list_page_of_keys(
    db: Connection, company_id: int, status: str | None, limit: int, offset: int
) -> tuple[list[ApiKey], int]:
    total = int(await COUNT_KEYS.value(db, company_id, status))
    return (await PAGE_OF_KEYS.all(db, company_id, status, limit, offset) if offset < total else []), total


async def find_valid_key(db: Connection, hash: bytes) -> StoredKey | None:
    return await LOAD_KEY.find(db, hash)


async def list_beyond(
    db: Connection, company_id: int, hashes: list[bytes], scopes: list[str], products: list[str]
) -> set[bytes]:
    return set(await LIST_BEYOND.value(db, company_id, hashes, scopes, products))


async def list_keys(db: Connection, company_id: int | None) -> list[ApiKey]:
    return await LIST_KEYS.all(db, company_id)


async def list_used_after_rotation(db: Connection, company_id: int, delay: timedelta) -> set[str]:
    return set(await USED_AFTER_ROTATION.value(db, company_id, delay))


async def set_mcp(tx: Tx, company_id: int, id: str, is_allowed: bool) -> None:
    await SET_MCP.run(tx, company_id, id, is_allowed)


async def update_key(
    tx: Tx, company_id: int, id: str, name: str, scopes: list[str], products: list[str], allow_list: list[str],
    rate_limit: int,
) -> bool:  # fmt: skip
    """False if the key does not work any more."""
    return await UPDATE_KEY.run(tx, company_id, id, name, scopes, products, allow_list, rate_limit) == 1


async def revoke_key(tx: Tx, company_id: int, id: str) -> bool:
    """False if it was revoked before."""
    return await REVOKE_KEY.run(tx, company_id, id) == 1


async def replace_key(tx: Tx, company_id: int, id: str, successor: str, grace_seconds: float) -> bool:
    return await REPLACE_KEY.run(tx, company_id, id, successor, grace_seconds) == 1


async def expire_keys(tx: Tx) -> set[int]:
    return {row[0] for row in await tx.fetch(EXPIRE_KEYS.text)}


async def record_use(db: Connection, ids: list[str], addresses: list[str]) -> None:
    await RECORD_USE.run(db, ids, addresses)


async def announce(tx: Tx, channel: str, payload: str) -> None:
    await ANNOUNCE.value(tx, channel, payload)


async def find_highest_rate_limit(db: Connection, company_id: int) -> int | None:
    limit: int | None = await HIGHEST_RATE_LIMIT.value(db, company_id)
    return limit
