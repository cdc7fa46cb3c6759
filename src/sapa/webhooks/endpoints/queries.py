"""How webhook endpoints are stored."""

from collections.abc import Mapping, Sequence

from sapa.db.due import WORKER, build_clock, build_is_waiting
from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql
from sapa.values.sealing import SealedValue
from sapa.webhooks.types import OVERLAP_SECONDS, PROBE_SECONDS, EndpointNotFound, Notice, StoredEndpoint

_ENDPOINTS = """
    SELECT e.id, e.company_id, e.url, e.kinds, e.description, e.status, e.reason,
           coalesce(l.failures, 0) AS failures, e.catch_up, e.auto_resume,
           CASE WHEN e.status = 'suspended' THEN e.suspended_at END AS suspended_at,
           CASE WHEN e.status = 'suspended' THEN e.next_probe_at END AS next_probe_at, e.headers, e.secret,
           CASE WHEN e.previous_until > now() + c.clock_offset THEN e.previous_secret END AS previous_secret,
           CASE WHEN e.previous_until > now() + c.clock_offset THEN e.previous_until END AS previous_until,
           e.created_at, e.updated_at
      FROM webhook_endpoints e
      JOIN companies c ON c.company_id = $1
      LEFT JOIN webhook_lanes l ON l.company_id = $1 AND l.endpoint_id = e.id
     WHERE e.company_id = $1"""

GET = sql(f"{_ENDPOINTS} AND e.id = $2", row=StoredEndpoint)

LOCK = sql(f"{_ENDPOINTS} AND e.id = $2 FOR NO KEY UPDATE OF e", row=StoredEndpoint)

LIST = sql(f"{_ENDPOINTS} ORDER BY e.created_at, e.id", row=StoredEndpoint)

LIST_SUSPENDED = sql(f"{_ENDPOINTS} AND e.status = 'suspended' ORDER BY e.suspended_at, e.id", row=StoredEndpoint)

FIND_COMPANY = sql(
    "SELECT company_id FROM webhook_endpoints WHERE id = $1",
    crosses="a command has only an endpoint's id, which determines the company",
)

LOCK_COMPANY = sql("SELECT company_id FROM companies WHERE company_id = $1 FOR NO KEY UPDATE")

COUNT = sql("SELECT count(*) FROM webhook_endpoints WHERE company_id = $1")

INSERT = sql(
    """
    WITH endpoint AS (
        INSERT INTO webhook_endpoints (company_id, id, url, kinds, description, headers, secret, auto_resume)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
    )
    INSERT INTO webhook_lanes (company_id, endpoint_id) VALUES ($1, $2)"""
)

UPDATE = sql(
    """
    UPDATE webhook_endpoints
       SET url = $3, kinds = $4, description = $5, headers = $6,
           updated_at = GREATEST(statement_timestamp(), updated_at)
     WHERE company_id = $1 AND id = $2"""
)

# A suspended endpoint begins its probes anew.
SET_AUTO_RESUME = sql(
    f"""
    UPDATE webhook_endpoints AS e
       SET auto_resume = $3, probes = 0,
           next_probe_at = CASE WHEN $3 AND e.status = 'suspended' THEN clock.later END
      FROM {build_clock(f"interval '{PROBE_SECONDS[0]} seconds'")}
     WHERE e.company_id = $1 AND e.id = $2 AND e.auto_resume <> $3"""
)

# An endpoint that is paused while it catches up still misses what it has not caught up with.
PAUSE = sql(
    """
    UPDATE webhook_endpoints
       SET status = 'paused', reason = NULL, missed_since = coalesce(missed_since, clock.now),
           catch_up = NULL, resumed_at = NULL, next_probe_at = NULL, updated_at = GREATEST(clock.now, updated_at)
      FROM (SELECT statement_timestamp() AS now) AS clock
     WHERE company_id = $1 AND id = $2 AND status <> 'paused'"""
)

