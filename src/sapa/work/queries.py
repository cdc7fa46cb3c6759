"""The worker's rows: leases, old records, and how much work waits."""

from msgspec import Struct

from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql

_INSTALLATION = "figures of the whole installation"
_LEASES = "leases belong to the installation, not to a company"
_PARTITIONS = "partitions hold every company's rows"


class CounterBacklog(Struct, frozen=True):
    """Changes that are not folded into their totals, and the worker that folds them."""

    oldest_seconds: float
    waiting: int
    unseen_seconds: float | None
    """Since a worker last took a lease."""


class DeliveryBacklog(Struct, frozen=True):
    oldest_due_seconds: float
    waiting: int
    suspended: int


# The epoch grows whenever the holder changes, so that a late writer can be recognised.
TAKE_LEASE = sql(
    """
    INSERT INTO leases AS l (name, holder, expires_at)
    VALUES ($1, $2, now() + make_interval(secs => $3))
        ON CONFLICT (name) DO UPDATE
       SET holder = excluded.holder, expires_at = excluded.expires_at,
           epoch = l.epoch + (l.holder <> excluded.holder)::int
     WHERE l.holder = excluded.holder OR l.expires_at < now()
    RETURNING epoch""",
    crosses=_LEASES,
)

RELEASE_LEASES = sql("UPDATE leases SET expires_at = '-infinity' WHERE holder = $1", crosses=_LEASES)

PURGE_IDEMPOTENCY = sql(
    """
    DELETE FROM idempotency_records
     WHERE (company_id, key, target) IN (
           SELECT company_id, key, target FROM idempotency_records
            WHERE created_at < now() - make_interval(hours => $1)
            ORDER BY created_at LIMIT $2)""",
    crosses="the worker purges old records of every company",
)

KEEP_DAYS = sql("SELECT keep_day_partitions($1, $2, $3)", crosses=_PARTITIONS)

KEEP_MONTHS = sql("SELECT keep_month_partitions($1, $2, $3)", crosses=_PARTITIONS)

COUNTER_BACKLOG = sql(
    """
    SELECT (SELECT coalesce(extract(epoch FROM now() - min(created_at)), 0)::float8
              FROM counter_deltas) AS oldest_seconds,
           (SELECT count(*) FROM counter_deltas) AS waiting,
           (SELECT (extract(epoch FROM now() - max(expires_at)) + $1)::float8
              FROM leases WHERE expires_at > '-infinity') AS unseen_seconds""",
    row=CounterBacklog,
    crosses=_INSTALLATION,
)

# The oldest delivery of each active lane, by the index.
DELIVERY_BACKLOG = sql(
    """
    SELECT (SELECT coalesce(extract(epoch FROM max(now() + c.clock_offset - oldest.due_at)), 0)::float8
              FROM webhook_endpoints e
              JOIN companies c ON c.company_id = e.company_id
             CROSS JOIN LATERAL (
                   SELECT q.due_at FROM webhook_queue q
                    WHERE q.company_id = e.company_id AND q.endpoint_id = e.id
                    ORDER BY q.due_at LIMIT 1) AS oldest
             WHERE e.status = 'active' AND oldest.due_at <= now() + c.clock_offset) AS oldest_due_seconds,
           (SELECT count(*) FROM (SELECT FROM webhook_queue LIMIT $1) AS queued) AS waiting,
           (SELECT count(*) FROM webhook_endpoints WHERE status = 'suspended') AS suspended""",
    row=DeliveryBacklog,
    crosses=_INSTALLATION,
)

COUNT_DRIFT = sql(
    "SELECT coalesce(sum(GREATEST(drifting, found)), 0)::bigint FROM loyalty_checks", crosses=_INSTALLATION
)


async def take_lease(db: Connection, name: str, holder: str, seconds: float) -> int | None:
    """Its epoch, or None while another worker holds it."""
    epoch: int | None = await TAKE_LEASE.value(db, name, holder, seconds)
    return epoch


async def release_leases(db: Connection, holder: str) -> None:
    await RELEASE_LEASES.run(db, holder)


async def purge_idempotency_records(tx: Tx, hours: int, most: int) -> int:
    return await PURGE_IDEMPOTENCY.run(tx, hours, most)


async def keep_days(tx: Tx, table: str, ahead: int, past: int) -> None:
    """Creates the partitions of the coming days and drops those of more than `past` days ago."""
    await KEEP_DAYS.value(tx, table, ahead, past)


async def keep_months(tx: Tx, table: str, ahead: int, past: int) -> None:
    """The same by months."""
    await KEEP_MONTHS.value(tx, table, ahead, past)


async def get_counter_backlog(db: Connection, lease_seconds: float) -> CounterBacklog:
    (backlog,) = await COUNTER_BACKLOG.all(db, lease_seconds)
    return backlog


async def get_delivery_backlog(db: Connection, most: int) -> DeliveryBacklog:
    (backlog,) = await DELIVERY_BACKLOG.all(db, most)
    return backlog


async def count_drift(db: Connection) -> int:
    """Wallets that contradict their own entries, as last checked."""
    return int(await COUNT_DRIFT.value(db))
