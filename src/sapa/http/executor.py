"""Runs a declared endpoint: for the edge, and for the console, which asks the same endpoints without the network."""

from collections.abc import Awaitable, Callable
from typing import Any

from sapa.context import AppContext, SecretKeyMissing
from sapa.db.pool import Tx
from sapa.http import idempotency
from sapa.http.endpoints import Call, Endpoint
from sapa.http.errors import ApiError
from sapa.http.idempotency import IdempotencyClaim
from sapa.http.keys import Key
from sapa.http.outbound_call import OutboundCall, Replayed
from sapa.http.responses import HttpResponse

Note = Callable[[Tx], Awaitable[None]]
"""Writes down who changed something."""


class Executor:
    """A read takes one connection, a write one transaction, a call that leads outside makes its own two.

    The caller has identified the key, checked its rights and bound the arguments.
    """

    def __init__(self, context: AppContext) -> None:
        self._context = context
        self._database = context.database
        self._flights = idempotency.SingleFlight()

    async def run(
        self,
        endpoint: Endpoint,
        key: Key,
        arguments: list[Any],
        attempt: IdempotencyClaim | None,
        note: Note | None = None,
    ) -> HttpResponse:
        """What has the same attempt happens once; a note is written with the change or not at all."""
        if not endpoint.writes:
            async with self._database.connection() as db:
                return await endpoint.run(Call(db, key, self._context), arguments)
        if attempt is None and note is None:
            return await self._database.transact(lambda tx: endpoint.run(Call(tx, key, self._context), arguments))

        async def change(tx: Tx) -> HttpResponse:
            if attempt is not None and (replay := await idempotency.claim(tx, attempt)):
                return replay
            answer = await endpoint.run(Call(tx, key, self._context), arguments)
            if attempt is not None:
                await idempotency.settle(tx, attempt, answer)
            if note is not None:
                await note(tx)
            return answer

        async with self._flights.turn(attempt):
            return await self._database.transact(change)

    async def run_outside(self, endpoint: Endpoint, errand: OutboundCall, arguments: list[Any]) -> HttpResponse:
        """The handler gets the errand in place of a transaction."""
        async with self._flights.turn(errand.attempt):
            if known := await errand.find_answer():
                return known
            try:
                return await errand.build_answer(await endpoint.handler(errand, *arguments))
            except Replayed as replay:
                return replay.answer
            except (ApiError, SecretKeyMissing):
                await errand.give_up()
                raise
