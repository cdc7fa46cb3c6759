"""The access log: one JSON line a call, and never a secret in it."""

import re
from typing import Any

import httpx
import msgspec
import pytest

from sapa.db.pool import Database
from tests.conftest import Installation, connect
from tests.factories import Environments, make_customer, make_key
from tests.http.wire import eventually, send

FIELDS = {"time", "event", "request_id", "method", "route", "path", "status", "ms", "ip"}


async def line_of(installation: Installation, request_id: str) -> dict[str, Any]:
    """The line of one call; lines are written in batches, so it may take a moment."""

    async def look() -> dict[str, Any] | None:
        lines = (line for line in installation.log.read_bytes().splitlines() if request_id.encode() in line)
        return next((msgspec.json.decode(line) for line in lines), None)

    return await eventually(look)


async def test_a_call_leaves_one_line_with_its_outcome(
    installation: Installation, database: Database, company: Environments
) -> None:
    key = await make_key(database, company.live)
    async with connect(installation, key.raw) as client:
        customer = await make_customer(client)
        response = await client.get(f"/customers/{customer['id']}")
    line = await line_of(installation, response.headers["x-request-id"])
    assert set(line) == FIELDS | {"key_id", "company_id"}
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["time"])
    assert line["ms"] > 0
    assert {name: line[name] for name in line if name not in {"time", "ms"}} == {
        "event": "request",
        "request_id": response.headers["x-request-id"],
        "method": "GET",
        "route": "/customer/v1/customers/{id}",
        "path": f"/customer/v1/customers/{customer['id']}",
        "status": 200,
        "ip": "127.0.0.1",
        "key_id": key.id,
        "company_id": company.live,
    }
    assert installation.log.read_text().count(response.headers["x-request-id"]) == 1


async def test_a_refused_call_leaves_its_code(installation: Installation) -> None:
    reply = send(installation, "GET", "/nowhere", [("x-api-key", "svc_live_forged")])
    line = await line_of(installation, reply.headers["x-request-id"])
    assert set(line) == FIELDS | {"code"}
    assert (line["status"], line["code"], line["route"]) == (401, "INVALID_API_KEY", "unknown")


async def test_keys_query_strings_headers_and_bodies_are_not_logged(
    installation: Installation, api: httpx.AsyncClient
) -> None:
    secret = "hush-hush"
    headers = {"idempotency-key": f"{secret}-once", "user-agent": f"{secret}-agent", "x-forwarded-for": f"{secret}-hop"}
    responses = [
        await api.post("/customers", json={"email": f"{secret}@example.com", "firstName": secret}, headers=headers),
        await api.post("/customers", content=f'{{"{secret}":1}}', headers={"content-type": "application/json"}),
        await api.get(f"/customers?search={secret}"),
        await api.get(f"/customers?{secret}=1"),
        await api.get("/customers", headers={"x-api-key": f"svc_live_{secret}"}),
    ]
    assert [response.status_code for response in responses] == [201, 400, 200, 400, 401]
    for response in responses:
        await line_of(installation, response.headers["x-request-id"])
    text = installation.log.read_text()
    assert secret not in text
    assert api.headers["x-api-key"] not in text
    assert api.headers["x-api-key"][9:] not in text


async def test_whatever_is_in_a_path_every_line_is_json(installation: Installation, api: httpx.AsyncClient) -> None:
    responses = [
        await api.get(f"/customers/{odd}")
        for odd in ("%0A%0D", "%22%7D", "%1B%5B31m", "\u2028", "%F0%9F%98%80", "%FF", "%00", '"')
    ]
    lines = [await line_of(installation, response.headers["x-request-id"]) for response in responses]
    assert lines[0]["path"] == "/customer/v1/customers/\n\r"
    assert [line["status"] for line in lines] == [response.status_code for response in responses]


async def test_a_long_path_is_cut(installation: Installation, api: httpx.AsyncClient) -> None:
    response = await api.get(f"/customers/{'x' * 20_000}")
    line = await line_of(installation, response.headers["x-request-id"])
    assert line["route"] == "/customer/v1/customers/{id}"
    assert line["path"] == f"/customer/v1/customers/{'x' * 20_000}"[:256]


async def test_the_log_of_the_processes_is_json_lines(installation: Installation, api: httpx.AsyncClient) -> None:
    response = await api.get("/customers")
    await line_of(installation, response.headers["x-request-id"])
    lines = [line for line in installation.log.read_bytes().split(b"\n") if line.startswith(b"{")]
    assert len(lines) > 1
    for line in lines:
        assert "event" in msgspec.json.decode(line)


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "DELETE", "BREW"])
async def test_every_method_leaves_a_line(installation: Installation, api: httpx.AsyncClient, method: str) -> None:
    response = await api.request(method, "/customers")
    line = await line_of(installation, response.headers["x-request-id"])
    assert (line["method"], line["status"]) == (method, response.status_code)
