"""Pages of another company, or of the other environment, are out of reach: by address, by id, by a forged form. Covers
every page."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from sapa.console.pages import PARTS
from sapa.console.routes import ConsoleRoute, console
from sapa.db.pool import Database
from sapa.values.sealing import Vault
from sapa.webhooks.deliveries import actions as deliveries
from sapa.webhooks.types import DeliveryFilter
from tests.conftest import Installation, connect
from tests.console.people import make_person, open_browser, read_token
from tests.factories import Environments, make_company, make_endpoint, make_key
from tests.http.test_foreign_ids import MAKERS, a_message, a_redemption
from tests.http.wire import eventually

assert PARTS
SECRET = "Rahasia Toko Sebelah"
KINDS = {
    "customers": "cust_", "loyalty": "cust_", "orders": "order_", "products": "prod_", "shipments": "shp_",
    "stores": "loc_", "rewards": "rwd_", "imports": "imp_", "templates": "tpl_", "settings/agents": "agent",
    "inbox": "tkt_", "draft-orders": "dord_", "settlements": "stl_", "cod-differences": "cdf_",
    "labels": "lbl_", "settings/labels": "lab_", "settings/teams": "team_", "settings/saved-replies": "srep_",
    "settings/macros": "mac_", "settings/views": "view_", "settings/targets": "sla_",
}  # fmt: skip
"""The resource of an id in an address, by the segment before it."""
NAMES = {"channels", "carriers", "reports/files"}
"""Names that every company shares."""
FORM = {
    "role": "agent", "missed": "skip", "since": "2026-01-01T00:00", "name": "Sari", "points": "1", "direction": "add",
    "reason": "x", "status": "cancelled", "body": "x", "note": "x", "agentId": "", "outcome": "failed", "failure": "x",
    "address": "Jl. Satu", "rewardName": "x", "costToRedeem": "1", "discountType": "free_shipping", "type": "human",
    "amount": "1", "method": "cash", "shortcut": "x", "text": "x", "color": "#0f766e", "firstResponseMinutes": "5",
    "priority": "high",
}  # fmt: skip
"""The fields that a form needs to get as far as the id."""
WITH_IDS = [page for page in console.pages if page.roles is not None and "{id}" in page.path]

Ids = dict[str, str]


def resource_of(page: ConsoleRoute) -> str:
    return page.path.removeprefix("/{environment}/").partition("/{id}")[0]


def address_of(page: ConsoleRoute, ids: Ids, environment: str) -> str:
    path = page.path.replace("{environment}", environment).replace("{id}", ids[resource_of(page)])
    path = path.replace("{message}", ids["message"]).replace("{redemption}", ids["redemption"])
    path = path.replace("{ending}", "release").replace("{document}", "label")
    return path + (ids["at"] if resource_of(page) == "requests" else "")


class Shop:
    """The test environment of a company, with one of everything, and an owner at its console."""

    def __init__(self, browser: httpx.AsyncClient, ids: Ids, token: str) -> None:
        self.browser = browser
        self.ids = ids
        self.token = token

    async def ask(self, page: ConsoleRoute, ids: Ids, environment: str = "test") -> httpx.Response:
        data = {"token": self.token, "template": ids["templates"], "reward": f"{ids['rewards']}:1", **FORM}
        return await self.browser.request(
            page.method,
            address_of(page, ids, environment),
            data=data if page.method == "POST" else None,
            headers={"accept": "text/event-stream"} if page.path.endswith("/events") else {},
        )


async def make_ids(installation: Installation, database: Database, company: Environments) -> Ids:
    async with connect(installation, (await make_key(database, company.test)).raw) as api:
        ids = {name: await MAKERS[kind](api) for name, kind in KINDS.items()}
        ids |= {"message": await a_message(api), "redemption": await a_redemption(api)}
        await make_customer_of(api)
        ids |= await _find_record(api)
        ids |= await _make_delivery(installation, database, company, api)
    ids["keys"] = (await make_key(database, company.test)).id
    return ids


async def make_customer_of(api: httpx.AsyncClient) -> None:
    response = await api.post("/customers", json={"firstName": SECRET, "email": "rahasia@example.com"})
    assert response.status_code == 201, response.text


async def _find_record(api: httpx.AsyncClient) -> Ids:
    base = str(api.base_url).replace("/customer/", "/messaging/")
    record = (await api.get(f"{base}messages/requests")).json()["data"][0]
    return {"requests": record["id"], "at": f"?at={record['createdAt']}"}


async def _make_delivery(
    installation: Installation, database: Database, company: Environments, api: httpx.AsyncClient
) -> Ids:
    vault = Vault(installation.server.secret_key)
    endpoint = (await make_endpoint(database, vault, company.test, "https://hooks.invalid/x")).endpoint.id
    await api.post("/customers", json={"firstName": SECRET, "email": "kiriman@example.com"})

    async def look() -> str | None:
        async with database.connection() as db:
            shown = await deliveries.list_deliveries(db, company.test, DeliveryFilter(endpoint_id=endpoint))
        return shown[0].id if shown else None

    return {"webhooks": endpoint, "deliveries": await eventually(look)}


async def _find_person(browser: httpx.AsyncClient) -> Ids:
    return {"people": (await browser.get("/test/people")).text.partition("/people/")[2].partition("/")[0]}


@pytest.fixture(scope="module")
async def shops(installation: Installation, database: Database) -> AsyncIterator[tuple[Shop, Shop]]:
    """Ours, and another company's."""
    ours, theirs = await make_company(database), await make_company(database)
    async with (
        open_browser(installation, await make_person(database, ours)) as me,
        open_browser(installation, await make_person(database, theirs)) as neighbour,
    ):
        mine = await make_ids(installation, database, ours) | await _find_person(me)
        foreign = await make_ids(installation, database, theirs) | await _find_person(neighbour)
        yield Shop(me, mine, await read_token(me)), Shop(neighbour, foreign, await read_token(neighbour))


