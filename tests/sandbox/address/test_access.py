"""Who may call the simulators from outside: only the token of a company's own sandbox account opens them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import httpx
import pytest

from sapa.db.pool import Database
from sapa.sandbox.carriers import simulators as carriers
from sapa.sandbox.channels import simulators as channels
from tests.cli.command import sapa
from tests.conftest import TLS, Installation, connect
from tests.factories import make_company, make_key
from tests.http.wire import eventually
from tests.sandbox.address.outside import HAPPY, Json, OutsideProgram, open_program

TEXT: Json = {"type": "text", "text": {"body": "Halo"}}
UNAUTHORIZED: dict[str, tuple[str, str]] = {
    "/sandbox/graph/": ("v25.0/1/messages", '"code":190'),
    "/sandbox/instagram/": ("v22.0/me/messages", '"code":190'),
    "/sandbox/files/": ("media_image", ""),
    "/sandbox/tiktok/": ("open_api/v1.3/business/message/send/", '"code":40105'),
    "/sandbox/widget/": ("messages", '"code":"unauthorized"'),
    "/sandbox/kiriminaja/": ("api/mitra/couriers", '"text":"Unauthenticated."'),
    "/sandbox/gosend/": ("gokilat/v10/booking", "Invalid Client-ID or Pass-Key"),
    "/sandbox/dash/": ("v1/deliveries/quotes", '"code":"UNAUTHORIZED"'),
    "/sandbox/biteship/": ("v1/orders", '"code":40101001'),
}
"""By prefix: a path, and a part of the 401 in the provider's shape."""


@pytest.fixture(scope="module")
async def two(installation: Installation, database: Database) -> AsyncIterator[tuple[OutsideProgram, OutsideProgram]]:
    async with AsyncExitStack() as stack:
        programs = [await stack.enter_async_context(open_program(installation, database)) for _ in range(2)]
        yield programs[0], programs[1]


def test_every_simulator_is_in_the_table() -> None:
    assert {access.prefix for access in [*channels.ACCESS, *carriers.ACCESS]} == set(UNAUTHORIZED)


@pytest.mark.parametrize("prefix", UNAUTHORIZED)
async def test_without_a_token_the_answer_is_the_providers_401(installation: Installation, prefix: str) -> None:
    path, part = UNAUTHORIZED[prefix]
    async with httpx.AsyncClient(base_url=installation.address, verify=TLS, timeout=120) as http:
        for headers in ({}, {"authorization": "Bearer wrong", "access-token": "wrong", "pass-key": "wrong"}):
            answer = await http.post(prefix + path, content=b"{}", headers=headers)
            assert answer.status_code == 401, answer.text
            assert part in answer.text
            assert "ratelimit-limit" not in answer.headers


async def test_no_body_is_read_without_a_token(installation: Installation) -> None:
    """The answer comes although the announced body never does."""
    host, port = installation.address.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    head = "POST /sandbox/graph/v25.0/1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n"
    writer.write(head.encode())
    await writer.drain()
    assert b"401" in await asyncio.wait_for(reader.readline(), 120)
    writer.close()


async def test_a_body_is_limited_before_it_is_read(two: tuple[OutsideProgram, OutsideProgram]) -> None:
    program, _ = two
    for source, path, most in (("MSGAPP_CLOUD", f"{program.number}/messages", 16), ("WIDGET", "messages", 1)):
        account = program.accounts[source]
        token = account["credentials"].get("access_token") or account["credentials"]["secret"]
        content = b"x" * (most * 1_048_576 + 1)
        headers = {"authorization": f"Bearer {token}"}
        answer = await program.http.post(f"{account['address']}/{path}", content=content, headers=headers)
        assert answer.status_code == 413, answer.text
        assert "error" in answer.json()


