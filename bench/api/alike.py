"""Before anything is measured: the three servers must give the same answers."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import httpx

from bench.api.scenarios import Scenario, build_lines
from bench.servers import Server

OWN = {"id", "orderId", "orderNumber", "createdAt", "updatedAt"}
"""What every write gives anew."""


async def check_alike(servers: Sequence[Server], scenarios: Sequence[Scenario]) -> None:
    async with httpx.AsyncClient(timeout=60) as client:
        for scenario in scenarios:
            await _compare(client, servers, scenario)


async def _compare(client: httpx.AsyncClient, servers: Sequence[Server], scenario: Scenario) -> None:
    answers = {server.name: await _ask(client, server, scenario) for server in servers}
    first, *others = answers.values()
    if any(other != first for other in others):
        raise RuntimeError(f"the servers answer {scenario.title!r} differently: {answers}")
    if isinstance(first["data"], list) and not first["data"]:
        raise RuntimeError(f"nothing was found for {scenario.title!r}: it would measure nothing")


async def _ask(client: httpx.AsyncClient, server: Server, scenario: Scenario) -> Any:
    headers = {"x-api-key": scenario.company.key, "content-type": "application/json"}
    [line] = build_lines(server, scenario.company, scenario.requests[:1], load=0)
    method, path, body = line.split(" ", 2)
    answer = await client.request(method, server.address + path, headers=headers, content=body)
    if not answer.is_success:
        raise RuntimeError(f"{server.name} answers {scenario.title!r} with {answer.status_code}: {answer.text}")
    return _comparable(answer.json(), frozenset() if scenario.is_read else frozenset(OWN))


def _comparable(value: Any, without: frozenset[str]) -> Any:
    """Instants by what they mean: Pydantic prints six fractional digits, Sapa three."""
    if isinstance(value, dict):
        return {name: datetime.fromisoformat(one) if one and name.endswith("At") else _comparable(one, without)
                for name, one in value.items() if name not in without}  # fmt: skip
    return [_comparable(one, without) for one in value] if isinstance(value, list) else value
