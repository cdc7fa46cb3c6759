"""What every page has: the menu, the search, what a form did; and forms that nobody sends twice."""

import re
from collections.abc import AsyncIterator
from urllib.parse import quote

import httpx
import pytest

from sapa.console.menu import MENU, MenuEntry
from sapa.console.pages import PARTS
from sapa.console.routes import console
from sapa.console.translations import read_translations
from sapa.db.pool import Database
from sapa.people import actions as people
from sapa.people.types import Role
from tests.conftest import Installation
from tests.console.people import PASSWORD, choose, find_token, make_person, open_browser, read_token
from tests.factories import Environments, make_customer, make_order
from tests.support.ticket_steps import Desk

assert PARTS
_ONCE = re.compile(r'name="once" value="(\w+)"')


@pytest.fixture
async def owner(
    installation: Installation, database: Database, company: Environments
) -> AsyncIterator[httpx.AsyncClient]:
    async with open_browser(installation, await make_person(database, company)) as client:
        yield client


def list_entries() -> list[MenuEntry]:
    return [*MENU, *(below for entry in MENU for below in entry.entries)]


def test_the_menu_leads_to_pages_and_is_translated() -> None:
    paths = {page.path.removeprefix("/{environment}") for page in console.pages if page.method == "GET"}
    assert [entry.path for entry in list_entries() if not entry.is_outside and entry.path not in paths] == []
    assert [entry.label for entry in list_entries() if entry.label not in read_translations("id")] == []
    assert len(MENU) == 10


def test_what_forms_did_is_translated() -> None:
    said = {page.says for page in console.pages if page.says}
    assert sorted(said - set(read_translations("id"))) == []


async def test_a_role_sees_its_own_menu_and_an_open_group_its_pages(
    installation: Installation, database: Database, company: Environments, owner: httpx.AsyncClient
) -> None:
    home, keys = (await owner.get("/live")).text, (await owner.get("/live/keys")).text
    assert '/console/live/webhooks"' not in home
    assert '/console/live/webhooks"' in keys
    async with open_browser(installation, await make_person(database, company, Role.AGENT)) as agent:
        page = (await agent.get("/live")).text
        assert 'href="/console/live/loyalty"' in page
        assert 'href="/console/live/reports"' not in page
        assert 'href="/console/live/settings/company"' not in page


async def test_an_unknown_address_of_the_test_environment_is_shown_there(owner: httpx.AsyncClient) -> None:
    missing = await owner.get("/test/nowhere/at/all")
    assert missing.status_code == 404
    assert 'class="in-test"' in missing.text
    assert 'href="/console/test" aria-current="true"' in missing.text


async def test_a_theme_is_chosen_and_kept(owner: httpx.AsyncClient) -> None:
    form = {"token": await read_token(owner), "next": "/console/live/orders"}
    assert "data-theme" not in (await owner.get("/live")).text
    assert (await owner.post("/theme", data=form | {"theme": "dark"})).headers["location"] == "/console/live/orders"
    assert 'data-theme="dark"' in (await owner.get("/live")).text
    await owner.post("/theme", data=form | {"theme": "purple"})
    assert "data-theme" not in (await owner.get("/live")).text


async def test_everything_is_found_by_one_search(api: httpx.AsyncClient, owner: httpx.AsyncClient) -> None:
    ayu = await make_customer(api, firstName="Ayudia", phoneNumber="+6281298765432")
    order = await make_order(api, customerId=ayu["id"])
    found = (await owner.get("/live/search", params={"q": "Ayudia"})).text
    assert f"/console/live/customers/{ayu['id']}" in found
    assert f"/console/live/orders/{order['id']}" in found
    assert "+62 812-9876-5432" in found
    assert 'href="/console/live/webhooks"' in (await owner.get("/live/search?q=webho")).text
    assert "Nothing matches “zzzzzz”" in (await owner.get("/live/search?q=zzzzzz")).text