async def test_a_token_reaches_its_own_company_only(two: tuple[OutsideProgram, OutsideProgram]) -> None:
    ours, theirs = two
    template = {"name": "x", "language": "id", "category": "UTILITY", "components": [{"type": "BODY", "text": "Hai."}]}
    created = await theirs.call("POST", f"{theirs.business_account}/message_templates", json=template)
    id = created.json()["id"]
    body = {"messaging_product": "whatsapp", "to": HAPPY, **TEXT}
    app_id = theirs.whatsapp["account"]["app_id"]
    calls: list[tuple[str, str]] = [
        ("POST", f"{theirs.number}/messages"),
        ("GET", theirs.number),
        ("POST", theirs.number),
        ("GET", f"{theirs.business_account}/message_templates"),
        ("DELETE", f"{theirs.business_account}/message_templates?name=x"),
        ("GET", f"{theirs.business_account}/subscribed_apps"),
        ("GET", f"{app_id}/subscriptions"),
        ("GET", id),
        ("POST", id),
    ]
    for method, path in calls:
        answer = await ours.call(method, path, json=body)
        error = answer.json()["error"]
        assert (answer.status_code, error["code"], error["error_subcode"]) == (400, 100, 33), (path, answer.text)
    listed = (await theirs.call("GET", f"{theirs.business_account}/message_templates")).json()["data"]
    assert [each["name"] for each in listed] == ["x"]
    assert (await ours.api.get("/sandbox/outbox")).json()["meta"]["total"] >= 0
    outbox = (await theirs.api.get("/sandbox/outbox", params={"limit": 100})).json()["data"]
    assert {entry["path"].rpartition("/")[2] for entry in outbox} == {"message_templates"}


async def test_a_channels_token_does_not_open_another_channel(two: tuple[OutsideProgram, OutsideProgram]) -> None:
    program, _ = two
    tiktok = f"{program.accounts['SHORT_VIDEO']['address']}/business/get/"
    token = program.whatsapp["credentials"]["access_token"]
    refused = await program.http.get(tiktok, headers={"access-token": token})
    assert (refused.status_code, refused.json()["code"]) == (401, 40105)
    own = program.accounts["SHORT_VIDEO"]["credentials"]["access_token"]
    assert (await program.http.get(tiktok, headers={"access-token": own})).json()["code"] == 0


async def test_a_live_environment_has_no_simulators(installation: Installation, database: Database) -> None:
    company = await make_company(database)
    key = await make_key(database, company.live)
    async with httpx.AsyncClient(verify=TLS, timeout=120) as http:
        answer = await http.post(
            f"{installation.address}/messaging/v1/sandbox/accounts", headers={"x-api-key": key.raw}
        )
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "TEST_KEY_REQUIRED")


async def test_the_command_shows_the_same_account(
    installation: Installation, two: tuple[OutsideProgram, OutsideProgram], database: Database
) -> None:
    program, _ = two
    command = ("channel", "simulator", "--source", "MSGAPP_CLOUD", "--json", "--company")
    port = installation.address.rpartition(":")[2]
    shown = sapa(installation.data, *command, str(program.company_id), SAPA_PORT=port).json()
    assert shown == program.whatsapp
    company = await make_company(database)
    assert "test environment" in sapa(installation.data, *command, str(company.live)).sentence()


async def test_calls_count_in_the_companys_rate_limit(installation: Installation, database: Database) -> None:
    """All simulators together; each refuses in its own shape. The limit is that of the company's key."""
    async with open_program(installation, database, rate_limit=5) as program:
        tiktok, widget = program.accounts["SHORT_VIDEO"], program.accounts["WIDGET"]
        graph_call = (f"{program.whatsapp['address']}/{program.number}", program.sign())
        tiktok_call = (f"{tiktok['address']}/business/get/", {"access-token": tiktok["credentials"]["access_token"]})
        widget_call = (
            f"{widget['address']}/messages",
            {"authorization": f"Bearer {widget['credentials']['secret']}"},
        )

        async def call_until_refused(url: str, headers: dict[str, str], part: str) -> httpx.Response:
            async def call() -> httpx.Response | None:
                answer = await program.http.get(url, headers=headers)
                assert answer.headers["ratelimit-limit"] == "5"
                return answer if part in answer.text else None

            return await eventually(call)

        refused = await call_until_refused(*graph_call, '"code":80007')
        assert refused.status_code == 400
        assert 1 <= int(refused.headers["retry-after"]) <= 60
        await call_until_refused(*tiktok_call, '"code":40100')
        assert (await call_until_refused(*widget_call, "Too many messages")).status_code == 429


NASTY = [b"", b"{", b"[]", b"null", b'"x"', b"[" * 5000 + b"]" * 5000, b"\xff", b'{"a": "\\u0000"}']


def build_nasty_bodies(name: str) -> list[bytes]:
    """JSON in which one field has a value that nobody expects."""
    return [
        *NASTY,
        *(f'{{"{name}": {value}}}'.encode() for value in ("{}", "[]", "7", "null", '"\\u0000"', '[{"a": 1}]')),
    ]


