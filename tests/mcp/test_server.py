"""/mcp over HTTP: both eras of the protocol, who may call it, and what a call leaves behind."""

import asyncio
from typing import Any
from urllib.parse import urlsplit

import httpx
import msgspec
import pytest

from sapa import __version__
from sapa.access import actions as access
from sapa.access.types import Scope
from sapa.customers import api as customers
from sapa.db.pool import Database
from sapa.domains import ROUTES
from sapa.mcp.protocol import LEGACY, VERSIONS
from tests.cli.command import sapa
from tests.conftest import Installation, connect
from tests.factories import Environments, MadeKey, make_customer, make_key, make_order
from tests.http.probe import open_app
from tests.http.test_access_log import line_of
from tests.http.wire import eventually
from tests.mcp.client import META, McpClient, build_headers, build_message, connect_mcp

UNKNOWN_ORDER = "order_01jc9y3q5me8w92v7x4t6r0n1k"


@pytest.fixture
async def key(database: Database, company: Environments) -> MadeKey:
    return await make_key(database, company.live)


@pytest.fixture
async def sandbox_key(database: Database, company: Environments) -> MadeKey:
    return await make_key(database, company.test)


def error_of(response: httpx.Response) -> tuple[int, int]:
    return response.status_code, response.json()["error"]["code"]


# The stateless version.


async def test_a_client_discovers_the_server(installation: Installation, key: MadeKey, sandbox_key: MadeKey) -> None:
    for raw, words in ((key.raw, "live data"), (sandbox_key.raw, "test environment")):
        async with connect_mcp(installation, raw) as client:
            response = await client.ask("server/discover")
        result = response.json()["result"]
        assert words in result.pop("instructions")
        assert result == {
            "resultType": "complete",
            "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "sapa", "title": "Sapa", "version": __version__}},
            "supportedVersions": list(VERSIONS),
            "capabilities": {"tools": {}},
            "ttlMs": 300_000,
            "cacheScope": "private",
        }


async def test_a_list_may_be_cached_for_this_key_alone(installation: Installation, key: MadeKey) -> None:
    async with connect_mcp(installation, key.raw) as client:
        result = (await client.ask("tools/list")).json()["result"]
        again = (await client.ask("tools/list")).json()["result"]
    assert (result["resultType"], result["ttlMs"], result["cacheScope"]) == ("complete", 300_000, "private")
    assert again == result


@pytest.mark.parametrize("method", ["initialize", "ping", "resources/list", "prompts/get", "logging/setLevel"])
async def test_a_method_that_is_not_served_is_unknown(installation: Installation, key: MadeKey, method: str) -> None:
    async with connect_mcp(installation, key.raw) as client:
        assert error_of(await client.ask(method)) == (404, -32601)


async def test_broken_requests_are_errors_of_the_protocol(installation: Installation, key: MadeKey) -> None:
    async with connect_mcp(installation, key.raw) as client:
        assert error_of(await client.ask("tools/call", name="get_ordr", arguments={})) == (400, -32602)
        assert error_of(await client.ask("tools/list", cursor="2")) == (400, -32602)
        message = build_message("tools/list")
        assert error_of(await client.send(message)) == (400, -32020)
        assert error_of(await client.send(message, **build_headers(message) | {"mcp-method": "ping"})) == (400, -32020)
        assert error_of(await client.send([message])) == (400, -32600)
        broken = await client.http.post("/mcp", content=b"{", headers={"content-type": "application/json"})
        assert error_of(broken) == (400, -32700)
        assert broken.json()["id"] is None


async def test_an_unknown_tool_is_answered_with_names_that_are_close(installation: Installation, key: MadeKey) -> None:
    async with connect_mcp(installation, key.raw) as client:
        response = await client.ask("tools/call", name="get_ordr", arguments={})
    assert "Did you mean get_order" in response.json()["error"]["message"]


