"""A call whose work leads to an outside party: two transactions around it, and none while the other side thinks."""

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
from sapa.http.responses import Accepted, HttpResponse, encode_result
from sapa.values.company import Company

LOOK_SECONDS = 0.1

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
    """The addresses it passed, as the proxies in front named them."""
    headers: dict[str, str]
    query: dict[str, Any]
    body: bytes


class Replayed(Exception):
    """The call was made before: its answer is known."""

    def __init__(self, answer: HttpResponse) -> None:
        self.answer = answer


class OutboundCall:
    """What a handler that leads outside knows of its call, in place of a transaction.

    `intend` stores what is about to happen, before the first byte leaves; `conclude` stores what came of it. With an
    Idempotency-Key the first claims it, with the provisional answer that a retry gets if this process dies on the
    way, and the second puts the final answer in its place. After a refusal the key is free again.
    """

    __slots__ = ("_has_claimed", "_settled", "_status", "asked", "attempt", "context", "is_recorded", "key")

    def __init__(
        self, context: AppContext, key: Key, asked: RequestInfo, status: int, attempt: IdempotencyClaim | None
    ) -> None:
        self.context = context
        self.key = key
        self.asked = asked
        self.attempt = attempt
        self.is_recorded = False
        """Whether the handler itself keeps the record of this call that the endpoint's recorder would."""
        self._status = status
        self._has_claimed = False
        self._settled: HttpResponse | None = None

    @property
    def company(self) -> Company:
        return self.key.company

    async def intend(
        self, work: Callable[[Tx], Awaitable[Result]], shown: Callable[[Result], object] = lambda result: result
    ) -> Result:
        """One transaction before the call to the outside; `shown` is what a caller may be told of its result."""

        async def claim_and_work(tx: Tx) -> Result:
            if self.attempt is not None and (replay := await idempotency.claim(tx, self.attempt)):
                raise Replayed(replay)
            result = await work(tx)
            if self.attempt is not None:
                provisional = encode_result(Accepted(shown(result)), 202)
                await idempotency.promise(tx, self.attempt, provisional)
            return result

        result = await retry(
            partial(self.transact, claim_and_work),
            IdempotencyInProgress,
            seconds=idempotency.WAIT_SECONDS,
            pause=LOOK_SECONDS,
        )
        self._has_claimed = True
        return result

    async def conclude(self, work: Callable[[Tx], Awaitable[Result]]) -> Result:
        """One transaction after it; its result is what the call answers."""

        async def work_and_settle(tx: Tx) -> tuple[Result, HttpResponse]:
            result = await work(tx)
            answer = encode_result(result, self._status)
            if self.attempt is not None:
                await idempotency.settle(tx, self.attempt, answer)
            return result, answer

        result, self._settled = await self.transact(work_and_settle)
        return result

    async def transact(self, work: Callable[[Tx], Awaitable[Result]]) -> Result:
        """One transaction, run again when another one stood in its way."""
        return await self.context.database.transact(work)

    async def give_up(self) -> None:
        """After a refusal the same key may be tried again."""
        if self.attempt is not None and self._has_claimed and self._settled is None:
            async with self.context.database.connection() as db:
                await idempotency.purge(db, self.attempt)

    async def find_answer(self) -> HttpResponse | None:
        """What an earlier call with the same key was answered."""
        if self.attempt is None:
            return None
        async with self.context.database.connection() as db:
            return await idempotency.find(db, self.attempt)

    async def build_answer(self, result: object) -> HttpResponse:
        """The answer to send; of a call that intended nothing it is kept only now."""
        answer = self._settled or encode_result(result, self._status)
        if self.attempt is None or self._has_claimed:
            return answer
        return await self.transact(partial(self._keep, self.attempt, answer))

    async def _keep(self, attempt: IdempotencyClaim, answer: HttpResponse, tx: Tx) -> HttpResponse:
        if replay := await idempotency.claim(tx, attempt):
            return replay
        await idempotency.settle(tx, attempt, answer)
        return answer
