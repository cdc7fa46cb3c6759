"""Access control: sessions, roles, forms and headers, over every page."""

from collections.abc import AsyncIterator

import httpx
import pytest

from sapa.console.pages import PARTS
from sapa.console.routes import ConsoleRoute, console
from sapa.db.pool import Database
from sapa.people.types import Role
from sapa.support.types import TICKET_ID
from tests.conftest import Installation
from tests.console.own import open_own
from tests.console.people import make_person, open_browser, read_token
from tests.factories import Environments, make_customer, make_order

assert PARTS
CLOSED = [page for page in console.pages if page.roles is not None]
CHANGING = [page for page in console.pages if page.method == "POST"]
STALE = "This page expired"
EVENTS = {"accept": "text/event-stream"}
KEPT_TO = {
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "cross-origin-opener-policy": "same-origin",
}


def address_of(page: ConsoleRoute) -> str:
    path = page.path.replace("{environment}", "live").replace("{file}", "customers.csv")
    return path.replace("{id}", "nothing").replace("{message}", "nothing").replace("{secret}", "nothing")


def name_of(page: ConsoleRoute) -> str:
    return f"{page.method} {page.path}"


@pytest.fixture
async def owner(
    installation: Installation, database: Database, company: Environments
) -> AsyncIterator[httpx.AsyncClient]:
    async with open_browser(installation, await make_person(database, company)) as client:
        yield client


async def test_every_closed_page_requires_sign_in(installation: Installation) -> None:
    async with open_browser(installation) as client:
        client.cookies.set("sapa_session", "guessed", path="/console")
        for page in CLOSED:
            response = await client.request(page.method, f"{installation.address}/console{address_of(page)}")
            assert response.status_code == 303, name_of(page)
            assert response.headers["location"].startswith("/console/sign-in?next="), name_of(page)


async def test_a_form_without_its_token_changes_nothing(
    installation: Installation, database: Database, owner: httpx.AsyncClient, company: Environments
) -> None:
    """Neither without a token, nor with one of another session or of a visitor."""
    async with (
        open_browser(installation, await make_person(database, company)) as other,
        open_browser(installation) as nobody,
    ):
        tokens = ["", "0" * 64, "é" * 64, await read_token(other), await read_token(nobody, "/sign-in")]
        for page in CHANGING:
            for token in tokens:
                response = await owner.post(address_of(page), data={"token": token} if token else {})
                assert (response.status_code, STALE in response.text) == (403, True), name_of(page)
        for page in (page for page in CHANGING if page.is_open):
            for token in tokens[:-1]:
                response = await nobody.post(address_of(page), data={"token": token} if token else {})
                assert (response.status_code, STALE in response.text) == (403, True), name_of(page)
        assert (await owner.get("/live")).status_code == 200


@pytest.mark.parametrize(
    "path",
    ["/inbox/counts", f"/inbox/{TICKET_ID.example}/files/requests", "/webhooks/%00", "/deliveries/%00"],
)
async def test_a_word_in_place_of_an_id_is_not_found(owner: httpx.AsyncClient, path: str) -> None:
    """Also one that is a path of the API, and one that no database can store."""
    response = await owner.get(f"/test{path}")
    assert (response.status_code, "Not found" in response.text) == (404, True)


async def test_an_id_with_another_step_behind_it_is_not_found(api: httpx.AsyncClient, owner: httpx.AsyncClient) -> None:
    order, customer = (await make_order(api))["id"], (await make_customer(api))["id"]
    for path in (f"/inbox/new?orderId={order}/history", f"/orders/new?customerId={customer}/consents"):
        assert (await owner.get(f"/live{path}")).status_code == 404


@pytest.mark.parametrize("role", [Role.DEVELOPER, Role.AGENT])
async def test_a_role_opens_its_own_pages_and_no_others(
    installation: Installation, database: Database, company: Environments, role: Role
) -> None:
    async with open_browser(installation, await make_person(database, company, role)) as client:
        token = await read_token(client)
        for page in (page for page in CLOSED if "sign-out" not in page.path):
            response = await client.request(
                page.method, address_of(page), data={"token": token} if page.method == "POST" else None
            )
            is_open = role in (page.roles or ())
            assert (response.status_code == 403) is not is_open, name_of(page)


