"""Calls of one endpoint that share a transaction, each with its own response."""

from collections.abc import Hashable, Sequence
from functools import partial
from typing import Any

from msgspec import Struct

from sapa.db.group_commit import GroupCommit
from sapa.db.pool import Database, Tx
from sapa.http import idempotency
from sapa.http.endpoints import Endpoint
from sapa.http.errors import ApiError
from sapa.http.idempotency import IdempotencyClaim
from sapa.http.keys import Key
from sapa.http.responses import HttpResponse, encode_for_retries, encode_result


class GroupedCall(Struct, frozen=True):
    key: Key
    arguments: list[Any]
    claim: IdempotencyClaim | None


class GroupedCalls:
    """One group of waiting calls for each endpoint that declares how its calls share a transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._groups: dict[Endpoint, GroupCommit[GroupedCall, HttpResponse | None]] = {}

    async def run(
        self, endpoint: Endpoint, key: Key, arguments: list[Any], claim: IdempotencyClaim | None
    ) -> HttpResponse | None:
        """The response, once its transaction is committed. None when another request has the call's Idempotency-Key:
        the call has to run alone, because it may have to wait for that one."""
        group = self._groups.get(endpoint)
        if group is None:
            group = self._groups[endpoint] = GroupCommit(partial(run_group, endpoint), _get_first_id)
        return await group.run(self._database, key.company.id, GroupedCall(key, arguments, claim))


def _get_first_id(call: GroupedCall) -> Hashable:
    """The path's first id names the resource that the call locks."""
    first: Hashable = call.arguments[0]
    return first


async def run_group(
    endpoint: Endpoint, tx: Tx, company_id: int, calls: Sequence[GroupedCall]
) -> Sequence[HttpResponse | None | Exception]:
    """Claims the keys of all calls, applies those that have theirs, and stores their responses with the keys."""
    if endpoint.group is None:
        raise TypeError(f"{endpoint.operation} has no group")
    claims = [call.claim for call in calls if call.claim is not None]
    acquired = await idempotency.acquire_all(tx, company_id, claims) if claims else set()
    chosen = [call for call in calls if call.claim is None or call.claim.row_key in acquired]
    results = await endpoint.group(tx, calls[0].key.company, [call.arguments for call in chosen])
    responses: dict[int, HttpResponse | ApiError] = {}
    stored: list[tuple[IdempotencyClaim, HttpResponse | None]] = []
    for call, result in zip(chosen, results, strict=True):
        if isinstance(result, ApiError):
            responses[id(call)], for_retries = result, None
        else:
            responses[id(call)] = response = encode_result(result, endpoint.status)
            for_retries = encode_for_retries(result, response)
        if call.claim is not None:
            stored.append((call.claim, for_retries))
    if stored:
        await idempotency.settle_all(tx, company_id, stored)
    return [responses.get(id(call)) for call in calls]
