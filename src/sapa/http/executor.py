"""Runs a declared endpoint: for the edge, and for the console, which calls the same endpoints without the network."""

from collections.abc import Awaitable, Callable
from typing import Any

from sapa.context import AppContext
from sapa.db.pool import Tx
from sapa.http import idempotency
from sapa.http.endpoints import Call, Endpoint
from sapa.http.errors import ApiError
from sapa.http.grouped_calls import GroupedCalls
from sapa.http.idempotency import IdempotencyClaim
from sapa.http.keys import Key
from sapa.http.outbound_call import OutboundCall, Replayed
from sapa.http.responses import HttpResponse, encode_for_retries, encode_result
from sapa.http.uploads import UploadCall
from sapa.values.sealing import SecretKeyMissing

AuditRecorder = Callable[[Tx], Awaitable[None]]
"""Records who changed something."""


class Executor:
    """A read takes one connection, a write one transaction; an outbound call opens its own two.

    The caller has identified the key, checked its scope and bound the arguments.
    """

    def __init__(self, context: AppContext) -> None:
        self._context = context
        self._database = context.database
        self._flights = idempotency.SingleFlight()
        self._grouped = GroupedCalls(context.database)

    async def run(
        self,
        endpoint: Endpoint,
        key: Key,
        arguments: list[Any],
        claim: IdempotencyClaim | None,
        audit: AuditRecorder | None = None,
        address: str = "",
    ) -> HttpResponse:
        """Requests with the same claim run once. The audit entry is written in the transaction of the change."""
        if not endpoint.writes:
            long_reads = self._context.long_reads
            is_long = endpoint.is_long_read
            async with long_reads.snapshot(key.company.id) if is_long else self._database.connection() as db:
                result = await endpoint.handler(Call(db, key, self._context, address), *arguments)
            return encode_result(result, endpoint.status)

        if endpoint.group is not None and audit is None:
            async with self._flights.turn(claim):
                response = await self._grouped.run(endpoint, key, arguments, claim)
                if response is not None:
                    return response

        async def change(tx: Tx) -> HttpResponse:
            if claim is not None and (replay := await idempotency.acquire(tx, claim)):
                return replay
            result = await endpoint.handler(Call(tx, key, self._context, address), *arguments)
            response = encode_result(result, endpoint.status)
            if claim is not None:
                await idempotency.settle(tx, claim, encode_for_retries(result, response))
            if audit is not None:
                await audit(tx)
            return response

        if claim is None:
            return await self._database.transact(change)
        async with self._flights.turn(claim):
            return await self._database.transact(change)

    async def run_upload(self, endpoint: Endpoint, call: UploadCall, arguments: list[Any]) -> HttpResponse:
        """The handler reads the file, and opens its own two transactions."""
        try:
            await endpoint.handler(call, *arguments)
        except Replayed as replay:
            return replay.response
        return call.response

    async def run_outbound(self, endpoint: Endpoint, call: OutboundCall, arguments: list[Any]) -> HttpResponse:
        """The handler gets the outbound call in place of a transaction. It runs to its end even if the caller
        disconnects: the outside party may have acted already, so the outcome must be stored."""
        return await self._context.run_to_end(self._run_outside(endpoint, call, arguments))

    async def _run_outside(self, endpoint: Endpoint, call: OutboundCall, arguments: list[Any]) -> HttpResponse:
        async with self._flights.turn(call.claim):
            if stored := await call.find_response():
                return stored
            try:
                return await call.finish(await endpoint.handler(call, *arguments))
            except Replayed as replay:
                return replay.response
            except (ApiError, SecretKeyMissing):
                await call.release()
                raise
