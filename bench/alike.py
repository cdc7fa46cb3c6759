"""Before anything is measured: the three servers must give the same answers."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import httpx

from bench.scenarios import Scenario
from bench.servers import Server


async def check_alike(servers: Sequence[Server], scenarios: Sequence[Scenario]) -> None:
    async with httpx.AsyncClient(timeout=60) as client:
        for scenario in scenarios:
            if not scenario.creates:
                await _compare(client, servers, scenario)


async def _compare(client: httpx.AsyncClient, servers: Sequence[Server], scenario: Scenario) -> None:
    answers = {server.name: await _ask(client, server, scenario) for server in servers}
    first, *others = answers.values()
    if any(other != first for other in others):
        raise RuntimeError(f"the servers answer {scenario.title!r} differently: {answers}")
    if isinstance(first["data"], list) and not first["data"]:
        raise RuntimeError(f"nothing was found for {scenario.title!r}: it would measure nothing")


async def _ask(client: httpx.AsyncClient, server: Server, scenario: Scenario) -> Any:
    url = server.address + server.path(scenario.company, scenario.rest[0])
    answer = await client.get(url, headers={"x-api-key": scenario.company.key})
    answer.raise_for_status()
    return _comparable(answer.json())


def _comparable(value: Any) -> Any:
    """Instants by what they mean: Pydantic prints six fractional digits, Sapa three."""
    if isinstance(value, dict):
        return {name: datetime.fromisoformat(one) if name.endswith("edAt") else _comparable(one)
                for name, one in value.items()}  # fmt: skip
    return [_comparable(one) for one in value] if isinstance(value, list) else value