async def test_a_notification_is_accepted_without_a_body(installation: Installation, key: MadeKey) -> None:
    async with connect_mcp(installation, key.raw) as client:
        for params in ({}, {"_meta": META}):
            message = {"jsonrpc": "2.0", "method": "notifications/initialized", "params": params}
            response = await client.send(message)
            assert (response.status_code, response.content) == (202, b"")


# The versions before it.


@pytest.mark.parametrize("version", LEGACY)
async def test_a_client_of_an_earlier_version_works_without_a_session(
    installation: Installation, key: MadeKey, version: str
) -> None:
    headers = {} if version == "2025-03-26" else {"mcp-protocol-version": version}
    async with connect_mcp(installation, key.raw) as client:
        opening = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "tests", "version": "1"}}
        answer = await client.send({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": opening})
        assert "mcp-session-id" not in answer.headers
        result = answer.json()["result"]
        assert (result["protocolVersion"], result["serverInfo"]["name"]) == (version, "sapa")
        assert result["capabilities"] == {"tools": {}}
        ping = await client.send({"jsonrpc": "2.0", "id": "p", "method": "ping"}, **headers)
        assert ping.json() == {"jsonrpc": "2.0", "id": "p", "result": {}}
        listed = (await client.send({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, **headers)).json()["result"]
        assert set(listed) == {"tools"}
        call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "list_customers"}}
        called = (await client.send(call, **headers)).json()["result"]
        assert called["structuredContent"]["data"] == []
        assert "resultType" not in called
        unknown = await client.send({"jsonrpc": "2.0", "id": 3, "method": "resources/list"}, **headers)
        assert error_of(unknown) == (200, -32601)
        call["params"] = {"name": "nothing"}
        assert error_of(await client.send(call, **headers)) == (200, -32602)


@pytest.mark.parametrize("version", ["2024-11-05", "2026-07-28", "2030-01-01", ""])
async def test_a_handshake_for_another_version_gets_the_newest_of_its_kind(
    installation: Installation, key: MadeKey, version: str
) -> None:
    message = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": version}}
    async with connect_mcp(installation, key.raw) as client:
        assert (await client.send(message)).json()["result"]["protocolVersion"] == LEGACY[0]


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "HEAD"])
async def test_there_are_no_streams_and_no_sessions(installation: Installation, key: MadeKey, method: str) -> None:
    async with connect_mcp(installation, key.raw) as client:
        response = await client.http.request(method, "/mcp", headers={"accept": "text/event-stream"})
    assert (response.status_code, response.headers["allow"]) == (405, "POST, OPTIONS")


# Who may call.


async def test_a_key_works_as_a_header_and_as_a_bearer_token(installation: Installation, key: MadeKey) -> None:
    message = build_message("tools/list")
    headers = build_headers(message)
    async with connect_mcp(installation, None) as client:
        for scheme in ("Bearer", "bearer"):
            answer = await client.send(message, **headers, authorization=f"{scheme} {key.raw}")
            assert answer.status_code == 200
        basic, empty = {"authorization": f"Basic {key.raw}"}, {"authorization": "Bearer"}
        for more in ({}, basic, empty, {"x-api-key": "svc_live_x"}):
            refused = await client.send(message, **headers, **more)
            assert refused.status_code == 401
            assert refused.headers["www-authenticate"] == "Bearer"
            error = refused.json()["error"]
            assert error["code"] == 401
            assert error["data"]["code"] in {"MISSING_API_KEY", "INVALID_API_KEY"}
            assert error["message"].startswith(error["data"]["code"])


async def test_the_body_of_a_stranger_is_not_read(installation: Installation) -> None:
    """The refusal comes while the body is still on its way."""
    place = urlsplit(installation.address)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    writer.write(b"POST /mcp HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{")
    assert (await asyncio.wait_for(reader.readline(), 120)).startswith(b"HTTP/1.1 401")
    writer.close()