async def test_what_a_form_did_is_said_once(api: httpx.AsyncClient, owner: httpx.AsyncClient) -> None:
    order = await make_order(api)
    id, said = order["id"], f"<p>Order #{order['orderNumber']} marked as paid: Rp 150,000</p>"
    form = {"token": await read_token(owner), "financialStatus": "paid"}
    assert (await owner.post(f"/live/orders/{id}", data=form)).status_code == 303
    assert said in (await owner.get(f"/live/orders/{id}")).text
    assert said not in (await owner.get(f"/live/orders/{id}")).text


async def test_an_items_page_leads_back_to_its_list_with_the_filters(
    api: httpx.AsyncClient, owner: httpx.AsyncClient
) -> None:
    id = (await make_order(api))["id"]
    await owner.get("/live/orders?status=active&financialStatus=pending&search=kopi")
    page = (await owner.get(f"/live/orders/{id}")).text
    assert 'href="/console/live/orders?status=active&amp;financialStatus=pending&amp;search=kopi"' in page
    await owner.get("/live/orders")
    assert 'class="crumbs"><a href="/console/live/orders">' in (await owner.get(f"/live/orders/{id}")).text


async def test_a_form_that_is_sent_twice_changes_once(api: httpx.AsyncClient, owner: httpx.AsyncClient) -> None:
    """Also after a restart: the key is in the database. Another entry with the same key counts."""
    path = "/live/draft-orders/new"
    page = (await owner.get(path)).text
    form = {"token": find_token(page), "title": "Kopi", "price": "10.000", "quantity": "1"}
    form["once"] = _ONCE.findall(page[page.index('action="/console/live/draft-orders/new"') :])[0]
    first, again = [await owner.post(path, data=form) for _ in range(2)]
    assert first.headers["location"] == again.headers["location"]
    other = await owner.post(path, data=form | {"title": "Teh"})
    assert other.headers["location"] != first.headers["location"]
    assert (await api.get("/draft-orders")).json()["meta"]["total"] == 2


async def test_what_is_not_found_can_be_searched_for(
    installation: Installation, database: Database, company: Environments, owner: httpx.AsyncClient
) -> None:
    lost = await owner.get("/test/customers/cust_0/edit")
    assert (lost.status_code, "<h1>Not found</h1>" in lost.text) == (404, True)
    assert "You looked for /test/customers/cust_0/edit" in lost.text
    assert '<form action="/console/test/search" class="inline search"' in lost.text
    async with open_browser(installation, await make_person(database, company, Role.AGENT)) as agent:
        barred = await agent.get("/live/audit")
        assert (barred.status_code, "<h1>No access</h1>" in barred.text) == (403, True)
        assert 'class="inline search"' not in barred.text
    expired = await owner.post("/live/webhooks", data={})
    assert "This page expired</h1>" in expired.text


async def test_points_by_hand_have_a_reason_and_an_author_in_the_audit_log(
    api: httpx.AsyncClient, owner: httpx.AsyncClient
) -> None:
    id = (await make_customer(api))["id"]
    form = {"token": await read_token(owner), "direction": "add", "points": "25000"}
    refused = await owner.post(f"/live/customers/{id}/points", data=form)
    assert refused.status_code == 400
    assert "Enter a reason" in refused.text
    assert (await owner.post(f"/live/customers/{id}/points", data=form | {"reason": "Maaf"})).status_code == 303
    log = (await owner.get("/live/audit")).text
    assert f'customers/{id}">Customer</a>: +25,000, Maaf' in log
    assert "Points changed by hand" in log


async def test_an_invited_agent_gets_conversations_before_they_join(
    database: Database, company: Environments, owner: httpx.AsyncClient
) -> None:
    form = {"token": await read_token(owner), "email": f"budi-{company.live}@toko.example", "name": "Budi Santoso"}
    assert (await owner.post("/live/people", data=form | {"role": "agent"})).status_code == 200
    for environment in ("live", "test"):
        assert "Budi Santoso" in (await owner.get(f"/{environment}/settings/agents")).text


