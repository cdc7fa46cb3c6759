"""The error table, the envelope, and the order in which a call is checked."""

import asyncio
import re
from typing import Any

import httpx
import pytest
from structlog.testing import capture_logs

from sapa.db.pool import Database
from sapa.domains import ROUTES
from sapa.http.errors import ApiError
from tests.conftest import TLS, Installation, connect
from tests.factories import Environments, MadeKey, make_customer, make_key
from tests.http.probe import CONNECTIONS, SECRET, Stage, build_probe, open_app
from tests.http.wire import Reply, eventually, send

JSON = ("content-type", "application/json")


def is_envelope(body: Any) -> bool:
    """Exactly {error: {code, message}} and at most details of {field, message}, some with an id, beside them."""
    error = body["error"]
    details = error.get("details", [])
    return (
        set(body) == {"error"}
        and {"code", "message"} <= set(error) <= {"code", "message", "details"}
        and bool(re.fullmatch(r"[A-Z]+(_[A-Z]+)*", error["code"]))
        and bool(error["message"])
        and all({"field", "message"} <= set(detail) <= {"field", "message", "id"} for detail in details)
    )


@pytest.fixture
async def probe_key(database: Database, company: Environments) -> MadeKey:
    return await make_key(database, company.live)


@pytest.mark.usefixtures("early_in_a_minute")
async def test_every_row_of_the_error_table(
    installation: Installation, database: Database, company: Environments, api: httpx.AsyncClient
) -> None:
    customer = await make_customer(api)
    lacking = await make_key(database, company.live, scopes=[])
    elsewhere = await make_key(database, company.live, allow_list=["203.0.113.7"])
    tired = await make_key(database, company.live, rate_limit=1)
    send(installation, "GET", "/customers", [("x-api-key", tired.raw)])
    key = ("x-api-key", api.headers["x-api-key"])
    post, put = ("POST", "/customers"), ("PUT", f"/customers/{customer['id']}")
    taken = b'{"email":"%s"}' % customer["email"].encode()
    table: list[tuple[int, str, Reply]] = [
        (401, "MISSING_API_KEY", send(installation, "GET", "/customers")),
        (401, "INVALID_API_KEY", send(installation, "GET", "/customers", [("x-api-key", "nonsense")])),
        (403, "INSUFFICIENT_SCOPE", send(installation, "GET", "/customers", [("x-api-key", lacking.raw)])),
        (403, "IP_NOT_ALLOWED", send(installation, "GET", "/customers", [("x-api-key", elsewhere.raw)])),
        (429, "RATE_LIMIT_EXCEEDED", send(installation, "GET", "/customers", [("x-api-key", tired.raw)])),
        (400, "VALIDATION_ERROR", send(installation, "GET", "/customers?createdFrom=yesterday", [key])),
        (400, "VALIDATION_ERROR", send(installation, *post, [key, JSON], b"{}")),
        (404, "NOT_FOUND", send(installation, "GET", "/customers/unknown", [key])),
        (405, "METHOD_NOT_ALLOWED", send(installation, "PATCH", "/customers", [key])),
        (409, "CUSTOMER_EXISTS", send(installation, *post, [key, JSON], taken)),
        (413, "PAYLOAD_TOO_LARGE", send(installation, *post, [key, JSON], b" " * 1_048_577)),
        (415, "UNSUPPORTED_MEDIA_TYPE", send(installation, *put, [key, ("content-type", "text/plain")], b"{}")),
    ]
    assert [(reply.status, reply.code) for *_, reply in table] == [row[:2] for row in table]
    assert all(is_envelope(reply.json()) for *_, reply in table)
    assert {reply.headers["content-type"] for *_, reply in table} == {"application/json"}


def test_every_error_class_has_a_status_a_code_and_words() -> None:
    pending, seen = [ApiError], []
    while pending:
        pending += (found := pending.pop()).__subclasses__()
        seen += [found] if found is not ApiError else []
    assert len(seen) > 15
    for error in seen:
        assert 400 <= error.status <= 599
        assert re.fullmatch(r"[A-Z]+(_[A-Z]+)*", error.code)
        assert error.summary()
        assert "\n" not in error.summary()


