"""Idempotency-Key: the first success is stored with its change, and repeated requests get the same response."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from hashlib import sha256

import asyncpg
from msgspec import Struct

from sapa.db.pool import Connection, Tx
from sapa.http import queries
from sapa.http.errors import IdempotencyInProgress, IdempotencyKeyReused, Invalid
from sapa.http.responses import HttpResponse
from sapa.http.retention import KEPT_HOURS

WAIT_SECONDS = 5.0
LONGEST_OUTBOUND_CALL_SECONDS = 90
"""An outbound call is considered abandoned after 90 s."""
LONGEST_KEY = 255


class IdempotencyClaim(Struct, frozen=True):
    """One request that is to happen at most once."""

    company_id: int
    key: str
    target: str
    fingerprint: bytes

    @property
    def row_key(self) -> tuple[int, str, str]:
        return self.company_id, self.key, self.target


def check_key(key: str, field: str = "Idempotency-Key") -> None:
    """`field` is where the caller put it."""
    if not 1 <= len(key) <= LONGEST_KEY or not key.isascii() or not key.isprintable():
        raise Invalid.field(field, f"must be 1 to {LONGEST_KEY} printable ASCII characters")


def build_claim(company_id: int, key: str, target: str, body: bytes) -> IdempotencyClaim:
    check_key(key)
    return IdempotencyClaim(company_id, key, target, sha256(body).digest())


async def acquire(tx: Tx, claim: IdempotencyClaim) -> HttpResponse | None:
    """None for the first request; otherwise the stored response. Waits while the first one is still running."""
    try:
        if await queries.claim(tx, *claim.row_key, claim.fingerprint):
            return None
    except asyncpg.LockNotAvailableError:
        raise build_in_progress() from None
    replay = await find(tx, claim)
    if replay is None:
        raise build_in_progress()
    return replay


async def find(db: Connection, claim: IdempotencyClaim) -> HttpResponse | None:
    """The stored response; None when there is none yet."""
    record = await queries.find_record(db, *claim.row_key, LONGEST_OUTBOUND_CALL_SECONDS, KEPT_HOURS)
    if record is not None and record.fingerprint != claim.fingerprint:
        raise IdempotencyKeyReused
    if record is None or record.is_under_way:
        return None
    return HttpResponse(record.status or 202, record.body, {"idempotency-replayed": "true"})


async def settle(tx: Tx, claim: IdempotencyClaim, response: HttpResponse) -> None:
    await queries.settle_record(tx, *claim.row_key, response.status, response.body)


async def acquire_all(tx: Tx, company_id: int, claims: Sequence[IdempotencyClaim]) -> set[tuple[int, str, str]]:
    """The row keys of the claims that are first, except those whose keys another transaction holds. Does not wait."""
    rows = [(claim.key, claim.target, claim.fingerprint) for claim in claims]
    return {(company_id, *row) for row in await queries.claim_all(tx, company_id, rows)}


async def settle_all(tx: Tx, company_id: int, outcomes: Sequence[tuple[IdempotencyClaim, HttpResponse | None]]) -> None:
    """Stores the responses, and frees the claims of refused calls, which have None."""
    stored = [(claim.key, claim.target, answer.status, answer.body) for claim, answer in outcomes if answer is not None]
    if stored:
        await queries.settle_records(tx, company_id, stored)
    if refused := [(claim.key, claim.target) for claim, answer in outcomes if answer is None]:
        await queries.delete_claims(tx, company_id, refused)


async def store_provisional(tx: Tx, claim: IdempotencyClaim, response: HttpResponse) -> None:
    """Stores what a repeated request gets while the outbound call is still running."""
    await queries.store_provisional(tx, *claim.row_key, response.body)


async def release(db: Connection, claim: IdempotencyClaim) -> None:
    """Frees a claim that is not settled."""
    await queries.delete_claim(db, *claim.row_key, claim.fingerprint)


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
        gate, waiting = self._gates.setdefault(claim.row_key, (asyncio.Lock(), []))
        waiting.append(None)
        try:
            try:
                async with asyncio.timeout(WAIT_SECONDS):
                    await gate.acquire()
            except TimeoutError:
                raise build_in_progress() from None
            try:
                yield
            finally:
                gate.release()
        finally:
            waiting.pop()
            if not waiting:
                del self._gates[claim.row_key]
