"""The audit log, and secrets that are shown once: keys, webhooks and people, each with every change."""

import re
from collections.abc import AsyncIterator
from html import unescape
from typing import Any

import httpx
import pytest

from sapa.db.pool import Database
from tests.conftest import Installation, connect
from tests.console.people import choose, make_person, open_browser, read_token
from tests.factories import Environments, make_customer, make_key

URL = "https://hooks.example.com/sapa"
_SECRET = re.compile(r'id="secret">([^<]+)<')
_ENTRY = re.compile(
    r'<th scope="row">([^<]*)</th><td[^>]*>([^<]*)<br><span class="quiet">([^<]*)</span></td><td[^>]*>([^<]*)</td>'
)
_KEY_ENTRY = re.compile(
    r'<th scope="row">test key<br><span class="quiet">API key</span></th>'
    r'<td[^>]*>([^<]*)<br><span class="quiet">([^<]*)</span></td><td[^>]*>Live</td><td[^>]*>127\.0\.0\.1</td>'
)
_ONCE = re.compile(r'name="once" value="(\w+)"')


@pytest.fixture
async def owner(
    installation: Installation, database: Database, company: Environments
) -> AsyncIterator[httpx.AsyncClient]:
    async with open_browser(installation, await make_person(database, company)) as client:
        yield client


async def submit(browser: httpx.AsyncClient, path: str, **fields: Any) -> httpx.Response:
    response = await browser.post(path, data={"token": await read_token(browser), **fields})
    assert response.status_code in {200, 303}, response.text
    return response


def find_secret(response: httpx.Response) -> str:
    found = _SECRET.search(response.text)
    assert found, response.text
    return unescape(found[1])


async def find_id(browser: httpx.AsyncClient, resource: str, mark: str = "") -> str:
    page = (await browser.get(f"/live/{resource}")).text
    found = re.search(rf"/{resource}/(\w+)/?", page[page.index(mark) :].replace(f"/{resource}/new", ""))
    assert found, page
    return found[1]


async def test_every_change_is_noted_and_no_secret_is_seen_again(
    installation: Installation, company: Environments, owner: httpx.AsyncClient
) -> None:
    invited = f"budi-{company.live}@toko.example"
    secrets = [find_secret(await submit(owner, "/live/keys", name="shop", scope="orders:READ", rate_limit="10"))]
    key = await find_id(owner, "keys")
    secrets.append(find_secret(await submit(owner, f"/live/keys/{key}/rotate")))
    await submit(owner, f"/live/keys/{key}/revoke")
    secrets.append(find_secret(await submit(owner, "/live/webhooks", url=URL, all="1")))
    webhook = await find_id(owner, "webhooks")
    await submit(owner, f"/live/webhooks/{webhook}", url=URL, event="order.created")
    secrets.append(find_secret(await submit(owner, f"/live/webhooks/{webhook}/rotate")))
    for verb, fields in (("pause", {}), ("resume", {"missed": "skip"}), ("delete", {})):
        await submit(owner, f"/live/webhooks/{webhook}/{verb}", **fields)
    links = [find_secret(await submit(owner, "/live/people", name="Budi", email=invited, role="agent"))]
    person = await find_id(owner, "people", invited)
    links.append(find_secret(await submit(owner, f"/live/people/{person}/link")))
    async with open_browser(installation) as budi:
        assert (await choose(budi, links[1].rpartition("/")[2])).status_code == 303
    await submit(owner, f"/live/people/{person}/role", role="developer")
    await submit(owner, f"/live/people/{person}/remove")
    page = (await owner.get("/live/audit")).text
    noted = [tuple(map(unescape, entry)) for entry in _ENTRY.findall(page)][::-1]
    assert [(action, subject) for _, action, subject, _ in noted if subject != noted[0][2]] == [
        ("Key created", "shop"), ("Key rotated", "shop"), ("Key revoked", "shop"),
        ("Webhook added", URL), ("Webhook changed", URL), ("Webhook secret rotated", URL), ("Webhook paused", URL),
        ("Webhook resumed", URL), ("Webhook deleted", URL),
        ("Person invited", invited), ("Agent activated", "Budi"), ("Agent activated", "Budi"),
        ("Link created", invited), ("Person joined", invited),
        ("Role changed", f"{invited}: developer"), ("Person removed", invited), ("Agent deactivated", "Budi"),
        ("Agent deactivated", "Budi"),
    ]  # fmt: skip
    assert {name for name, action, _, _ in noted if action != "Person joined"} == {"Sari owner"}
    pages = [(await owner.get(f"/live/{name}")).text for name in ("keys", "webhooks", "people", "audit", "requests")]
    seen = "".join(pages) + installation.log.read_text()
    assert [secret for secret in (*secrets, *(link.rpartition("/")[2] for link in links)) if secret in seen] == []