async def test_success_has_data_and_errors_have_error_and_never_both(api: httpx.AsyncClient) -> None:
    customer = await make_customer(api)
    assert set((await api.get(f"/customers/{customer['id']}")).json()) == {"data"}
    assert set((await api.get("/customers")).json()) == {"data", "meta"}
    assert set((await api.get("/customers")).json()["meta"]) == {"page", "limit", "total", "hasNextPage"}
    assert set((await api.get("/customers/unknown")).json()) == {"error"}
    gone = await api.delete(f"/customers/{customer['id']}")
    assert (gone.status_code, gone.content) == (204, b"")
    assert "content-type" not in gone.headers


async def test_every_response_has_its_own_request_id(api: httpx.AsyncClient, installation: Installation) -> None:
    customer = await make_customer(api)
    place = f"/customers/{customer['id']}"
    tag = (await api.get(place)).headers["etag"]
    responses = [
        await api.get(place),
        await api.get(place, headers={"if-none-match": tag}),
        await api.head(place),
        await api.options(place),
        await api.get("/customers?page=0"),
        await api.get("/nowhere"),
        await api.patch("/customers"),
        await api.post("/customers", content=b"{"),
        await api.get("/customers", headers={"x-api-key": "x"}),
        await api.delete(place),
        await api.get(place, headers={"x-request-id": "mine"}),
    ]
    ids = [response.headers.get_list("x-request-id") for response in responses]
    assert {len(each) for each in ids} == {1}
    assert len({each[0] for each in ids}) == len(responses)
    assert all(re.fullmatch(r"req_[0-9a-f]{24}", each[0]) for each in ids)


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/", "/nowhere", "/customer/v1", "/customer/v1/docs"])
def test_responses_outside_the_bases_have_a_request_id_too(installation: Installation, path: str) -> None:
    with httpx.Client(base_url=installation.address, timeout=120, verify=TLS) as client:
        ids = [client.get(path).headers.get("x-request-id") for _ in range(2)]
    assert None not in ids
    assert ids[0] != ids[1]


async def test_responses_are_private(api: httpx.AsyncClient) -> None:
    assert (await api.get("/customers")).headers["cache-control"] == "private, no-cache"


@pytest.mark.usefixtures("early_in_a_minute")
async def test_checks_come_in_the_documented_order(
    installation: Installation, database: Database, company: Environments
) -> None:
    """Each call is wrong in every later way, too: key, allow-list, rate limit, scope, validation, existence."""
    tired = await make_key(database, company.live, scopes=[], rate_limit=1)
    assert put_wrongly(installation, tired) == "INSUFFICIENT_SCOPE"
    closed = await make_key(database, company.live, scopes=[], allow_list=["203.0.113.7"], rate_limit=1)
    assert put_wrongly(installation, closed) == "IP_NOT_ALLOWED"
    codes = [
        send(installation, "PUT", "/customers/unknown?no=1", [JSON], b"{").code,
        send(installation, "PUT", "/customers/unknown?no=1", [JSON, ("x-api-key", "x")], b"{").code,
        put_wrongly(installation, closed),
        put_wrongly(installation, tired),
        put_wrongly(installation, await make_key(database, company.live, scopes=[])),
        put_wrongly(installation, await make_key(database, company.live)),
    ]
    assert codes == [
        "MISSING_API_KEY", "INVALID_API_KEY", "IP_NOT_ALLOWED", "RATE_LIMIT_EXCEEDED", "INSUFFICIENT_SCOPE",
        "VALIDATION_ERROR",
    ]  # fmt: skip


def put_wrongly(installation: Installation, key: MadeKey) -> str | None:
    return send(installation, "PUT", "/customers/unknown?no=1", [JSON, ("x-api-key", key.raw)], b"{").code


async def test_validation_comes_before_existence_and_existence_before_state(
    api: httpx.AsyncClient, database: Database
) -> None:
    taken = (await make_customer(api))["email"]
    unknown = "/customers/cust_01jc9y3q5me8w92v7x4t6r0n1k"
    assert (await api.put(unknown, json={"email": 1})).json()["error"]["code"] == "VALIDATION_ERROR"
    assert (await api.put(unknown, json={"email": taken})).json()["error"]["code"] == "NOT_FOUND"
    assert (await api.post("/customers", json={"email": taken})).json()["error"]["code"] == "CUSTOMER_EXISTS"