def test_every_page_with_an_id_is_covered() -> None:
    known = {*KINDS, *NAMES, "keys", "webhooks", "deliveries", "people", "requests"}
    assert {resource_of(page) for page in WITH_IDS} == known


async def test_another_companys_ids_open_and_change_nothing(shops: tuple[Shop, Shop]) -> None:
    """Nor do ours of the other environment, but for people, who belong to both."""
    ours, theirs = shops
    for page in (page for page in WITH_IDS if resource_of(page) not in NAMES):
        name = f"{page.method} {page.path}"
        tries = [await ours.ask(page, theirs.ids, environment) for environment in ("test", "live")]
        tries += [] if resource_of(page) == "people" else [await ours.ask(page, ours.ids, "live")]
        assert [response.status_code for response in tries] == [404] * len(tries), name
        assert SECRET not in "".join(response.text for response in tries), name
    shown = [page for page in WITH_IDS if resource_of(page) not in NAMES and page.method == "GET"]
    for page in (page for page in shown if not page.path.endswith(("{message}", "/events"))):
        assert (await theirs.ask(page, theirs.ids)).status_code in {200, 303}, f"it was there: {page.path}"


async def test_an_id_of_ours_does_not_open_another_beside_it(shops: tuple[Shop, Shop]) -> None:
    """Addresses with two ids, or forms with some: each must be ours."""
    ours, theirs = shops
    ticket, customer = ours.ids["inbox"], ours.ids["loyalty"]
    forms: list[tuple[str, dict[str, Any], set[int]]] = [
        (f"/loyalty/{customer}/redemptions/{theirs.ids['redemption']}/release", {}, {404}),
        (f"/loyalty/{customer}/redeem", {"reward": f"{theirs.ids['rewards']}:50"}, {400}),
        (f"/inbox/{ticket}/assign", {"agentId": theirs.ids["settings/agents"]}, {400, 404}),
        (f"/inbox/{ticket}/handover", {"agentId": theirs.ids["settings/agents"]}, {400, 404}),
        ("/settings/agents", {"name": "Budi", "type": "human", "userId": theirs.ids["people"]}, {400}),
        ("/shipments", {**PARCEL, "orderId": theirs.ids["orders"]}, {400, 404}),
        ("/shipments", {**PARCEL, "storeLocationId": theirs.ids["stores"]}, {400, 404}),
    ]
    for path, form, refusals in forms:
        response = await ours.browser.post(f"/test{path}", data={"token": ours.token, **form})
        assert response.status_code in refusals, (path, form, response.text)
    await ours.browser.post("/test/inbox/agent", data={"token": ours.token, "name": "Sari"})
    template = {"token": ours.token, "template": theirs.ids["templates"], "param": ["a", "b"]}
    assert (await ours.browser.post(f"/test/inbox/{ticket}/template", data=template)).status_code == 404
    files = await ours.browser.get(f"/test/inbox/{ticket}/files/{theirs.ids['message']}")
    assert files.status_code == 404


PARCEL = {
    "provider": "custom", "serviceName": "Own rider", "fee": "1", "delivery.name": "Ayu",
    "delivery.address": "Jl. Satu",
}  # fmt: skip


@pytest.mark.parametrize(
    "path", ["/customers", "/loyalty", "/inbox", "/orders", "/shipments", "/products", "/requests", "/people", "/audit"]
)
async def test_lists_hold_nothing_of_another_company(shops: tuple[Shop, Shop], path: str) -> None:
    ours, theirs = shops
    for query in ({}, {"search": SECRET}, {"customerId": theirs.ids["customers"]}, {"orderId": theirs.ids["orders"]}):
        page = (await ours.browser.get(f"/test{path}", params=query)).text
        assert [id for id in theirs.ids.values() if len(id) > 20 and f"/{id}" in page] == []
    prefilled = await ours.browser.get("/test/shipments/new", params={"orderId": theirs.ids["orders"]})
    assert prefilled.status_code == 404