async def test_allow_lists_apply(installation: Installation, database: Database, company: Environments) -> None:
    key = await make_key(database, company.live, allow_list=["203.0.113.7"])
    async with connect_mcp(installation, key.raw) as client:
        response = await client.ask("tools/list")
    assert response.status_code == 403
    assert response.json()["error"]["data"]["code"] == "IP_NOT_ALLOWED"


async def test_a_key_can_be_closed_to_mcp_and_opened_again(
    installation: Installation, key: MadeKey, api: httpx.AsyncClient
) -> None:
    async def look(client: McpClient, status: int) -> httpx.Response | None:
        response = await client.ask("tools/list")
        return response if response.status_code == status else None

    async with connect_mcp(installation, key.raw) as client:
        assert await look(client, 200)
        assert sapa(installation.data, "key", "update", key.id, "--no-mcp", "--json").json()["allowsMcp"] is False
        refused = await eventually(lambda: look(client, 403))
        assert refused.json()["error"]["data"]["code"] == "MCP_DISABLED"
        async with connect(installation, key.raw) as rest:
            assert (await rest.get("/customers")).status_code == 200
        assert sapa(installation.data, "key", "update", key.id, "--mcp", "--json").json()["allowsMcp"] is True
        await eventually(lambda: look(client, 200))


async def test_a_rotated_key_keeps_its_switch(database: Database, company: Environments, key: MadeKey) -> None:
    async with database.transaction() as tx:
        await access.set_mcp(tx, key.id, False)
        assert (await access.rotate_key(tx, key.id)).info.allows_mcp is False


async def test_an_installation_can_turn_mcp_off(installation: Installation, key: MadeKey) -> None:
    async with open_app(installation, ROUTES, SAPA_MCP="0") as http:
        http.base_url = "http://probe"
        http.headers["x-api-key"] = key.raw
        message = build_message("tools/list")
        response = await http.post("/mcp", json=message, headers=build_headers(message))
    assert (response.status_code, response.json()["error"]["code"]) == (404, "NOT_FOUND")


@pytest.mark.parametrize(
    ("variables", "origin", "is_allowed"),
    [
        ({}, "http://127.0.0.1:8000", True),
        ({}, "http://localhost:6274", True),
        ({}, "http://evil.example", False),
        ({}, "http://127.0.0.1.evil.example", False),
        ({}, "null", False),
        ({"SAPA_PUBLIC_URL": "https://sapa.example"}, "https://sapa.example", True),
        ({"SAPA_PUBLIC_URL": "https://sapa.example"}, "http://sapa.example", False),
        ({"SAPA_PUBLIC_URL": "https://sapa.example"}, "http://localhost:6274", False),
        ({"SAPA_CORS_ORIGINS": "https://shop.example"}, "https://shop.example", True),
        ({"SAPA_CORS_ORIGINS": "*"}, "https://any.example", True),
    ],
)
async def test_a_browser_of_another_origin_is_refused(
    installation: Installation, key: MadeKey, variables: dict[str, str], origin: str, is_allowed: bool
) -> None:
    message = build_message("tools/list")
    async with open_app(installation, [customers.routes], **variables) as http:
        http.base_url = "http://probe"
        response = await http.post(
            "/mcp", json=message, headers={**build_headers(message), "x-api-key": key.raw, "origin": origin}
        )
    assert response.status_code == (200 if is_allowed else 403)
    if not is_allowed:
        assert response.json()["error"]["data"]["code"] == "ORIGIN_NOT_ALLOWED"


async def test_a_browser_of_a_listed_origin_may_ask_first(installation: Installation) -> None:
    asked = {"access-control-request-method": "POST", "access-control-request-headers": "mcp-method"}
    async with open_app(installation, [customers.routes], SAPA_CORS_ORIGINS="https://shop.example") as http:
        http.base_url = "http://probe"
        response = await http.options("/mcp", headers={"origin": "https://shop.example", **asked})
    assert response.status_code == 204
    allowed = set(response.headers["access-control-allow-headers"].split(", "))
    assert {"authorization", "x-api-key", "mcp-method", "mcp-name", "mcp-protocol-version"} <= allowed