async def test_a_fault_of_ours_is_a_500_that_gives_nothing_away_and_is_logged_by_its_id(
    installation: Installation, probe_key: MadeKey
) -> None:
    async with open_app(installation, [build_probe(Stage())]) as client:
        with capture_logs() as lines:
            response = await client.get("/probe/fault", headers={"x-api-key": probe_key.raw})
    assert response.status_code == 500
    assert is_envelope(response.json())
    assert response.json()["error"]["code"] == "INTERNAL_ERROR"
    for word in (SECRET, "RuntimeError", "Traceback", ".py"):
        assert word not in response.text
    reported = [line for line in lines if line["log_level"] == "error"]
    assert [line["request_id"] for line in reported] == [response.headers["x-request-id"]]
    assert str(reported[0]["exc_info"]) == SECRET


async def test_after_a_fault_the_next_call_is_served(installation: Installation, probe_key: MadeKey) -> None:
    async with open_app(installation, [build_probe(Stage())]) as client:
        client.headers["x-api-key"] = probe_key.raw
        with capture_logs():
            faults = [await client.get("/probe/fault") for _ in range(2 * CONNECTIONS)]
        assert {response.status_code for response in faults} == {500}
        assert (await client.get("/probe/things")).status_code == 200


async def test_a_statement_that_takes_too_long_is_a_503(installation: Installation, probe_key: MadeKey) -> None:
    async with open_app(installation, [build_probe(Stage())]) as client:
        response = await client.get("/probe/endless", headers={"x-api-key": probe_key.raw})
    assert (response.status_code, response.json()["error"]["code"]) == (503, "SERVICE_UNAVAILABLE")
    assert response.headers["retry-after"] == "1"
    assert is_envelope(response.json())


async def test_two_calls_that_deadlock_both_succeed(installation: Installation, probe_key: MadeKey) -> None:
    stage = Stage()
    async with open_app(installation, [build_probe(stage)]) as client:
        client.headers["x-api-key"] = probe_key.raw
        responses = await asyncio.gather(*(client.post(f"/probe/tangle/{side}") for side in ("left", "right")))
    assert [response.json() for response in responses] == [{"data": {"name": "left"}}, {"data": {"name": "right"}}]
    assert stage.tries == 3, "PostgreSQL ended one of the two, and it was run again"


async def test_a_transaction_that_always_collides_is_tried_three_times(
    installation: Installation, probe_key: MadeKey
) -> None:
    stage = Stage()
    async with open_app(installation, [build_probe(stage)]) as client:
        response = await client.post("/probe/collide", headers={"x-api-key": probe_key.raw})
    assert (response.status_code, response.json()["error"]["code"]) == (503, "SERVICE_UNAVAILABLE")
    assert stage.tries == 3


async def test_a_database_that_cannot_be_reached_is_a_503(installation: Installation, probe_key: MadeKey) -> None:
    nobody = "postgresql://sapa@127.0.0.1:1/sapa"
    async with open_app(installation, ROUTES, SAPA_DATABASE_URL=nobody) as client:
        refused = await client.get("/customers", headers={"x-api-key": probe_key.raw})
        unready, alive = await client.get("http://probe/readyz"), await client.get("http://probe/healthz")
    for response in (refused, unready):
        assert (response.status_code, response.json()["error"]["code"]) == (503, "SERVICE_UNAVAILABLE")
    assert alive.status_code == 200


async def test_when_all_connections_are_busy_a_call_is_a_503_after_a_while(
    installation: Installation, probe_key: MadeKey
) -> None:
    stage = Stage()
    async with open_app(installation, [build_probe(stage)]) as client:
        client.headers["x-api-key"] = probe_key.raw
        busy = [asyncio.create_task(client.post("/probe/slow", json={"name": str(n)})) for n in range(CONNECTIONS)]
        await eventually(stage.all_busy)
        response = await client.get("/probe/things")
        stage.go_on.set()
        assert {(await task).status_code for task in busy} == {201}
        assert (await client.get("/probe/things")).status_code == 200
    assert (response.status_code, response.json()["error"]["code"]) == (503, "SERVICE_UNAVAILABLE")


async def test_concurrent_clients_each_get_their_own_response(
    installation: Installation, database: Database, company: Environments
) -> None:
    key = await make_key(database, company.live)
    async with connect(installation, key.raw) as client:
        emails = [f"c{number}@example.com" for number in range(40)]
        responses = await asyncio.gather(*(client.post("/customers", json={"email": email}) for email in emails))
    assert [response.json()["data"]["email"] for response in responses] == emails
