"""A month of API calls, most of them by one key, with a few calls of weeks ago that are hard to find."""

from datetime import UTC, datetime, timedelta

from bench.loyalty.owner import Connection
from sapa.access.calls.queries import COLUMNS

DAYS = 30
RARE_KEY = "key_rare"
RARE_ROUTE = "/customer/v1/rare"
RARE_ID = "req_rare"

# An index of a partitioned table is described with ONLY: made like that, it would be without those of the partitions.
_INDEXES = """
    SELECT indexname AS name, replace(indexdef, ' ON ONLY ', ' ON ') AS definition
      FROM pg_indexes
     WHERE tablename = 'api_calls' AND indexname <> 'api_calls_pkey'"""

_CALLS = f"""
    INSERT INTO api_calls ({", ".join(COLUMNS)})
    SELECT $1::bigint, now() - n * (interval '{DAYS} days' / $2), 'req_' || md5($1::bigint || '-' || n),
           'key_' || n % 5, CASE WHEN n % 10 < 7 THEN 'GET' ELSE 'POST' END, '/customer/v1/route/' || n % 40,
           CASE WHEN n % 50 = 0 THEN 404 ELSE 200 END, CASE WHEN n % 50 = 0 THEN 'NOT_FOUND' END,
           '203.0.113.' || n % 200, 1000 + n % 9000
      FROM generate_series(1, $2::int) n"""

_RARE = f"""
    INSERT INTO api_calls ({", ".join(COLUMNS)})
    SELECT $1, now() - interval '20 days' + n * interval '1 second', '{RARE_ID}_' || n, '{RARE_KEY}', 'GET',
           '{RARE_ROUTE}', 200, NULL, '203.0.113.1', 1000
      FROM generate_series(1, 20) n"""


async def make_days(owner: Connection) -> None:
    """The partitions of the past, which an installation has made day by day."""
    today = datetime.now(UTC).date()
    for day in (today - timedelta(days=past) for past in range(1, DAYS + 1)):
        await owner.execute(
            f"CREATE TABLE api_calls_{day:%Y%m%d} PARTITION OF api_calls"
            f" FOR VALUES FROM ('{day} 00:00:00+00') TO ('{day + timedelta(days=1)} 00:00:00+00')"
        )


async def seed_calls(owner: Connection, sizes: dict[int, int]) -> None:
    """So many calls of each company."""
    await owner.execute("SET maintenance_work_mem = '512MB'; SET statement_timeout = 0")
    indexes = await owner.fetch(_INDEXES)
    for index in indexes:
        await owner.execute(f"DROP INDEX {index['name']}")
    for company_id, size in sizes.items():
        await owner.execute(_CALLS, company_id, size, timeout=3600)
        await owner.execute(_RARE, company_id)
    for index in indexes:
        await owner.execute(index["definition"], timeout=3600)
    await owner.execute("VACUUM (ANALYZE) api_calls", timeout=3600)
