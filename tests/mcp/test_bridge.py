"""`sapa mcp`: MCP over the standard streams of a process."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sapa.db.pool import Database
from tests.cli.command import environment, sapa
from tests.conftest import Installation, free_port
from tests.factories import Environments, MadeKey, make_key
from tests.mcp.client import build_message

pytestmark = pytest.mark.processes


class BridgeProcess:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    def write(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")

    async def read(self) -> Any:
        assert self.process.stdout is not None
        line = await asyncio.wait_for(self.process.stdout.readline(), 30)
        assert line.endswith(b"\n"), line
        return msgspec.json.decode(line)

    async def ask(self, message: dict[str, Any]) -> Any:
        self.write(msgspec.json.encode(message))
        return await self.read()

    async def end(self) -> tuple[int, bytes]:
        """Closes its input; returns its exit code and what it still wrote."""
        out, err = await asyncio.wait_for(self.process.communicate(b""), 30)
        assert err == b""
        assert self.process.returncode is not None
        return self.process.returncode, out


@asynccontextmanager
async def start(server: str, key: str, folder: Path, *options: str) -> AsyncIterator[BridgeProcess]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "sapa", "mcp", *options, stdin=-1, stdout=-1, stderr=-1, limit=4_000_000,
        env=environment(folder, {"SAPA_API_KEY": key, "SAPA_BASE_URL": server}),
    )  # fmt: skip
    try:
        yield BridgeProcess(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@pytest.fixture
async def key(database: Database, company: Environments) -> MadeKey:
    return await make_key(database, company.live)


async def test_a_client_talks_to_the_server_line_by_line(
    installation: Installation, key: MadeKey, tmp_path: Path
) -> None:
    async with start(installation.address, key.raw, tmp_path, "--readonly", "--toolsets", "orders") as bridge:
        discovered = await bridge.ask(build_message("server/discover"))
        assert "2026-07-28" in discovered["result"]["supportedVersions"]
        listed = await bridge.ask(build_message("tools/list"))
        names = [tool["name"] for tool in listed["result"]["tools"]]
        assert names == ["list_orders", "get_order", "list_order_history", "read_docs"]
        called = await bridge.ask(build_message("tools/call", name="list_orders", arguments={}))
        assert called["result"]["structuredContent"]["data"] == []
        unknown = await bridge.ask(build_message("tools/call", name="é", arguments={}))
        assert unknown["error"]["code"] == -32602
        bridge.write(b"")
        bridge.write(b"{")
        assert (await bridge.read())["error"]["code"] == -32700
        assert await bridge.end() == (0, b"")


async def test_a_client_of_an_earlier_version_opens_with_a_handshake(
    installation: Installation, key: MadeKey, tmp_path: Path
) -> None:
    async with start(installation.address, key.raw, tmp_path) as bridge:
        opening = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        opened = await bridge.ask({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": opening})
        assert opened["result"]["protocolVersion"] == "2025-06-18"
        bridge.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
        call = {"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": {"name": "list_orders", "arguments": {}}}
        assert (await bridge.ask(call))["result"]["structuredContent"]["meta"]["total"] == 0
        assert await bridge.end() == (0, b"")


async def test_several_requests_are_under_way_at_once_and_all_are_answered_before_the_end(
    installation: Installation, key: MadeKey, tmp_path: Path
) -> None:
    async with start(installation.address, key.raw, tmp_path) as bridge:
        messages = [build_message("tools/call", name="list_orders", arguments={}) for _ in range(40)]
        for message in messages:
            bridge.write(msgspec.json.encode(message))
        code, out = await bridge.end()
    answers = [msgspec.json.decode(line) for line in out.splitlines()]
    assert code == 0
    assert sorted(answer["id"] for answer in answers) == [message["id"] for message in messages]


async def test_a_refusal_has_the_id_of_its_request(installation: Installation, key: MadeKey, tmp_path: Path) -> None:
    revoked = sapa(installation.data, "key", "revoke", key.id, "--json").json()
    assert revoked["status"] == "revoked"
    async with start(installation.address, key.raw, tmp_path) as bridge:
        message = build_message("tools/list")
        refused = await bridge.ask(message)
        assert (refused["id"], refused["error"]["data"]["code"]) == (message["id"], "INVALID_API_KEY")
        assert await bridge.end() == (0, b"")


async def test_a_server_that_is_away_is_an_answer(key: MadeKey, tmp_path: Path) -> None:
    async with start(f"http://127.0.0.1:{free_port()}", key.raw, tmp_path) as bridge:
        message = build_message("tools/list")
        refused = await bridge.ask(message)
        assert refused["id"] == message["id"]
        assert "cannot be reached" in refused["error"]["message"]


async def test_a_cancelled_request_gets_no_answer(key: MadeKey, tmp_path: Path) -> None:
    """Of a server that answers nothing."""
    asked = asyncio.Event()

    async def keep_silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        asked.set()
        await reader.read()
        writer.close()

    server = await asyncio.start_server(keep_silent, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, start(f"http://127.0.0.1:{port}", key.raw, tmp_path) as bridge:
        message = build_message("tools/list")
        bridge.write(msgspec.json.encode(message))
        await asyncio.wait_for(asked.wait(), 30)
        odd = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": [message["id"]]}}
        bridge.write(msgspec.json.encode(odd))
        cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": message["id"]}}
        bridge.write(msgspec.json.encode(cancelled))
        assert await bridge.end() == (0, b"")


async def test_a_signal_ends_it(installation: Installation, key: MadeKey, tmp_path: Path) -> None:
    async with start(installation.address, key.raw, tmp_path) as bridge:
        await bridge.ask(build_message("tools/list"))
        bridge.process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(bridge.process.wait(), 30) == 0


def test_a_key_is_needed(tmp_path: Path) -> None:
    assert "SAPA_API_KEY" in sapa(tmp_path, "mcp").err
    assert "not an API key" in sapa(tmp_path, "mcp", SAPA_API_KEY="svc_live_x").err