async def test_large_and_compressed_bodies_are_refused(installation: Installation, key: MadeKey) -> None:
    async with connect_mcp(installation, key.raw) as client:
        large = await client.send(build_message("tools/list", filler="x" * 1_100_000))
        assert large.status_code == 413
        plain = await client.http.post("/mcp", content=b"{}", headers={"content-type": "text/plain"})
        assert plain.status_code == 415


# Calls.


async def test_a_result_is_that_of_the_api(
    installation: Installation, key: MadeKey, api: httpx.AsyncClient, company: Environments
) -> None:
    async with connect(installation, key.raw) as rest:
        order = await make_order(rest, notes="Halo")
        page = (await rest.get("/orders", params={"limit": 5})).json()
    async with connect_mcp(installation, key.raw) as client:
        assert await client.run("get_order", id=order["id"]) == {"data": order}
        assert await client.run("list_orders", limit=5) == page
        result = await client.call("get_order", id=order["id"])
    assert result["resultType"] == "complete"
    text = msgspec.json.decode(result["content"][0]["text"])
    assert text["data"]["notes"] == "Halo"
    assert None not in text["data"].values()


async def test_a_write_answers_as_the_api_does(installation: Installation, key: MadeKey) -> None:
    async with connect_mcp(installation, key.raw) as client:
        made = (await client.run("create_customer", email="ayu@example.com", tags=["vip"]))["data"]
        changed = await client.run("update_customer", id=made["id"], firstName="Ayu", tags=None)
        assert (changed["data"]["firstName"], changed["data"]["tags"]) == ("Ayu", [])
        deleted = await client.call("delete_customer", id=made["id"])
        assert deleted["content"] == [{"type": "text", "text": "Done."}]
        assert (await client.fail("get_customer", id=made["id"]))[0] == "NOT_FOUND"


async def test_an_error_tells_a_model_what_to_change(installation: Installation, key: MadeKey) -> None:
    async with connect_mcp(installation, key.raw) as client:
        code, text = await client.fail("create_customer", email="ayu@example.com", fristName="Ayu")
        assert text == "VALIDATION_ERROR: fristName: is not a known field. Check its spelling or remove it"
        code, text = await client.fail("list_orders", status="open")
        assert "status: must be one of active, archived, cancelled, refunded" in text
        code, text = await client.fail("get_order", id=UNKNOWN_ORDER)
        assert text == "NOT_FOUND: resource not found\nFind valid ids with list_orders."
        code, text = await client.fail("get_loyalty_wallet", customerId="ayu")
        assert text.endswith("Find valid ids with list_customers.")
        await client.run("create_customer", email="ayu@example.com")
        code, text = await client.fail("create_customer", email="ayu@example.com")
        assert code == "CUSTOMER_EXISTS"
        assert "(id cust_" in text


async def test_a_list_tool_is_named_only_to_those_who_may_use_it(
    installation: Installation, database: Database, company: Environments
) -> None:
    key = await make_key(database, company.live, [Scope.CUSTOMERS_DELETE])
    async with connect_mcp(installation, key.raw) as client:
        _, text = await client.fail("delete_customer", id="cust_01jc9y3q5me8w92v7x4t6r0n1k")
    assert text == "NOT_FOUND: resource not found"


async def test_what_a_key_may_not_do_is_a_result_and_no_http_error(
    installation: Installation, database: Database, company: Environments
) -> None:
    """HTTP 403 would make clients begin an OAuth dialogue."""
    key = await make_key(database, company.live, [Scope.ORDERS_READ], [])
    async with connect_mcp(installation, key.raw) as client:
        _, text = await client.fail("create_order", lineItems=[])
        assert text == "INSUFFICIENT_SCOPE: The API key lacks the scope orders:WRITE."
        _, text = await client.fail("list_shipments")
        assert text == "UNAUTHORIZED: The API key lacks the product CRM."


