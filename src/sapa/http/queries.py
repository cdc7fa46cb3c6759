"""The edge's rows: idempotency records and rate limits."""

from collections.abc import Sequence

from msgspec import Struct

from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql
from sapa.http.retention import KEPT_HOURS


class IdempotencyRecord(Struct, frozen=True):
    fingerprint: bytes
    status: int | None
    body: bytes
    is_under_way: bool


class ClaimedKey(Struct, frozen=True):
    key: str
    target: str


class WindowUse(Struct, frozen=True):
    """A key's requests in the current minute."""

    used: int
    granted: int
    """How many of those just counted fit; the rest are not counted."""
    seconds_left: float


# The advisory lock tells a group of calls, without waiting, that another transaction has the key.
CLAIM = sql(
    f"""
    INSERT INTO idempotency_records AS r (company_id, key, target, fingerprint)
    SELECT $1, $2, $3, $4
      FROM pg_advisory_xact_lock(hashtextextended($1::bigint || ' ' || $2::text || ' ' || $3::text, 0))
        ON CONFLICT (company_id, key, target) DO UPDATE
       SET fingerprint = excluded.fingerprint, status = NULL, body = NULL, created_at = excluded.created_at
     WHERE excluded.created_at - r.created_at > interval '{KEPT_HOURS} hours'
    RETURNING true"""
)

CLAIM_ALL = sql(
    f"""
    INSERT INTO idempotency_records AS r (company_id, key, target, fingerprint)
    SELECT $1, c.key, c.target, c.fingerprint
      FROM unnest($2::text[], $3::text[], $4::bytea[]) AS c (key, target, fingerprint)
     WHERE pg_try_advisory_xact_lock(hashtextextended($1::bigint || ' ' || c.key || ' ' || c.target, 0))
        ON CONFLICT (company_id, key, target) DO UPDATE
       SET fingerprint = excluded.fingerprint, status = NULL, body = NULL, created_at = excluded.created_at
     WHERE excluded.created_at - r.created_at > interval '{KEPT_HOURS} hours'
    RETURNING key, target""",
    row=ClaimedKey,
)

SETTLE_RECORDS = sql(
    """
    UPDATE idempotency_records AS r
       SET status = s.status::integer, body = s.body
      FROM unnest($2::text[], $3::text[], $4::text[], $5::bytea[]) AS s (key, target, status, body)
     WHERE r.company_id = $1 AND r.key = s.key AND r.target = s.target"""
)

DELETE_CLAIMS = sql(
    """
    DELETE FROM idempotency_records AS r
     USING unnest($2::text[], $3::text[]) AS c (key, target)
     WHERE r.company_id = $1 AND r.key = c.key AND r.target = c.target AND r.status IS NULL"""
)

FIND_RECORD = sql(
    """
    SELECT fingerprint, status, body,
           status IS NULL AND created_at > now() - make_interval(secs => $4) AS is_under_way
      FROM idempotency_records
     WHERE company_id = $1 AND key = $2 AND target = $3 AND created_at >= now() - make_interval(hours => $5)""",
    row=IdempotencyRecord,
)

SETTLE_RECORD = sql(
    """
    UPDATE idempotency_records
       SET status = $4, body = $5
     WHERE company_id = $1 AND key = $2 AND target = $3"""
)

STORE_PROVISIONAL = sql("UPDATE idempotency_records SET body = $4 WHERE company_id = $1 AND key = $2 AND target = $3")

DELETE_CLAIM = sql(
    """
    DELETE FROM idempotency_records
     WHERE company_id = $1 AND key = $2 AND target = $3 AND fingerprint = $4 AND status IS NULL"""
)

# The window comes from the database's clock, so that every machine agrees on it.
COUNT_REQUESTS = sql(
    """
    INSERT INTO rate_windows AS w (company_id, key_id, window_start, used, granted)
    VALUES ($1, $2, date_trunc('minute', clock_timestamp()), LEAST($3::int, $4::int), LEAST($3::int, $4::int))
        ON CONFLICT (company_id, key_id) DO UPDATE
       SET window_start = GREATEST(w.window_start, excluded.window_start),
           granted = CASE WHEN w.window_start >= excluded.window_start
                          THEN GREATEST(LEAST($3, $4 - w.used), 0) ELSE excluded.granted END,
           used = CASE WHEN w.window_start >= excluded.window_start
                       THEN GREATEST(w.used, LEAST(w.used + $3, $4)) ELSE excluded.used END
    RETURNING used, granted, 60 - extract(epoch FROM clock_timestamp() - window_start)::float8 AS seconds_left""",
    row=WindowUse,
)


async def claim(tx: Tx, company_id: int, key: str, target: str, fingerprint: bytes) -> bool:
    """False when another request has claimed the key. Waits for one that is not committed yet."""
    return bool(await CLAIM.value(tx, company_id, key, target, fingerprint))


async def claim_all(tx: Tx, company_id: int, claims: Sequence[tuple[str, str, bytes]]) -> list[tuple[str, str]]:
    """Claims (key, target, fingerprint); returns key and target of those that it got, and waits for no other."""
    keys, targets, fingerprints = zip(*claims, strict=True)
    return [(one.key, one.target) for one in await CLAIM_ALL.all(tx, company_id, keys, targets, fingerprints)]


async def settle_records(tx: Tx, company_id: int, responses: Sequence[tuple[str, str, int, bytes]]) -> None:
    keys, targets, statuses, bodies = zip(*responses, strict=True)
    await SETTLE_RECORDS.run(tx, company_id, keys, targets, [str(status) for status in statuses], bodies)


async def delete_claims(tx: Tx, company_id: int, claims: Sequence[tuple[str, str]]) -> None:
    keys, targets = zip(*claims, strict=True)
    await DELETE_CLAIMS.run(tx, company_id, keys, targets)


async def find_record(
    db: Connection, company_id: int, key: str, target: str, longest_seconds: float, hours: int
) -> IdempotencyRecord | None:
    return await FIND_RECORD.find(db, company_id, key, target, longest_seconds, hours)


async def settle_record(tx: Tx, company_id: int, key: str, target: str, status: int, body: bytes) -> None:
    await SETTLE_RECORD.run(tx, company_id, key, target, status, body)


async def store_provisional(tx: Tx, company_id: int, key: str, target: str, body: bytes) -> None:
    """The response if the process dies before it settles the claim: the outcome is unknown."""
    await STORE_PROVISIONAL.run(tx, company_id, key, target, body)


async def delete_claim(db: Connection, company_id: int, key: str, target: str, fingerprint: bytes) -> None:
    await DELETE_CLAIM.run(db, company_id, key, target, fingerprint)


async def count_requests(db: Connection, company_id: int, key_id: str, requests: int, limit: int) -> WindowUse:
    (use,) = await COUNT_REQUESTS.all(db, company_id, key_id, requests, limit)
    return use
