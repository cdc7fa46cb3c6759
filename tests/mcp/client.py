"""An MCP client of the tests' own: one POST for each message, everything of the answer at hand."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import httpx

from tests.conftest import TLS, Installation

MODERN = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "tests", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}

_ids = count(1)


def build_message(method: str, **params: Any) -> dict[str, Any]:
    """A request of the stateless version."""
    return {"jsonrpc": "2.0", "id": next(_ids), "method": method, "params": {**params, "_meta": META}}


def build_headers(message: dict[str, Any]) -> dict[str, str]:
    name = message.get("params", {}).get("name")
    return {
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": MODERN,
        "mcp-method": message["method"],
        **({"mcp-name": name} if name else {}),
    }


class McpClient:
    """Speaks the stateless version."""

    def __init__(self, http: httpx.AsyncClient, query: str = "") -> None:
        self.http = http
        self.path = f"/mcp{query}"

    async def send(self, message: Any, **headers: str) -> httpx.Response:
        """Headers as given, besides the key."""
        return await self.http.post(self.path, json=message, headers=headers)

    async def ask(self, method: str, **params: Any) -> httpx.Response:
        message = build_message(method, **params)
        response = await self.http.post(self.path, json=message, headers=build_headers(message))
        assert response.headers["content-type"] == "application/json"
        assert response.json()["jsonrpc"] == "2.0"
        assert response.json()["id"] in {message["id"], None}
        return response

    async def list_tools(self) -> list[dict[str, Any]]:
        response = await self.ask("tools/list")
        assert response.status_code == 200, response.text
        tools: list[dict[str, Any]] = response.json()["result"]["tools"]
        return tools

    async def call(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """The result of a tool, be it an error or not."""
        response = await self.ask("tools/call", name=tool, arguments=arguments)
        assert response.status_code == 200, response.text
        result: dict[str, Any] = response.json()["result"]
        return result

    async def run(self, tool: str, /, **arguments: Any) -> Any:
        """The structured content of a tool that succeeds."""
        result = await self.call(tool, **arguments)
        assert not result.get("isError"), result
        return result.get("structuredContent")

    async def fail(self, tool: str, /, **arguments: Any) -> tuple[str, str]:
        """The code and the text of a tool that fails."""
        result = await self.call(tool, **arguments)
        assert result["isError"], result
        code: str = result["structuredContent"]["error"]["code"]
        text: str = result["content"][0]["text"]
        assert text.startswith(f"{code}: ")
        return code, text


@asynccontextmanager
async def connect_mcp(installation: Installation, key: str | None, query: str = "") -> AsyncIterator[McpClient]:
    headers = {} if key is None else {"x-api-key": key}
    async with httpx.AsyncClient(base_url=installation.address, headers=headers, timeout=120, verify=TLS) as http:
        yield McpClient(http, query)