AGENTS_PAGES = (
    "/alerts", "/areas", "/companies", "/customers", "/draft-orders", "/filters", "/inbox", "/labels", "/loyalty",
    "/orders", "/products", "/profile", "/rewards", "/scorecards", "/search", "/shipments", "/sign-out", "/stores",
    "/suggestions",
)  # fmt: skip


def test_agents_have_the_pages_that_serve_customers_and_no_settings() -> None:
    theirs = {page.path.removeprefix("/{environment}") for page in CLOSED if Role.AGENT in (page.roles or ())}
    assert {path for path in theirs if path and not path.startswith(AGENTS_PAGES)} == set()
    changed = {page.path for page in CHANGING if page.roles and Role.AGENT in page.roles}
    assert {path for path in changed if "/stores" in path or "/rewards" in path} == set()
    owners = {page.path for page in CLOSED if page.roles == (Role.OWNER,)}
    assert {page.path for page in CLOSED if "/people" in page.path} <= owners


async def test_every_response_has_the_security_headers(
    installation: Installation, database: Database, company: Environments
) -> None:
    """Pages, redirects, errors, files and missing paths; over TLS with strict transport."""
    email = await make_person(database, company)
    others = ["/live/nothing", "/nothing", "/", "/static/nothing.js", "/static/console.css", "/mars/keys"]
    places = [(page.method, address_of(page)) for page in console.pages if "sign-out" not in page.path]
    places += [("GET", path) for path in others] + [("POST", "/live/keys/new"), ("DELETE", "/live/keys")]
    async with (
        open_own(installation, email, SAPA_PUBLIC_URL="https://console.example") as tls,
        open_own(installation, SAPA_PUBLIC_URL="https://console.example") as nobody,
    ):
        for client in (tls, nobody):
            for method, path in places:
                response = await client.request(method, path)
                check_headers(response)
                assert response.headers["strict-transport-security"] == "max-age=31536000", path
                if path != "/static/console.css":
                    assert response.headers["cache-control"] == "no-store", path
                assert all("Secure" in cookie for cookie in response.headers.get_list("set-cookie")), path
        assert (await tls.post("/live/keys/new")).status_code == 405
        assert (await tls.get("/live/nothing")).status_code == 404


async def test_streams_and_plain_http_have_the_same_headers(owner: httpx.AsyncClient) -> None:
    async with owner.stream("GET", "/live/inbox/events", headers=EVENTS) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        check_headers(stream)
        assert stream.headers["cache-control"] == "no-store"
        assert "strict-transport-security" not in stream.headers


def check_headers(response: httpx.Response) -> None:
    policy = response.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert {name: response.headers[name] for name in KEPT_TO} == KEPT_TO, response.url


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ({"content-type": "application/x-www-form-urlencoded"}, b"token=%00&name=%00"),
        ({"content-type": "application/x-www-form-urlencoded"}, b"&".join(b"a%d=1" % n for n in range(201))),
        ({"content-type": "multipart/form-data"}, b"no boundary"),
        ({"content-type": "multipart/form-data; boundary=x"}, b"--x\r\nnonsense"),
        ({"content-type": "multipart/form-data; boundary=x"}, b"garbage \xff"),
        ({"content-type": "application/json"}, b"{}"),
    ],
    ids=["nul", "fields", "boundary", "part", "garbage", "json"],
)
async def test_what_is_no_form_is_refused(owner: httpx.AsyncClient, headers: dict[str, str], body: bytes) -> None:
    for path in ("/sign-in", "/live/keys", "/live/people"):
        response = await owner.post(path, content=body, headers=headers)
        assert response.status_code in {400, 403}, response.text


async def test_forms_of_strangers_are_small(installation: Installation) -> None:
    async with open_browser(installation) as client:
        response = await client.post("/sign-in", data={"email": "x" * 70_000})
        assert response.status_code == 413


async def test_forms_without_a_file_are_not_large(owner: httpx.AsyncClient) -> None:
    response = await owner.post("/live/people", data={"email": "x" * 1_100_000})
    assert response.status_code == 413