async def test_no_body_makes_a_simulator_fail(installation: Installation, database: Database) -> None:
    """Each answers in its own shape, and never with a 500 of ours."""
    async with open_program(installation, database) as program:
        carriers_api = str(program.api.base_url).replace("/messaging/v1", "/customer/v1")
        key = program.api.headers["x-api-key"]
        listed = await program.http.post(f"{carriers_api}shipping/sandbox/accounts", headers={"x-api-key": key})
        accounts = {account["carrier"]: account["credentials"] for account in listed.json()["data"]}
        base = f"{installation.address}/sandbox"
        token = (await program.http.post(f"{base}/dash/v1/auth/providers/token", json=accounts["dash"])).json()["token"]
        widget, tiktok = program.accounts["WIDGET"], program.accounts["SHORT_VIDEO"]
        page = program.accounts["SOCIAL_NETWORK"]
        bearer = "authorization"
        calls: list[tuple[str, dict[str, str], list[str]]] = [
            (f"{program.whatsapp['address']}/{program.number}/messages", program.sign(), ["text", "to", "interactive"]),
            (f"{program.whatsapp['address']}/{program.number}", program.sign(), ["webhook_configuration"]),
            (
                f"{program.whatsapp['address']}/{program.business_account}/message_templates",
                program.sign(),
                ["components", "name"],
            ),
            (f"{page['address']}/me/messages", program.sign("SOCIAL_NETWORK"), ["recipient", "message"]),
            (
                f"{tiktok['address']}/business/message/send/",
                {"access-token": tiktok["credentials"]["access_token"]},
                ["recipient", "message_type"],
            ),
            (f"{widget['address']}/messages", {bearer: f"Bearer {widget['credentials']['secret']}"}, ["visitorId"]),
            (f"{base}/biteship/v1/orders", {bearer: accounts["biteship"]["api_key"]}, ["items", "reference_id"]),
            (f"{base}/biteship/v1/rates/couriers", {bearer: accounts["biteship"]["api_key"]}, ["items"]),
            (
                f"{base}/gosend/gokilat/v10/booking",
                {"pass-key": accounts["gosend"]["pass_key"], "client-id": accounts["gosend"]["client_id"]},
                ["routes"],
            ),
            (f"{base}/dash/express/v1/deliveries", {bearer: f"Bearer {token}"}, ["sender", "origin"]),
            (f"{base}/dash/v1/deliveries/quotes", {bearer: f"Bearer {token}"}, ["origin", "packages"]),
            (
                f"{base}/kiriminaja/api/mitra/v6.1/request_pickup",
                {bearer: f"Bearer {accounts['kiriminaja']['api_key']}"},
                ["packages"],
            ),
            (
                f"{base}/kiriminaja/api/mitra/v6.1/shipping_price",
                {bearer: f"Bearer {accounts['kiriminaja']['api_key']}"},
                ["origin", "courier"],
            ),
        ]
        for url, headers, names in calls:
            for body in (body for name in names for body in build_nasty_bodies(name)):
                answer = await program.http.post(url, content=body, headers=headers)
                assert answer.status_code < 500, (url, body[:50], answer.text)
                assert "INTERNAL_ERROR" not in answer.text


async def test_a_carriers_simulator_books_for_an_outside_program(
    installation: Installation, database: Database
) -> None:
    company = await make_company(database)
    key = await make_key(database, company.test)
    async with connect(installation, key.raw) as api, httpx.AsyncClient(verify=TLS, timeout=120) as http:
        listed = (await api.post("/shipping/sandbox/accounts")).json()["data"]
        accounts = {account["carrier"]: account["credentials"] for account in listed}
        assert set(accounts) == {access.prefix.split("/")[2] for access in carriers.ACCESS}
        base = f"{installation.address}/sandbox"
        couriers = await http.get(
            f"{base}/biteship/v1/couriers", headers={"authorization": accounts["biteship"]["api_key"]}
        )
        assert couriers.json()["success"] is True
        signed_in = await http.post(f"{base}/dash/v1/auth/providers/token", json=accounts["dash"])
        assert signed_in.json()["token"].startswith("sbx_")
        wrong = {**accounts["dash"], "client_key": "sbx_1_" + "0" * 32}
        assert (await http.post(f"{base}/dash/v1/auth/providers/token", json=wrong)).status_code == 401
        long = {**accounts["dash"], "more": "x" * 5000}
        assert (await http.post(f"{base}/dash/v1/auth/providers/token", json=long)).status_code == 413
