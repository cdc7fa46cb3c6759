"""The worker's rows: leases, old records, and how much work waits."""

from msgspec import Struct

from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql
from sapa.work.types import Rotation

_INSTALLATION = "figures of the whole installation"
_LEASES = "leases belong to the installation, not to a company"
_KEYS = "the secret key belongs to the installation, not to a company"
_PARTITIONS = "partitions hold every company's rows"


WORKER_PREFIX = "worker "
"""Of the name of a worker's own lease."""


class FoundLease(Struct, frozen=True):
    name: str
    holder: str
    is_expired: bool
    """A peer's own lease; otherwise one that was taken or renewed."""


class CounterBacklog(Struct, frozen=True):
    """Changes that are not folded into their totals, by PostgreSQL's statistics, and the worker that folds them."""

    oldest_seconds: float
    waiting: int
    unseen_seconds: float | None
    """Since a worker last took a lease."""


class BackupFigures(Struct, frozen=True):
    age_seconds: float | None
    failed: int | None
    """1 if the last backup failed, 0 if it was made."""


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

# All of a worker's leases at once, in the order of their names; and the peers that have not renewed theirs.
RENEW_LEASES = sql(
    f"""
    WITH renewed AS (
        INSERT INTO leases AS l (name, holder, expires_at)
        SELECT name, $1, now() + make_interval(secs => $3) FROM unnest($2::text[]) AS name ORDER BY name
            ON CONFLICT (name) DO UPDATE
           SET holder = excluded.holder, expires_at = excluded.expires_at,
               epoch = l.epoch + (l.holder <> excluded.holder)::int
         WHERE l.holder = excluded.holder OR l.expires_at < now()
        RETURNING l.name, l.holder
    )
    SELECT name, holder, FALSE AS is_expired FROM renewed
     UNION ALL
    SELECT name, holder, TRUE FROM leases
     WHERE name LIKE '{WORKER_PREFIX}%' AND expires_at < now() AND holder <> $1""",
    row=FoundLease,
    crosses=_LEASES,
)

DELETE_EXPIRED_WORKERS = sql(
    f"""
    DELETE FROM leases
     WHERE name LIKE '{WORKER_PREFIX}%' AND holder = ANY($1::text[]) AND expires_at < now()
    RETURNING holder""",
    crosses=_LEASES,
)

