"""Developer settings at the console: who still uses a rotated key, and events delivered once more."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from typing import Any

import httpx
import pytest

from sapa.access import actions as access
from sapa.access.types import ApiKey
from sapa.db.pool import Database
from sapa.people.types import Role
from sapa.settings import WebhookSettings
from sapa.values.sealing import Vault
from sapa.webhooks.endpoints import actions as webhooks
from sapa.webhooks.types import WebhookEndpointIn
from tests.conftest import Installation, connect
from tests.console.people import make_person, open_browser, read_token
from tests.factories import Environments, MadeKey, make_customer, make_endpoint, make_import, make_key
from tests.webhooks.station import Station, answer_with, happen, things, until

PATIENCE = 120
INSECURE = WebhookSettings(allow_insecure=True, allowed_networks=())
_SECRET = re.compile(r'id="secret">([^<]+)<')
_ENDS = re.compile(r'data-until="([^"]+)"')


@pytest.fixture
async def owner(post_office: Installation, post: Database, client: Environments) -> AsyncIterator[httpx.AsyncClient]:
    async with open_browser(post_office, await make_person(post, client)) as browser:
        yield browser


async def submit(browser: httpx.AsyncClient, path: str, **fields: Any) -> httpx.Response:
    return await browser.post(path, data={"token": await read_token(browser), **fields})


async def wait_for(ask: Callable[[], Awaitable[str]], sign: str) -> str:
    deadline = time.monotonic() + PATIENCE
    while sign not in (page := await ask()):
        assert time.monotonic() < deadline, f"{sign} did not appear: {page}"
        await asyncio.sleep(0.2)
    return page


async def test_a_rotated_key_is_counted_down_and_shows_who_still_uses_it(
    post_office: Installation, post: Database, client: Environments, owner: httpx.AsyncClient
) -> None:
    old = await make_key(post, client.test)
    async with post.transaction() as tx:
        await access.move_clock(tx, client.test, timedelta(days=3))
    rotated = (await submit(owner, f"/test/keys/{old.id}/rotate")).text
    found = _SECRET.search(rotated)
    assert found
    new = MadeKey("", found[1])
    assert "It was never used." in rotated

    async def read() -> str:
        return (await owner.get("/test/keys")).text

    page = await read()
    assert "not used since" in page
    assert new.raw not in page
    ends = _ENDS.search(page)
    assert ends
    left = await _read_seconds_left(post, ends[1])
    assert 23.9 * 3600 < left < 24.1 * 3600
    async with connect(post_office, new.raw) as api:
        assert (await api.get("/customers")).status_code == 200

    async def use_and_read() -> str:
        async with connect(post_office, old.raw) as api:
            assert (await api.get("/customers")).status_code == 200
        return await read()

    page = await wait_for(use_and_read, "still in use")
    assert "from 127.0.0.1" in page
    assert f"…{new.raw[-4:]}" in page


async def test_a_key_is_closed_to_agents_and_opened_again(
    post: Database, client: Environments, owner: httpx.AsyncClient
) -> None:
    form = {"name": "shop", "scope": "orders:READ", "rate_limit": "10"}
    allowed = (await submit(owner, "/test/keys", mcp="1", **form)).text
    assert "claude mcp add" in allowed
    assert "claude mcp add" not in (await submit(owner, "/test/keys", **form)).text
    key, closed = await _list_keys(post, client)
    assert (key.allows_mcp, closed.allows_mcp) == (True, False)
    page = (await owner.get("/test/keys")).text
    assert (page.count("Forbid MCP"), page.count("Allow MCP"), page.count("not for AI agents")) == (1, 1, 1)
    await submit(owner, f"/test/keys/{key.id}/mcp")
    await submit(owner, f"/test/keys/{closed.id}/mcp", mcp="1")
    assert [one.allows_mcp for one in await _list_keys(post, client)] == [False, True]
    audit = (await owner.get("/test/audit")).text
    assert "MCP forbidden for a key" in audit
    assert "MCP allowed for a key" in audit


async def _list_keys(database: Database, company: Environments) -> list[ApiKey]:
    async with database.connection() as db:
        return await access.list_keys(db, company.test)


async def _read_seconds_left(database: Database, instant: str) -> float:
    async with database.connection() as db:
        return float(await db.fetchval("SELECT extract(epoch FROM $1::text::timestamptz - now())", instant))


async def test_what_happened_in_a_time_is_delivered_once_more(
    post_office: Installation,
    post: Database,
    client: Environments,
    seal: Vault,
    station: Station,
    owner: httpx.AsyncClient,
) -> None:
    endpoint = (await make_endpoint(post, seal, client.live, station.url("hooks"))).endpoint
    async with connect(post_office, (await make_key(post, client.live)).raw) as api:
        for _ in range(2):
            await make_customer(api)
    await until(station.has(2))
    path = f"/live/webhooks/{endpoint.id}"
    missing = await submit(owner, f"{path}/replay", since="")
    assert missing.status_code == 400
    assert 'id="since-problem"' in missing.text
    turned = await submit(owner, f"{path}/replay", since="2026-01-02T00:00", until="2026-01-01T00:00")
    assert (turned.status_code, 'id="until-problem"' in turned.text) == (400, True)
    nothing = await submit(owner, f"{path}/replay", since="2026-01-01T00:00", event="order.created")
    assert "This webhook has no events in that period" in nothing.text
    again = await submit(owner, f"{path}/replay", since="2026-01-01T00:00", event="customer.created")
    assert "2 events are on their way" in again.text
    await until(station.has(4))
    ids = [arrival.event_id for arrival in station.arrivals]
    assert sorted(ids[:2]) == sorted(ids[2:])
    assert "Events replayed" in (await owner.get("/live/audit")).text
    await submit(owner, f"{path}/pause")
    paused = await submit(owner, f"{path}/replay", since="2026-01-01T00:00")
    assert paused.status_code == 409
    assert "Resume it first" in paused.text
    assert 'value="2026-01-01T00:00"' in paused.text
    assert len(station.arrivals) == 4


async def test_a_suspended_webhook_is_seen_on_every_page_of_those_who_can_resume_it(
    post_office: Installation,
    post: Database,
    seal: Vault,
    client: Environments,
    owner: httpx.AsyncClient,
    station: Station,
) -> None:
    made = await make_endpoint(post, seal, client.test, station.url("shop"), ["customer.updated"])
    station.answer = answer_with(503)
    await happen(post, client.test, things(12))

    async def is_suspended() -> bool:
        async with post.connection() as db:
            return bool(await webhooks.list_suspended(db, client.test))

    await until(is_suspended)

    async def read_home() -> str:
        return (await owner.get("/test")).text

    home = await read_home()
    assert "A webhook is suspended" in home
    assert "The last failure: answered 503" in home
    assert "resumes with the first success" in home
    link = f"/console/test/webhooks/{made.endpoint.id}"
    assert link in (await owner.get("/test/customers")).text
    assert "A webhook is suspended" not in (await owner.get("/live/customers")).text
    async with open_browser(post_office, await make_person(post, client, Role.AGENT)) as agent:
        assert link not in (await agent.get("/test/customers")).text

    await submit(owner, f"/test/webhooks/{made.endpoint.id}", url=made.endpoint.url, all="1")
    assert "It does not resume by itself." in (await owner.get(f"/test/webhooks/{made.endpoint.id}")).text
    await submit(owner, f"/test/webhooks/{made.endpoint.id}", url=made.endpoint.url, all="1", auto_resume="1")
    station.answer = answer_with(200)
    async with post.transaction() as tx:
        await access.move_clock(tx, client.test, timedelta(minutes=1))

    async def read_webhook() -> str:
        return (await owner.get(f"/test/webhooks/{made.endpoint.id}")).text

    page = await wait_for(read_webhook, '<span class="state good">Active</span>')
    assert "A webhook is suspended" not in await read_home()
    assert "accepted a probe with 200" in (await owner.get("/test/webhooks")).text
    shown = [(await owner.get(path)).text for path in re.findall(r"/console(/test/deliveries/[^\"]+)", page)]
    assert sum("</span> Probe ·" in delivery for delivery in shown) == 1


async def test_the_lines_that_failed_come_as_a_file(
    post_office: Installation, post: Database, client: Environments, owner: httpx.AsyncClient
) -> None:
    lines = b"".join(b"nobody-%d,=1+1\n" % number for number in range(101))
    async with connect(post_office, (await make_key(post, client.live)).raw) as api:
        job = await make_import(api, b"email,firstName\n" + lines)

    async def read() -> str:
        return (await owner.get(f"/live/imports/{job['id']}")).text

    page = await wait_for(read, "What failed")
    assert "<progress" in page
    file = f"/live/imports/{job['id']}/errors.csv"
    assert f'href="/console{file}"' in page
    await wait_for(read, "101 failed")
    response = await owner.get(file)
    assert response.headers["content-disposition"].startswith("attachment")
    header, *rows = response.text.splitlines()
    assert header == "line,field,reason"
    assert [int(row.partition(",")[0]) for row in rows] == list(range(2, 103))
    assert (await owner.get(file.replace(job["id"], job["id"][:-4] + "0000"))).status_code == 404


async def test_another_receiver_needs_the_headers_again(
    post: Database, client: Environments, seal: Vault, station: Station, owner: httpx.AsyncClient
) -> None:
    stored = {"Authorization": "Bearer swordfish"}
    async with post.transaction() as tx:
        body = WebhookEndpointIn(url=station.url("hooks"), headers=stored)
        endpoint = (await webhooks.create(tx, seal, INSECURE, client.live, body)).endpoint
    path, elsewhere = f"/live/webhooks/{endpoint.id}", "https://thief.example.com/hooks"
    refused = await submit(owner, path, url=elsewhere, all="1")
    assert refused.status_code == 400
    assert 'id="headers-problem"' in refused.text
    assert "Authorization" in refused.text
    assert "swordfish" not in refused.text
    assert f'value="{elsewhere}"' in refused.text, "what was entered stays"
    nowhere = await submit(owner, path, url="hooks", description="Gudang", event="order.created", auto_resume="1")
    assert nowhere.status_code == 400
    assert 'id="url-problem"' in nowhere.text
    assert 'value="Gudang"' in nowhere.text
    assert re.findall(r'name="event" value="([^"]+)" checked', nowhere.text) == ["order.created"]
    nothing = await submit(owner, path, url=endpoint.url)
    assert (nothing.status_code, 'id="event-problem"' in nothing.text) == (400, True)
    assert (await submit(owner, path, url=elsewhere, all="1", headers="Authorization")).status_code == 400
    assert endpoint.url in (await owner.get(path)).text
    again = await submit(owner, path, url=elsewhere, all="1", headers="X-Token: 1\r\nX-Shop: melati")
    assert again.status_code == 303
    async with post.connection() as db:
        moved = await webhooks.get(db, seal, client.live, endpoint.id)
    assert (moved.url, moved.headers) == (elsewhere, ["X-Token", "X-Shop"])
    assert (await submit(owner, path, url=station.url("hooks"), all="1", no_headers="1")).status_code == 303
    assert "X-Token" not in (await owner.get(path)).text


async def test_a_new_webhook_has_headers_of_its_own_and_failures_are_in_the_readers_words(
    post: Database, client: Environments, seal: Vault, station: Station, owner: httpx.AsyncClient
) -> None:
    form = {"url": station.url("hooks"), "all": "1", "headers": "X-Token: swordfish"}
    assert "X-Token" not in (await owner.get("/live/webhooks/new")).text
    refused = await submit(owner, "/live/webhooks", **form | {"headers": "X-Token"})
    assert (refused.status_code, 'id="headers-problem"' in refused.text) == (400, True)
    made = await submit(owner, "/live/webhooks", **form)
    assert made.status_code == 200, made.text
    listed = (await owner.get("/live/webhooks")).text
    found = re.search(r"/console(/live/webhooks/whe_\w+)", listed)
    assert found is not None, listed
    assert "own headers: X-Token" in (await owner.get(found[1])).text
    station.answer = answer_with(404)
    await submit(owner, "/language", language="id", next="/console/live")
    tested = await submit(owner, f"{found[1]}/test", event="order.created")
    assert "menjawab 404: tidak ada apa-apa di alamat ini" in tested.text


async def test_a_key_is_edited_and_works_as_it_says_from_then_on(
    post_office: Installation, post: Database, client: Environments, owner: httpx.AsyncClient
) -> None:
    key = await make_key(post, client.live)
    path = f"/live/keys/{key.id}/edit"
    form = {"name": "Gudang", "scope": ["orders:READ"], "allow_list": "127.0.0.0/8, ::1", "rate_limit": "90"}
    assert 'value="test key"' in (await owner.get(path)).text
    for wrong, field in (({"scope": []}, "scope"), ({"rate_limit": "x"}, "rate_limit"), ({"name": ""}, "name")):
        refused = await submit(owner, path, **form | wrong)
        assert (refused.status_code, f'id="{field}-problem"' in refused.text) == (400, True), refused.text
    assert 'value="90"' in refused.text, "what was entered stays"
    assert (await submit(owner, path, **form)).status_code == 303
    edited = (await owner.get(path)).text
    assert 'value="Gudang"' in edited
    assert "127.0.0.0/8 ::1" in edited
    async with connect(post_office, key.raw) as api:
        assert (await api.get("/orders")).status_code == 200
        assert (await api.post("/customers", json={"email": "ayu@toko.example"})).status_code == 403
    assert "Key changed" in (await owner.get("/live/audit")).text
    elsewhere = {**form, "allow_list": "192.0.2.1"}
    assert (await submit(owner, path, **elsewhere)).status_code == 303
    async with connect(post_office, key.raw) as api:
        assert (await api.get("/orders")).json()["error"]["code"] == "IP_NOT_ALLOWED"