NEXT_RESUMED = sql(build_is_waiting("webhook_endpoints", "catch_up IS NOT NULL AND status = 'active'"), crosses=WORKER)

RESUME = sql(
    """
    UPDATE webhook_endpoints
       SET status = 'active', reason = NULL, catch_up = $3, resumed_at = clock.now, next_probe_at = NULL,
           missed_since = coalesce(missed_since, clock.now), updated_at = GREATEST(clock.now, updated_at)
      FROM (SELECT statement_timestamp() AS now) AS clock
     WHERE company_id = $1 AND id = $2 AND status = ANY($4)"""
)

LOCK_LANE = sql("SELECT failures FROM webhook_lanes WHERE company_id = $1 AND endpoint_id = $2 FOR UPDATE")

RESET_FAILURES = sql("UPDATE webhook_lanes SET failures = 0 WHERE company_id = $1 AND endpoint_id = $2")

ROTATE = sql(
    f"""
    UPDATE webhook_endpoints AS e
       SET previous_secret = e.secret, previous_until = clock.later, secret = $3,
           updated_at = GREATEST(statement_timestamp(), e.updated_at)
      FROM {build_clock(f"interval '{OVERLAP_SECONDS} seconds'")}
     WHERE e.company_id = $1 AND e.id = $2"""
)

DELETE_QUEUED = sql(
    """
    WITH deleted AS (
        DELETE FROM webhook_queue
         WHERE company_id = $1 AND id = ANY(ARRAY(
               SELECT id FROM webhook_queue
                WHERE company_id = $1 AND endpoint_id = $2 ORDER BY due_at, id LIMIT $3))
        RETURNING id
    ), counted AS (
        INSERT INTO counter_deltas (company_id, counter, cell, delta)
        SELECT $1, 'webhook_queue', '', -count(*) FROM deleted HAVING count(*) > 0
    )
    SELECT count(*) FROM deleted"""
)

DELETE = sql("DELETE FROM webhook_endpoints WHERE company_id = $1 AND id = $2")

LOCK_SEALED = sql(
    """
    SELECT e.id || '/' || s.name AS position, s.bound_to, s.sealed
      FROM webhook_endpoints e
     CROSS JOIN LATERAL (
           VALUES ('headers', e.id || '/headers', e.headers),
                  ('previous_secret', e.id, e.previous_secret),
                  ('secret', e.id, e.secret)) AS s (name, bound_to, sealed)
     WHERE e.company_id = $1 AND s.sealed IS NOT NULL AND e.id || '/' || s.name > $2
     ORDER BY e.id, s.name
     LIMIT $3
       FOR NO KEY UPDATE OF e""",
    row=SealedValue,
)

REPLACE_SEALED = sql(
    """
    WITH new AS (
        SELECT split_part(position, '/', 1) AS id, split_part(position, '/', 2) AS name, sealed
          FROM unnest($2::text[], $3::bytea[]) AS n (position, sealed)
    )
    UPDATE webhook_endpoints AS e
       SET headers = coalesce((SELECT sealed FROM new WHERE new.id = e.id AND name = 'headers'), e.headers),
           previous_secret = coalesce((SELECT sealed FROM new WHERE new.id = e.id AND name = 'previous_secret'),
                                      e.previous_secret),
           secret = coalesce((SELECT sealed FROM new WHERE new.id = e.id AND name = 'secret'), e.secret)
     WHERE e.company_id = $1 AND e.id IN (SELECT id FROM new)"""
)
INSERT_NOTICE = sql("INSERT INTO notices (company_id, id, kind, resource_id, message) VALUES ($1, $2, $3, $4, $5)")

LIST_NOTICES = sql(
    """
    SELECT id, kind, resource_id, message, created_at
      FROM notices
     WHERE company_id = $1
     ORDER BY id DESC
     LIMIT $2""",
    row=Notice,
)


async def get_endpoint(db: Connection, company_id: int, id: str) -> StoredEndpoint:
    return _or_not_found(await GET.find(db, company_id, id))