FREE_LEASES = sql(
    "UPDATE leases SET expires_at = '-infinity' WHERE split_part(holder, '/', 1) = ANY($1::text[])", crosses=_LEASES
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

_ROTATION = "key_id, requested_at, finished_at, sealed_table, company_id, position, resealed, unreadable"

FIND_ROTATION = sql(f"SELECT {_ROTATION} FROM secret_rotations", row=Rotation, crosses=_KEYS)

LOCK_ROTATION = sql(
    f"SELECT {_ROTATION} FROM secret_rotations WHERE key_id = $1 AND finished_at IS NULL FOR UPDATE",
    row=Rotation,
    crosses=_KEYS,
)

DELETE_ROTATIONS = sql("DELETE FROM secret_rotations WHERE key_id <> $1", crosses=_KEYS)

# One that is under way goes on; one that has finished begins again.
START_ROTATION = sql(
    """
    INSERT INTO secret_rotations AS r (key_id)
    VALUES ($1)
        ON CONFLICT (key_id) DO UPDATE
       SET requested_at = now(), finished_at = NULL, sealed_table = '', company_id = 0, position = '', resealed = 0,
           unreadable = 0
     WHERE r.finished_at IS NOT NULL""",
    crosses=_KEYS,
)

ADVANCE_ROTATION = sql(
    """
    UPDATE secret_rotations
       SET sealed_table = $2, company_id = $3, position = $4, resealed = resealed + $5, unreadable = unreadable + $6
     WHERE key_id = $1""",
    crosses=_KEYS,
)

FINISH_ROTATION = sql("UPDATE secret_rotations SET finished_at = now() WHERE key_id = $1", crosses=_KEYS)

FIND_COMPANY_FROM = sql("SELECT min(company_id) FROM companies WHERE company_id >= $1", crosses=_KEYS)

KEEP_DAYS = sql("SELECT keep_day_partitions($1, $2, $3)", crosses=_PARTITIONS)

PURGE_ROWS = sql(
    "SELECT purge_rows($1, now() - make_interval(months => $2), $3)",
    crosses="the worker purges old rows of every company",
)

KEEP_MONTHS = sql("SELECT keep_month_partitions($1, $2, $3)", crosses=_PARTITIONS)

# A scrape costs the same however much waits: of changes that are not folded it reads only the first $2.
COUNTER_BACKLOG = sql(
    f"""
    SELECT (SELECT coalesce(extract(epoch FROM now() - min(created_at)), 0)::float8
              FROM (SELECT created_at FROM counter_deltas LIMIT $2) AS first) AS oldest_seconds,
           pg_stat_get_live_tuples('counter_deltas'::regclass) AS waiting,
           (SELECT (extract(epoch FROM now() - max(expires_at)) + $1)::float8
              FROM leases
             WHERE name LIKE '{WORKER_PREFIX}%' AND expires_at > '-infinity') AS unseen_seconds""",
    row=CounterBacklog,
    crosses=_INSTALLATION,
)

# The oldest delivery of each active lane, by the index. How many there are is read from their counter, which is exact
# while no more than $1 changes wait to be folded.
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
           (SELECT coalesce(sum(total), 0) FROM counter_cells WHERE counter = 'webhook_queue')::bigint
         + (SELECT coalesce(sum(delta) FILTER (WHERE counter = 'webhook_queue'), 0)
              FROM (SELECT counter, delta FROM counter_deltas LIMIT $1) AS first) AS waiting,
           (SELECT count(*) FROM webhook_endpoints WHERE status = 'suspended') AS suspended""",
    row=DeliveryBacklog,
    crosses=_INSTALLATION,
)

GET_BACKUP_FIGURES = sql(
    """
    SELECT (SELECT extract(epoch FROM now() - max(started_at))::float8 FROM backup_runs WHERE status = 'done')
           AS age_seconds,
           (SELECT (status = 'failed')::int FROM backup_runs WHERE status <> 'running' ORDER BY number DESC LIMIT 1)
           AS failed""",
    row=BackupFigures,
    crosses=_INSTALLATION,
)

COUNT_DRIFT = sql(
    "SELECT coalesce(sum(GREATEST(drifting, found)), 0)::bigint FROM loyalty_checks", crosses=_INSTALLATION
)


async def take_lease(db: Connection, name: str, holder: str, seconds: float) -> int | None:
    """Its epoch, or None while another worker holds it."""
    epoch: int | None = await TAKE_LEASE.value(db, name, holder, seconds)
    return epoch


async def renew_leases(
    db: Connection, holder: str, names: list[str], lease_seconds: float, seconds: float
) -> list[FoundLease]:
    """The leases that the holder has now, and its expired peers; `seconds` is how long it may take."""
    return await RENEW_LEASES.all(db, holder, names, lease_seconds, seconds=seconds)


async def delete_expired_workers(tx: Tx, holders: list[str]) -> list[str]:
    """Those of the workers whose lease has still expired."""
    return [row[0] for row in await tx.fetch(DELETE_EXPIRED_WORKERS.text, holders)]


async def free_leases(tx: Tx, holders: list[str]) -> None:
    """Everything that these processes have leased."""
    await FREE_LEASES.run(tx, holders)


async def release_leases(db: Connection, holder: str) -> None:
    await RELEASE_LEASES.run(db, holder)


async def purge_idempotency_records(tx: Tx, hours: int, most: int) -> int:
    return await PURGE_IDEMPOTENCY.run(tx, hours, most)


async def find_rotation(db: Connection) -> Rotation | None:
    return await FIND_ROTATION.find(db)


async def find_unfinished_rotation(tx: Tx, key_id: str) -> Rotation | None:
    """Locked; None if this key's rotation was not requested, or has finished."""
    return await LOCK_ROTATION.find(tx, key_id)


async def start_rotation(tx: Tx, key_id: str) -> None:
    await DELETE_ROTATIONS.run(tx, key_id)
    await START_ROTATION.run(tx, key_id)


async def advance_rotation(
    tx: Tx, key_id: str, table: str, company_id: int, position: str, resealed: int, unreadable: int
) -> None:
    await ADVANCE_ROTATION.run(tx, key_id, table, company_id, position, resealed, unreadable)


async def finish_rotation(tx: Tx, key_id: str) -> None:
    await FINISH_ROTATION.run(tx, key_id)


async def find_company_from(tx: Tx, company_id: int) -> int | None:
    """The first company whose id is at least this one."""
    found: int | None = await FIND_COMPANY_FROM.value(tx, company_id)
    return found


async def keep_days(tx: Tx, table: str, ahead: int, past: int) -> None:
    """Creates the partitions of the coming days and drops those of more than `past` days ago."""
    await KEEP_DAYS.value(tx, table, ahead, past)


async def purge_rows(tx: Tx, kind: str, months: int, most: int) -> int:
    """Returns how many there were, up to `most`."""
    return int(await PURGE_ROWS.value(tx, kind, months, most))


async def keep_months(tx: Tx, table: str, ahead: int, past: int) -> None:
    """The same by months."""
    await KEEP_MONTHS.value(tx, table, ahead, past)


async def get_counter_backlog(db: Connection, lease_seconds: float, max_read: int) -> CounterBacklog:
    (backlog,) = await COUNTER_BACKLOG.all(db, lease_seconds, max_read)
    return backlog


async def get_delivery_backlog(db: Connection, max_read: int) -> DeliveryBacklog:
    (backlog,) = await DELIVERY_BACKLOG.all(db, max_read)
    return backlog


async def count_drift(db: Connection) -> int:
    """Wallets that contradict their own entries, as last checked."""
    return int(await COUNT_DRIFT.value(db))


async def get_backup_figures(db: Connection) -> BackupFigures:
    figures = await GET_BACKUP_FIGURES.find(db)
    assert figures is not None  # noqa: S101 - one row without conditions
    return figures
