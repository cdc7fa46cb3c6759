"""Idempotency-Key: the first success is stored with its change, and repeated requests get the same response."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from hashlib import sha256

import asyncpg
from msgspec import Struct

from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql
from sapa.http.errors import IdempotencyInProgress, IdempotencyKeyReused, Invalid
from sapa.http.responses import HttpResponse

WAIT_SECONDS = 5.0
KEPT_HOURS = 24
LONGEST_OUTBOUND_CALL_SECONDS = 90
"""An outbound call is considered abandoned after 90 s."""
LONGEST_KEY = 255


class IdempotencyClaim(Struct, frozen=True):
    """One request that is to happen at most once."""

    company_id: int
    key: str
    target: str
    fingerprint: bytes


class IdempotencyRecord(Struct, frozen=True):
    fingerprint: bytes
    status: int | None
    body: bytes
    is_under_way: bool


CLAIM = sql(
    """
    INSERT INTO idempotency_records AS r (company_id, key, target, fingerprint)
    VALUES ($1, $2, $3, $4)
        ON CONFLICT (company_id, key, target) DO UPDATE
       SET fingerprint = excluded.fingerprint, status = NULL, body = NULL, created_at = now()
     WHERE r.created_at < now() - make_interval(hours => $5)
    RETURNING true"""
)

FIND = sql(
    """
    SELECT fingerprint, status, body,
           status IS NULL AND created_at > now() - make_interval(secs => $4) AS is_under_way
      FROM idempotency_records
     WHERE company_id = $1 AND key = $2 AND target = $3 AND created_at >= now() - make_interval(hours => $5)""",
    row=IdempotencyRecord,
)

SETTLE = sql(
    """
    UPDATE idempotency_records
       SET status = $4, body = $5
     WHERE company_id = $1 AND key = $2 AND target = $3"""
)

# The response if the process dies before it settles the claim: the outcome is unknown.
STORE_PROVISIONAL = sql("UPDATE idempotency_records SET body = $4 WHERE company_id = $1 AND key = $2 AND target = $3")

PURGE = sql(
    """
    DELETE FROM idempotency_records
     WHERE company_id = $1 AND key = $2 AND target = $3 AND fingerprint = $4 AND status IS NULL"""
)


def build_claim(company_id: int, key: str, target: str, body: bytes) -> IdempotencyClaim:
    if not 1 <= len(key) <= LONGEST_KEY or not key.isascii() or not key.isprintable():
        raise Invalid.field("Idempotency-Key", f"must be 1 to {LONGEST_KEY} printable ASCII characters")
    return IdempotencyClaim(company_id, key, target, sha256(body).digest())


async def acquire(tx: Tx, claim: IdempotencyClaim) -> HttpResponse | None:
    """None when this transaction is the first; otherwise the stored response. Waits for a first that still runs."""
    record_key = (claim.company_id, claim.key, claim.target)
    try:
        if await CLAIM.value(tx, *record_key, claim.fingerprint, KEPT_HOURS):
            return None
    except asyncpg.LockNotAvailableError:
        raise build_in_progress() from None
    replay = await find(tx, claim)
    if replay is None:
        raise build_in_progress()
    return replay


async def find(db: Connection, claim: IdempotencyClaim) -> HttpResponse | None:
    """The stored response; None when there is none yet."""
    record_key = (claim.company_id, claim.key, claim.target)
    record = await FIND.find(db, *record_key, LONGEST_OUTBOUND_CALL_SECONDS, KEPT_HOURS)
    if record is not None and record.fingerprint != claim.fingerprint:
        raise IdempotencyKeyReused
    if record is None or record.is_under_way:
        return None
    return HttpResponse(record.status or 202, record.body, {"idempotency-replayed": "true"})


async def settle(tx: Tx, claim: IdempotencyClaim, response: HttpResponse) -> None:
    await SETTLE.run(tx, claim.company_id, claim.key, claim.target, response.status, response.body)


async def store_provisional(tx: Tx, claim: IdempotencyClaim, response: HttpResponse) -> None:
    """Stores what a repeated request gets while the outbound call is still running."""
    await STORE_PROVISIONAL.run(tx, claim.company_id, claim.key, claim.target, response.body)


async def purge(db: Connection, claim: IdempotencyClaim) -> None:
    await PURGE.run(db, claim.company_id, claim.key, claim.target, claim.fingerprint)


def build_in_progress() -> IdempotencyInProgress:
    return IdempotencyInProgress(headers={"retry-after": "1"})


class SingleFlight:
    """Repeated requests inside one process wait here in turn, without holding a database connection."""

    def __init__(self) -> None:
        self._gates: dict[tuple[int, str, str], tuple[asyncio.Lock, list[None]]] = {}

    @asynccontextmanager
    async def turn(self, claim: IdempotencyClaim | None) -> AsyncIterator[None]:
        if claim is None:
            yield
            return
        record_key = (claim.company_id, claim.key, claim.target)
        gate, waiting = self._gates.setdefault(record_key, (asyncio.Lock(), []))
        waiting.append(None)
        try:
            try:
                await asyncio.wait_for(gate.acquire(), WAIT_SECONDS)
            except TimeoutError:
                raise build_in_progress() from None
            try:
                yield
            finally:
                gate.release()
        finally:
            waiting.pop()
            if not waiting:
                del self._gates[record_key]