async def test_hidden_operations_are_no_tools(installation: Installation, sandbox_key: MadeKey) -> None:
    async with connect_mcp(installation, sandbox_key.raw) as client:
        for name in ("list_message_requests", "create_import", "patch_store_location"):
            assert error_of(await client.ask("tools/call", name=name, arguments={})) == (400, -32602)


async def test_tools_of_the_test_environment_refuse_live_keys(installation: Installation, key: MadeKey) -> None:
    async with connect_mcp(installation, key.raw) as client:
        assert (await client.fail("list_sandbox_outbox"))[0] == "TEST_KEY_REQUIRED"


async def test_a_read_only_connection_refuses_every_write(installation: Installation, sandbox_key: MadeKey) -> None:
    async with connect_mcp(installation, sandbox_key.raw) as free:
        tools = await free.list_tools()
    writes = [tool["name"] for tool in tools if not tool["annotations"]["readOnlyHint"]]
    assert len(writes) > 40
    async with connect_mcp(installation, sandbox_key.raw, "?readonly=true") as client:
        for name in writes:
            code, text = await client.fail(name)
            assert (code, "readonly=true" in text) == ("TOOL_EXCLUDED", True), name
        assert (await client.run("list_customers"))["data"] == []


async def test_a_connection_refuses_tools_outside_its_toolsets(installation: Installation, key: MadeKey) -> None:
    async with connect_mcp(installation, key.raw, "?toolsets=orders") as client:
        _, text = await client.fail("list_customers")
        assert text == "TOOL_EXCLUDED: list_customers needs the toolset customers: add it to `toolsets` in the URL."


async def test_a_repeated_write_with_the_same_key_happens_once(
    installation: Installation, key: MadeKey, api: httpx.AsyncClient
) -> None:
    async with connect_mcp(installation, key.raw) as client:
        arguments = {"email": "ayu@example.com", "idempotencyKey": "signup-1"}
        first = await client.ask("tools/call", name="create_customer", arguments=arguments)
        again = await client.ask("tools/call", name="create_customer", arguments=arguments)
        assert again.json()["result"] == first.json()["result"]
        assert "idempotency-replayed" not in first.headers
        assert again.headers["idempotency-replayed"] == "true"
        code, _ = await client.fail("create_customer", email="budi@example.com", idempotencyKey="signup-1")
        assert code == "IDEMPOTENCY_KEY_REUSED"
        assert (await client.fail("create_customer", email="b@example.com", idempotencyKey="é"))[
            0
        ] == "VALIDATION_ERROR"
        assert (await client.run("list_customers"))["meta"]["total"] == 1
    async with connect(installation, key.raw) as rest:
        same = await rest.post("/customers", json={"email": "ayu@example.com"}, headers={"idempotency-key": "signup-1"})
        assert same.headers["idempotency-replayed"] == "true"


async def test_sixteen_calls_at_once_with_one_key_are_one_customer(installation: Installation, key: MadeKey) -> None:
    async with connect_mcp(installation, key.raw) as client:
        calls = [client.run("create_customer", email="ayu@example.com", idempotencyKey="once") for _ in range(16)]
        made = await asyncio.gather(*calls)
        assert len({msgspec.json.encode(one) for one in made}) == 1


@pytest.mark.usefixtures("early_in_a_minute")
async def test_every_request_counts_once_and_a_model_sees_the_limit(
    installation: Installation, database: Database, company: Environments
) -> None:
    key = await make_key(database, company.live, rate_limit=3)
    async with connect_mcp(installation, key.raw) as client:
        listed = await client.ask("tools/list")
        called = await client.ask("tools/call", name="list_customers", arguments={})
        await client.ask("tools/call", name="read_docs", arguments={"topic": "loyalty"})
        left = [int(response.headers["ratelimit-remaining"]) for response in (listed, called)]
        assert left == [2, 1]
        limited = await client.ask("tools/call", name="list_customers", arguments={})
        assert limited.status_code == 200
        assert int(limited.headers["retry-after"]) > 0
        result = limited.json()["result"]
        assert result["structuredContent"]["error"]["code"] == "RATE_LIMIT_EXCEEDED"
        assert "Try again in" in result["content"][0]["text"]
        refused = await client.ask("tools/list")
        assert refused.status_code in {200, 429}


