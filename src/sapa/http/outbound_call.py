"""A call that needs an outside party: one transaction before the request to it, one after, and none meanwhile."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

from msgspec import Struct

from sapa.context import AppContext
from sapa.db.pool import Tx
from sapa.db.retry import retry
from sapa.http import idempotency
from sapa.http.errors import IdempotencyInProgress
from sapa.http.idempotency import IdempotencyClaim
from sapa.http.keys import Key
from sapa.http.responses import Accepted, HttpResponse, encode_for_retries, encode_result
from sapa.values.company import Company

POLL_SECONDS = 0.1

Result = TypeVar("Result")


class RequestInfo(Struct, frozen=True):
    """The request as it came in."""

    request_id: str
    method: str
    path: str
    base_url: str
    hostname: str
    address: str
    forwarded: list[str]
    """X-Forwarded-For, as the proxies in front set it."""
    headers: dict[str, str]
    query: dict[str, Any]
    body: bytes


class Replayed(Exception):
    """The call was made before: its response is stored."""

    def __init__(self, response: HttpResponse) -> None:
        self.response = response


class OutboundCall:
    """What the handler of an outbound call gets in place of a transaction.

    `intend` stores what is about to happen, before the first byte leaves; `conclude` stores the outcome. With an
    Idempotency-Key, `intend` claims it with the provisional response that a retry gets if this process dies on the
    way, and `conclude` replaces that with the final one. After a refusal the key is free again.
    """

    __slots__ = (
        "_has_claimed",
        "_settled",
        "_status",
        "cache_seconds",
        "claim",
        "context",
        "is_recorded",
        "key",
        "request",
    )  # fmt: skip

    def __init__(
        self, context: AppContext, key: Key, request: RequestInfo, status: int, claim: IdempotencyClaim | None
    ) -> None:
        self.context = context
        self.key = key
        self.request = request
        self.claim = claim
        self.is_recorded = False
        """True when the handler recorded this call itself, so that the endpoint's recorder does not."""
        self.cache_seconds: float | None = None
        """For how long an endpoint that is declared as cached keeps the response; None to keep none."""
        self._status = status
        self._has_claimed = False
        self._settled: HttpResponse | None = None

    @property
    def company(self) -> Company:
        return self.key.company

    @property
    def address(self) -> str:
        return self.request.address

    async def intend(
        self,
        work: Callable[[Tx], Awaitable[Result]],
        present: Callable[[Result], object] = lambda result: result,
        single_statement: Callable[[Tx], Awaitable[Result | None]] | None = None,
    ) -> Result:
        """One transaction before the outside call; `present` turns its result into the provisional response's data.

        `single_statement` does the same work with one statement, or returns None if that is not possible.
        """
        if self.claim is None and single_statement is not None:
            stored = await self.context.database.transact(single_statement, is_one_statement=True)
            if stored is not None:
                return stored

        async def claim_and_work(tx: Tx) -> Result:
            if self.claim is not None and (replay := await idempotency.acquire(tx, self.claim)):
                raise Replayed(replay)
            stored = await single_statement(tx) if self.claim is not None and single_statement is not None else None
            result = await work(tx) if stored is None else stored
            if self.claim is not None:
                provisional = encode_result(Accepted(present(result)), 202)
                await idempotency.store_provisional(tx, self.claim, provisional)
            return result

        result = await retry(
            partial(self.transact, claim_and_work),
            IdempotencyInProgress,
            seconds=idempotency.WAIT_SECONDS,
            pause=POLL_SECONDS,
        )
        self._has_claimed = True
        return result

    async def commit(self, work: Callable[[Tx], Awaitable[Result]], *, is_one_statement: bool = False) -> Result:
        """The only transaction of a call that changes nothing at the outside party, such as checking an account. It
        claims the Idempotency-Key and stores the response; its result is the response's data.

        Set `is_one_statement` if the work changes rows with one statement: without a key it then needs no BEGIN."""

        async def claim_work_and_settle(tx: Tx) -> tuple[Result, HttpResponse]:
            if self.claim is not None and (replay := await idempotency.acquire(tx, self.claim)):
                raise Replayed(replay)
            result = await work(tx)
            response = encode_result(result, self._status)
            if self.claim is not None:
                await idempotency.settle(tx, self.claim, encode_for_retries(result, response))
            return result, response

        result, self._settled = await self.context.database.transact(
            claim_work_and_settle, is_one_statement=is_one_statement and self.claim is None
        )
        self._has_claimed = True
        return result

    async def conclude(
        self, work: Callable[[Tx], Awaitable[Result]], present: Callable[[Result], object] = lambda result: result
    ) -> Result:
        """One transaction after the outside call; its result is the response's data. `present` turns it into what is
        stored for repeated requests."""

        async def work_and_settle(tx: Tx) -> tuple[Result, HttpResponse]:
            result = await work(tx)
            response = encode_result(result, self._status)
            if self.claim is not None:
                stored = present(result)
                replay = response if stored is result else encode_result(stored, self._status)
                await idempotency.settle(tx, self.claim, encode_for_retries(stored, replay))
            return result, response

        result, self._settled = await self.transact(work_and_settle)
        return result

    async def transact(self, work: Callable[[Tx], Awaitable[Result]]) -> Result:
        """One transaction, retried when it conflicts with another."""
        return await self.context.database.transact(work)

    async def release(self) -> None:
        """Frees the claim after a refusal, so that the same key can be used again."""
        if self.claim is not None and self._has_claimed and self._settled is None:
            async with self.context.database.connection() as db:
                await idempotency.release(db, self.claim)

    async def find_response(self) -> HttpResponse | None:
        """The response to an earlier call with the same key."""
        if self.claim is None:
            return None
        async with self.context.database.connection() as db:
            return await idempotency.find(db, self.claim)

    async def finish(self, result: object) -> HttpResponse:
        """The response to send; for a call without `intend` it is stored only now."""
        response = self._settled or encode_result(result, self._status)
        if self.claim is None or self._has_claimed:
            return response
        retained = encode_for_retries(result, response)
        return await self.transact(partial(self._store, self.claim, retained)) or response

    async def _store(self, claim: IdempotencyClaim, response: HttpResponse, tx: Tx) -> HttpResponse | None:
        """The response that is stored already; None if this one is stored."""
        if replay := await idempotency.acquire(tx, claim):
            return replay
        await idempotency.settle(tx, claim, response)
        return None
