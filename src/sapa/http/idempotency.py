"""Idempotency-Key: the first success is stored with its change, and its twins get the same answer."""

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
"""After so long a call that led outside is not on its way any more: whoever made it died."""
LONGEST_KEY = 255


class IdempotencyClaim(Struct, frozen=True):
    """One request that asks to happen at most once."""

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

# What to answer if nobody settles it: an outcome that is not known.
PROMISE = sql("UPDATE idempotency_records SET body = $4 WHERE company_id = $1 AND key = $2 AND target = $3")

PURGE = sql(
    """
    DELETE FROM idempotency_records
     WHERE company_id = $1 AND key = $2 AND target = $3 AND fingerprint = $4 AND status IS NULL"""
)


def build_claim(company_id: int, key: str, target: str, body: bytes) -> IdempotencyClaim:
    if not 1 <= len(key) <= LONGEST_KEY or not key.isascii() or not key.isprintable():
        raise Invalid.field("Idempotency-Key", f"must be 1 to {LONGEST_KEY} printable ASCII characters")
    return IdempotencyClaim(company_id, key, target, sha256(body).digest())


async def claim(tx: Tx, attempt: IdempotencyClaim) -> HttpResponse | None:
    """None when this transaction is the first; otherwise the stored answer. Waits for a first that still runs."""
    place = (attempt.company_id, attempt.key, attempt.target)
    try:
        if await CLAIM.value(tx, *place, attempt.fingerprint, KEPT_HOURS):
            return None
    except asyncpg.LockNotAvailableError:
        raise in_progress() from None
    replay = await find(tx, attempt)
    if replay is None:
        raise in_progress()
    return replay


async def find(db: Connection, attempt: IdempotencyClaim) -> HttpResponse | None:
    """The stored answer; None when there is none, or not yet."""
    place = (attempt.company_id, attempt.key, attempt.target)
    record = await FIND.find(db, *place, LONGEST_OUTBOUND_CALL_SECONDS, KEPT_HOURS)
    if record is not None and record.fingerprint != attempt.fingerprint:
        raise IdempotencyKeyReused
    if record is None or record.is_under_way:
        return None
    return HttpResponse(record.status or 202, record.body, {"idempotency-replayed": "true"})


async def settle(tx: Tx, attempt: IdempotencyClaim, answer: HttpResponse) -> None:
    await SETTLE.run(tx, attempt.company_id, attempt.key, attempt.target, answer.status, answer.body)


async def promise(tx: Tx, attempt: IdempotencyClaim, answer: HttpResponse) -> None:
    """Keeps the answer of one that is still under way when the transaction commits."""
    await PROMISE.run(tx, attempt.company_id, attempt.key, attempt.target, answer.body)


async def purge(db: Connection, attempt: IdempotencyClaim) -> None:
    await PURGE.run(db, attempt.company_id, attempt.key, attempt.target, attempt.fingerprint)


def in_progress() -> IdempotencyInProgress:
    return IdempotencyInProgress(headers={"retry-after": "1"})


class SingleFlight:
    """Twins inside one process wait here in turn, without a database connection each."""

    def __init__(self) -> None:
        self._gates: dict[tuple[int, str, str], tuple[asyncio.Lock, list[None]]] = {}

    @asynccontextmanager
    async def turn(self, attempt: IdempotencyClaim | None) -> AsyncIterator[None]:
        if attempt is None:
            yield
            return
        place = (attempt.company_id, attempt.key, attempt.target)
        gate, visitors = self._gates.setdefault(place, (asyncio.Lock(), []))
        visitors.append(None)
        try:
            try:
                await asyncio.wait_for(gate.acquire(), WAIT_SECONDS)
            except TimeoutError:
                raise in_progress() from None
            try:
                yield
            finally:
                gate.release()
        finally:
            visitors.pop()
            if not visitors:
                del self._gates[place]
