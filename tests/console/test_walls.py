"""What keeps people apart: sessions, roles, companies, forms, headers. Over every page there is."""

from collections.abc import AsyncIterator

import httpx
import pytest

from sapa.console.desk import Sheet, desk
from sapa.console.pages import PARTS
from sapa.db.pool import Database
from sapa.people.types import Role
from tests.conftest import Installation
from tests.console.people import make_person, open_browser, read_token
from tests.factories import Environments, make_company, make_key

assert PARTS
CLOSED = [sheet for sheet in desk.sheets if sheet.roles is not None]
CHANGING = [sheet for sheet in CLOSED if sheet.method == "POST"]


def address_of(sheet: Sheet, **values: str) -> str:
    path = sheet.path.replace("{environment}", "live")
    for name, value in values.items():
        path = path.replace(f"{{{name}}}", value)
    return path.replace("{id}", "nothing")


def name_of(sheet: Sheet) -> str:
    return f"{sheet.method} {sheet.path}"


@pytest.fixture
async def owner(
    installation: Installation, database: Database, company: Environments
) -> AsyncIterator[httpx.AsyncClient]:
    async with open_browser(installation, await make_person(database, company)) as client:
        yield client


@pytest.mark.parametrize("sheet", CLOSED, ids=name_of)
async def test_nobody_gets_in_without_signing_in(installation: Installation, sheet: Sheet) -> None:
    async with open_browser(installation) as client:
        answer = await client.request(sheet.method, f"{installation.address}/console{address_of(sheet)}")
    assert answer.status_code == 303
    assert answer.headers["location"].startswith("/console/sign-in?next=")


@pytest.mark.parametrize("sheet", CHANGING, ids=name_of)
async def test_a_form_without_its_token_changes_nothing(owner: httpx.AsyncClient, sheet: Sheet) -> None:
    for data in ({}, {"token": "0" * 64}):
        answer = await owner.post(address_of(sheet), data=data)
        assert answer.status_code == 403
        assert "This form is too old, or came from elsewhere" in answer.text


@pytest.mark.parametrize("role", [Role.DEVELOPER, Role.AGENT])
async def test_a_role_opens_its_own_pages_and_no_others(
    installation: Installation, database: Database, company: Environments, role: Role
) -> None:
    async with open_browser(installation, await make_person(database, company, role)) as client:
        token = await read_token(client)
        for sheet in (sheet for sheet in CLOSED if "sign-out" not in sheet.path):
            answer = await client.request(
                sheet.method, address_of(sheet), data={"token": token} if sheet.method == "POST" else None
            )
            is_open = role in (sheet.roles or ())
            assert (answer.status_code == 403) is not is_open, name_of(sheet)


async def test_another_companys_key_is_out_of_reach(
    installation: Installation, database: Database, owner: httpx.AsyncClient, company: Environments
) -> None:
    other = await make_company(database)
    foreign, testing = await make_key(database, other.live), await make_key(database, company.test)
    token = await read_token(owner)
    for key in (foreign, testing):
        for action in ("rotate", "revoke"):
            answer = await owner.post(f"/live/keys/{key.id}/{action}", data={"token": token})
            assert answer.status_code == 404
        alive = await owner.get(f"{installation.customer_base}/customers", headers={"x-api-key": key.raw})
        assert alive.status_code == 200


async def test_another_companys_people_are_out_of_reach(
    installation: Installation, database: Database, owner: httpx.AsyncClient
) -> None:
    other = await make_company(database)
    email = await make_person(database, other)
    async with open_browser(installation, email) as client:
        mine = (await client.get("/live/people")).text.partition("/people/")[2].partition("/")[0]
    token = await read_token(owner)
    for action in ("link", "role", "remove"):
        answer = await owner.post(f"/live/people/{mine}/{action}", data={"token": token, "role": "agent"})
        assert answer.status_code == 404
    assert email not in (await owner.get("/live/people")).text


@pytest.mark.parametrize("path", ["/live", "/sign-in", "/live/keys", "/static/console.css", "/live/nothing"])
async def test_browsers_are_told_to_do_nothing_else(owner: httpx.AsyncClient, path: str) -> None:
    headers = (await owner.get(path)).headers
    if path != "/live/nothing":
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert (headers["x-frame-options"], headers["referrer-policy"]) == ("DENY", "same-origin")
    assert "strict-transport-security" not in headers


async def test_the_cookie_cannot_be_read_by_scripts_or_sent_from_elsewhere(
    installation: Installation, database: Database, company: Environments
) -> None:
    email = await make_person(database, company)
    async with open_browser(installation) as client:
        answer = await client.post("/sign-in", data={"email": email, "password": "kopi gayo enak sekali"})
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    assert "path=/console" in cookie


async def test_a_form_of_another_site_does_not_sign_in(
    installation: Installation, database: Database, company: Environments
) -> None:
    email = await make_person(database, company)
    async with open_browser(installation) as client:
        for headers in ({"sec-fetch-site": "cross-site"}, {"origin": "https://evil.example"}):
            answer = await client.post(
                "/sign-in", data={"email": email, "password": "kopi gayo enak sekali"}, headers=headers
            )
            assert answer.status_code == 403


async def test_guessing_is_slowed_down(installation: Installation, database: Database, company: Environments) -> None:
    email = await make_person(database, company)
    async with open_browser(installation) as client:
        for _ in range(10):
            assert (await client.post("/sign-in", data={"email": email, "password": "wrong"})).status_code == 401
        answer = await client.post("/sign-in", data={"email": email, "password": "kopi gayo enak sekali"})
    assert answer.status_code == 429


async def test_signing_out_ends_the_session_and_everywhere_ends_all(
    installation: Installation, database: Database, company: Environments
) -> None:
    email = await make_person(database, company)
    async with (
        open_browser(installation, email) as desk_one,
        open_browser(installation, email) as desk_two,
        open_browser(installation, email) as desk_three,
    ):
        kept = dict(desk_one.cookies)
        await desk_one.post("/sign-out", data={"token": await read_token(desk_one)})
        desk_one.cookies.update(kept)
        assert (await desk_one.get("/live")).status_code == 303
        assert (await desk_two.get("/live")).status_code == 200
        await desk_two.post("/sign-out", data={"token": await read_token(desk_two), "everywhere": "1"})
        assert (await desk_three.get("/live")).status_code == 303