@pytest.mark.parametrize(
    ("path", "fields"),
    [("keys", {"name": "shop", "scope": "orders:READ", "rate_limit": "10"}), ("webhooks", {"url": URL, "all": "1"})],
)
async def test_a_page_with_a_secret_that_is_reloaded_makes_no_other(
    owner: httpx.AsyncClient, path: str, fields: dict[str, str]
) -> None:
    form = (await owner.get(f"/live/{path}/new")).text
    once = _ONCE.findall(form)[0]
    secret = find_secret(await submit(owner, f"/live/{path}", once=once, **fields))
    again = await owner.post(f"/live/{path}", data={"token": await read_token(owner), "once": once, **fields})
    assert again.status_code == 409
    assert "was already sent" in again.text
    assert secret not in again.text
    assert not _SECRET.search(again.text)
    listed = (await owner.get(f"/live/{path}")).text
    assert len(set(re.findall(rf"/console/live/{path}/(\w+_\w+)", listed))) == 1


async def test_an_invalid_cursor_shows_the_start_of_the_audit_log(owner: httpx.AsyncClient) -> None:
    for odd in ("²", "x", "-1", "9" * 30, ""):
        assert "Person joined" in (await owner.get("/live/audit", params={"before": odd})).text
    assert "Person joined" not in (await owner.get("/live/audit", params={"before": "1"})).text


async def test_entries_about_customers_and_settings_are_in_words(
    api: httpx.AsyncClient, owner: httpx.AsyncClient
) -> None:
    customer = (await make_customer(api, phoneNumber="0812 3456 7804"))["id"]
    await submit(owner, f"/live/customers/{customer}/points", direction="add", points="5000000", reason="Hadiah")
    await submit(owner, f"/live/customers/{customer}/consents", app="CRM", status="unsubscribe")
    await submit(owner, "/live/settings/macros", name="Foto", **{"actions.priority": "high"})
    log = (await owner.get("/live/audit")).text
    link = f'<a href="/console/live/customers/{customer}">Customer</a>'
    assert f'Points changed by hand<br><span class="quiet">{link}: +5,000,000, Hadiah</span>' in log
    assert f'Consent recorded<br><span class="quiet">{link}: All channels: unsubscribed</span>' in log
    assert 'Settings changed<br><span class="quiet">Macros</span>' in log
    await submit(owner, "/language", language="id")
    log = (await owner.get("/live/audit")).text
    assert "Pelanggan</a>: +5.000.000, Hadiah" in log
    assert 'Pengaturan diubah<br><span class="quiet">Makro</span>' in log


async def test_changes_by_program_are_recorded_with_their_key(
    installation: Installation, database: Database, company: Environments, owner: httpx.AsyncClient
) -> None:
    key = await make_key(database, company.live)
    async with connect(installation, key.raw) as api:
        headers = {"idempotency-key": "shop"}
        body = {"name": "shop", "scopes": ["orders:READ"], "products": []}
        created = [(await api.post("/api-keys", json=body, headers=headers)).json()["data"] for _ in range(2)]
        page = f"/api-keys/{created[0]['id']}"
        await api.put(page, json={"allowsMcp": False})
        await api.put(page, json={})
        await api.post(f"{page}/rotate")
        await api.delete(page)
        webhook = (await api.post("/webhook-endpoints", json={"url": URL, "events": []})).json()["data"]
        page = f"/webhook-endpoints/{webhook['id']}"
        await api.put(page, json={"description": "The shop"})
        replay: dict[str, Any] = {"json": {"since": "2026-01-01T00:00:00Z"}, "headers": {"idempotency-key": "replay"}}
        assert [(await api.post(f"{page}/replay", **replay)).status_code for _ in range(2)] == [200, 200]
        for verb in ("rotate-secret", "pause", "resume"):
            assert (await api.post(f"{page}/{verb}")).status_code == 200
        await api.delete(page)
        assert (await api.delete(page)).status_code == 404
        account = {"phone_number_id": "1122", "waba_id": "3344", "phone_number": "+622150001234"}
        secrets = {"access_token": "planted-access-token", "app_secret": "planted-app-secret"}
        await api.put("/channels/MSGAPP_CLOUD", json={"fields": {**account, **secrets}, "verify": False})
        await api.delete("/channels/MSGAPP_CLOUD")
        carrier = {"fields": {"api_key": "planted-api-key"}, "verify": False}
        await api.put("/carriers/aggregator_carrier", json=carrier)
        await api.delete("/carriers/aggregator_carrier")
    page = (await owner.get("/live/audit")).text
    assert [tuple(map(unescape, entry)) for entry in _KEY_ENTRY.findall(page)][::-1] == [
        ("Key created", "shop"), ("MCP forbidden for a key", "shop"), ("Key rotated", "shop"), ("Key revoked", "shop"),
        ("Webhook added", URL), ("Webhook changed", URL), ("Events replayed", f"{URL}: 0"),
        ("Webhook secret rotated", URL), ("Webhook paused", URL), ("Webhook resumed", URL), ("Webhook deleted", URL),
        ("Channel connected", "WhatsApp"), ("Channel disconnected", "WhatsApp"),
        ("Carrier connected", "Aggregator: KiriminAja"), ("Carrier disconnected", "Aggregator"),
    ]  # fmt: skip
    assert "planted" not in page