async def test_the_access_log_names_the_operation_and_the_tool(
    installation: Installation, company: Environments, key: MadeKey
) -> None:
    async with connect_mcp(installation, key.raw) as client:
        called = await client.ask("tools/call", name="get_order", arguments={"id": UNKNOWN_ORDER})
        listed = await client.ask("tools/list")
    line = await line_of(installation, called.headers["x-request-id"])
    assert {name: line[name] for name in ("method", "route", "path", "status", "code", "tool", "key_id")} == {
        "method": "GET",
        "route": "/customer/v1/orders/{id}",
        "path": f"/customer/v1/orders/{UNKNOWN_ORDER}",
        "status": 404,
        "code": "NOT_FOUND",
        "tool": "get_order",
        "key_id": key.id,
    }
    assert installation.log.read_text().count(called.headers["x-request-id"]) == 1
    line = await line_of(installation, listed.headers["x-request-id"])
    assert (line["method"], line["route"], line["status"]) == ("POST", "/mcp", 200)
    assert "tool" not in line


async def test_a_send_is_recorded_once_with_the_key_in_one_header(
    installation: Installation, database: Database, company: Environments
) -> None:
    key = await make_key(database, company.test)
    sent = {"to": "+628123456789", "message": "Halo", "sources": "MSGAPP_CLOUD"}
    message = build_message("tools/call", name="send_message", arguments=sent)
    wrong = build_message("tools/call", name="send_message", arguments={"to": "+628123456789", "text": "Halo"})
    async with connect_mcp(installation, None) as client:
        for one in (message, wrong):
            await client.send(one, **build_headers(one), authorization=f"Bearer {key.raw}")
    async with connect(installation, key.raw) as rest:
        root = installation.address
        records = (await rest.get(f"{root}/messaging/v1/messages/requests")).json()["data"]
    refused, accepted = records
    assert accepted["request"]["body"] == sent
    assert accepted["endpointType"] == "send_message"
    assert refused["response"]["error"]["code"] == "VALIDATION_ERROR"
    for record in records:
        headers: dict[str, Any] = record["request"]["headers"]
        assert headers["x-api-key"] == key.raw
        assert "authorization" not in headers
        assert record["request"]["ip"] == "127.0.0.1"


async def test_docs_are_a_tool(installation: Installation, key: MadeKey) -> None:
    async with connect_mcp(installation, key.raw, "?toolsets=orders&readonly=true") as client:
        guide = await client.call("read_docs", topic="shipping")
        assert guide["content"][0]["text"].startswith("# ")
        tool = (await client.call("read_docs", topic="create_order"))["content"][0]["text"]
        assert "POST /customer/v1/orders" in tool
        assert "INSUFFICIENT_STOCK" in tool
        assert '"maxLength"' in tool
        _, text = await client.fail("read_docs", topic="nothing")
        assert "topic: must be the name of a tool or one of" in text
        assert (await client.fail("read_docs"))[1] == "VALIDATION_ERROR: topic: is required"


async def test_another_company_s_id_is_an_unknown_id(
    installation: Installation, database: Database, company: Environments, key: MadeKey
) -> None:
    other = await make_key(database, company.test)
    async with connect(installation, other.raw) as theirs:
        customer = await make_customer(theirs)
    async with connect_mcp(installation, key.raw) as client:
        assert (await client.fail("get_customer", id=customer["id"]))[0] == "NOT_FOUND"