async def lock_endpoint(tx: Tx, company_id: int, id: str) -> StoredEndpoint:
    return _or_not_found(await LOCK.find(tx, company_id, id))


async def list_endpoints(db: Connection, company_id: int) -> list[StoredEndpoint]:
    return await LIST.all(db, company_id)


async def list_suspended(db: Connection, company_id: int) -> list[StoredEndpoint]:
    return await LIST_SUSPENDED.all(db, company_id)


async def find_company(db: Connection, id: str) -> int | None:
    company_id: int | None = await FIND_COMPANY.value(db, id)
    return company_id


async def lock_company(tx: Tx, company_id: int) -> bool:
    """Endpoints of one company are added one at a time. False when the company does not exist."""
    return await LOCK_COMPANY.value(tx, company_id) is not None


async def count_endpoints(tx: Tx, company_id: int) -> int:
    return int(await COUNT.value(tx, company_id))


async def insert_endpoint(
    tx: Tx, company_id: int, id: str, url: str, kinds: list[str], description: str | None, headers: bytes | None,
    secret: bytes, auto_resume: bool,
) -> StoredEndpoint:  # fmt: skip
    await INSERT.run(tx, company_id, id, url, kinds, description, headers, secret, auto_resume)
    return await get_endpoint(tx, company_id, id)


async def update_endpoint(
    tx: Tx, company_id: int, id: str, url: str, kinds: list[str], description: str | None, headers: bytes | None
) -> StoredEndpoint:
    await UPDATE.run(tx, company_id, id, url, kinds, description, headers)
    return await get_endpoint(tx, company_id, id)


async def set_auto_resume(tx: Tx, company_id: int, id: str, auto_resume: bool) -> None:
    await SET_AUTO_RESUME.run(tx, company_id, id, auto_resume)


async def lock_lane(tx: Tx, company_id: int, id: str) -> None:
    """Lock the lane before the endpoint, as the dispatcher does."""
    await LOCK_LANE.value(tx, company_id, id)


async def pause_endpoint(tx: Tx, company_id: int, id: str) -> bool:
    """False if it is paused already, or does not exist."""
    return await PAUSE.run(tx, company_id, id) == 1


async def resume_endpoint(tx: Tx, company_id: int, id: str, missed: str, statuses: Sequence[str]) -> bool:
    """False when the endpoint has none of these statuses."""
    await RESET_FAILURES.run(tx, company_id, id)
    return await RESUME.run(tx, company_id, id, missed, statuses) == 1


async def insert_notice(tx: Tx, company_id: int, id: str, kind: str, endpoint_id: str, message: str) -> None:
    await INSERT_NOTICE.run(tx, company_id, id, kind, endpoint_id, message)


async def rotate_secret(tx: Tx, company_id: int, id: str, secret: bytes) -> StoredEndpoint:
    await ROTATE.run(tx, company_id, id, secret)
    return await get_endpoint(tx, company_id, id)


async def delete_queued(tx: Tx, company_id: int, id: str, most: int) -> int:
    """Returns how many deliveries were deleted, up to `most`."""
    return int(await DELETE_QUEUED.value(tx, company_id, id, most))


async def delete_endpoint(tx: Tx, company_id: int, id: str) -> None:
    await DELETE.run(tx, company_id, id)


async def lock_sealed(tx: Tx, company_id: int, after: str, limit: int) -> list[SealedValue]:
    return await LOCK_SEALED.all(tx, company_id, after, limit)


async def replace_sealed(tx: Tx, company_id: int, sealed: Mapping[str, bytes]) -> None:
    await REPLACE_SEALED.run(tx, company_id, list(sealed), list(sealed.values()))


async def list_notices(db: Connection, company_id: int, limit: int) -> list[Notice]:
    return await LIST_NOTICES.all(db, company_id, limit)


def _or_not_found(endpoint: StoredEndpoint | None) -> StoredEndpoint:
    if endpoint is None:
        raise EndpointNotFound
    return endpoint