async def test_conversations_of_a_person_who_leaves_wait_for_others_until_they_come_back(
    company: Environments, owner: httpx.AsyncClient, desk: Desk
) -> None:
    token = await read_token(owner)
    form = {"token": token, "email": f"budi-{company.live}@toko.example", "name": "Budi Santoso", "role": "agent"}
    assert (await owner.post("/test/people", data=form)).status_code == 200
    (budi,) = await desk.get("/agents", search="Budi")
    ticket = await desk.receive()
    await desk.act(ticket, "assign", agentId=budi["id"])
    team = (await owner.get("/test/settings/team")).text
    assert "They are signed out, and their open conversations go back to the queue." in team
    stops = {"token": token, "userId": budi["userId"], "agentName": "Budi Santoso"}
    assert (await owner.post("/test/settings/team/agents", data=stops)).status_code == 303
    assert (await desk.look(ticket))["agentId"] is None, "who takes no conversations keeps none"
    assert (await owner.post("/test/settings/team/agents", data=stops | {"active": "1"})).status_code == 303
    await desk.act(ticket, "assign", agentId=budi["id"])
    removed = await owner.post(f"/test/people/{budi['userId']}/remove", data={"token": token})
    assert removed.status_code == 303, removed.text
    assert [agent["active"] for agent in await desk.get("/agents", search="Budi")] == [False]
    others = (await owner.get("/test/settings/team")).text.partition("Other agents")[2]
    assert "Budi Santoso" in others, "the agent of somebody who left"
    waiting = await desk.look(ticket)
    assert (waiting["status"], waiting["agentId"]) == ("open", None)
    invited = await owner.post("/test/people", data=form)
    assert invited.status_code == 200, invited.text
    assert [(agent["id"], agent["active"]) for agent in await desk.get("/agents", search="Budi")] == [
        (budi["id"], True)
    ]
    log = (await owner.get("/test/audit")).text
    assert (log.count("Agent activated"), log.count("Agent deactivated")) == (4, 3), (
        "in both environments, and once by hand"
    )


async def test_an_invited_person_keeps_the_language_of_the_invitation(
    installation: Installation, database: Database, company: Environments
) -> None:
    async with database.transaction() as tx:
        organisation = await people.get_organisation(tx, company.live)
        link = await people.invite(tx, organisation, f"ayu-{company.live}@toko.example", "Ayu", Role.AGENT)
    async with open_browser(installation) as browser:
        browser.headers["accept-language"] = "id-ID,id;q=0.9"
        joined = await choose(browser, link, PASSWORD)
        assert joined.status_code == 303, joined.text
        assert 'lang="id"' in (await browser.get("/live")).text


async def test_a_store_has_a_whole_area_in_its_own_city(
    database: Database, company: Environments, owner: httpx.AsyncClient
) -> None:
    areas = (await owner.get("/test/areas", params={"q": "sukajadi bandung"})).json()
    form = {"token": await read_token(owner), "name": "Toko", "address": "Jl. Sukajadi 1", "phone": "+628123456701"}
    half = await owner.post("/test/stores", data=form | {"areaSearch": "sukajadi"})
    assert half.status_code == 400
    assert "choose the district of this address" in half.text
    assert 'value="sukajadi"' in half.text
    elsewhere = await owner.post("/test/stores", data=form | {"area": areas[0]["value"], "city": "Surabaya"})
    assert elsewhere.status_code == 400
    assert "is not the city of the chosen district" in elsewhere.text
    stored = await owner.post("/test/stores", data=form | {"area": areas[0]["value"]})
    assert stored.status_code == 303, stored.text


async def test_a_refused_form_names_the_page_that_a_reload_opens(
    api: httpx.AsyncClient, owner: httpx.AsyncClient
) -> None:
    id = (await make_order(api))["id"]
    refused = await owner.post(
        f"/live/orders/{id}/payments", data={"token": await read_token(owner), "amount": "sepuluh", "method": "cash"}
    )
    assert refused.status_code == 400
    assert f'data-here="/console/live/orders/{id}"' in refused.text
    assert 'id="amount-problem">enter an amount' in refused.text
    assert "Check the marked field." in refused.text
    expired = await owner.post(f"/live/orders/{id}", data={"token": "0" * 64}, headers={"referer": quote("/x")})
    assert "Back to the form" in expired.text
