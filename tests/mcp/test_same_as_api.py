"""Every tool answers as its endpoint does: the same status, the same error, the same shape."""

from typing import Any

import httpx
import msgspec
import pytest

from sapa.db.pool import Database
from sapa.domains import ROUTES
from sapa.http.endpoints import camel
from sapa.mcp.guides import DOCS_TOOL
from sapa.mcp.tools import Catalogue, Tool
from tests.conftest import Installation, connect
from tests.factories import Environments, make_company, make_key
from tests.http.samples import address_of, root_of, sample_body
from tests.mcp.client import connect_mcp

TOOLS = list(Catalogue(ROUTES, DOCS_TOOL).tools.values())


def name_of(tool: Tool) -> str:
    return tool.name


def build_arguments(tool: Tool) -> dict[str, Any]:
    ids = {camel(name): kind.example if kind else "unknown" for name, kind in tool.endpoint.path_ids.items()}
    return ids | (sample_body(tool.endpoint) or {})


async def call_endpoint(client: httpx.AsyncClient, tool: Tool) -> Any:
    url = root_of(client) + tool.endpoint.routes.base + address_of(tool.endpoint)
    response = await client.request(tool.endpoint.method, url, json=sample_body(tool.endpoint))
    return response.json() if response.content else None


def outline(value: Any) -> Any:
    """An error as it is; of a success the names of its members."""
    if not isinstance(value, dict) or "error" in value:
        return value
    data = value.get("data")
    return sorted(value), sorted(data) if isinstance(data, dict) else type(data)


@pytest.mark.parametrize("tool", TOOLS, ids=name_of)
async def test_a_tool_answers_as_its_endpoint(
    installation: Installation, database: Database, company: Environments, tool: Tool
) -> None:
    """Each in a company of its own: the second of two creations would be a conflict."""
    rest_key = await make_key(database, company.test)
    mcp_key = await make_key(database, (await make_company(database)).test)
    async with connect(installation, rest_key.raw) as rest, connect_mcp(installation, mcp_key.raw) as client:
        expected = await call_endpoint(rest, tool)
        result = await client.call(tool.name, **build_arguments(tool))
    assert outline(result.get("structuredContent")) == outline(expected)
    assert bool(result.get("isError")) == ("error" in (expected or {}))
    if expected is not None and not result.get("isError"):
        assert set(msgspec.json.decode(result["content"][0]["text"])) <= set(expected)
