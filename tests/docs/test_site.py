"""The documentation as readers get it: from a server, as files, in several versions."""

import filecmp
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import httpx
import pytest
from playwright.async_api import Browser, ConsoleMessage, Page

from docs.generator.publish import VERSIONS, publish
from sapa import __version__
from sapa.domains import ROUTES
from sapa.http.documentation import documentation_routes
from sapa.http.site import build_site
from tests.browsers import new_page
from tests.conftest import TLS, Installation
from tests.docs.conftest import build_strictly
from tests.docs.crawler import crawl

pytestmark = pytest.mark.processes


@pytest.fixture
def docs(site: Path, installation: Installation) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"{installation.address}/docs/", verify=TLS, follow_redirects=True) as client:
        yield client


def test_every_link_leads_to_a_page_and_a_place_that_exist(docs: httpx.Client) -> None:
    def load(address: str) -> str | None:
        response = docs.get(address)
        if response.status_code != 200:
            return None
        return response.text if response.headers["content-type"].startswith("text/html") else ""

    start = str(docs.base_url)
    found = crawl(start, load, follows=lambda address: address.startswith(start) and "/reference/" not in address)
    assert found.broken == []
    pages = {address.removeprefix(start) for address in found.pages}
    assert {"errors.html", "quickstart/python.html", "decisions/index.html", "reference/customer/index.html"} <= pages
    assert {"changelog.html", "contributing.html", "compatibility.html", "overview.html"} <= pages


def test_a_broken_link_is_found() -> None:
    texts = {
        "http://a/docs/": '<a href="b.html#here"></a><a href="c.html"></a><a href="http://other/"></a>',
        "http://a/docs/b.html": '<p id="there"></p><a href="/docs/"></a>',
    }
    found = crawl("http://a/docs/", texts.get, follows=lambda address: True)
    assert sorted(found.broken) == [
        "http://a/docs/ links to #here of http://a/docs/b.html",
        "http://a/docs/ links to http://a/docs/c.html",
    ]


def test_a_page_may_run_its_own_scripts_only(docs: httpx.Client) -> None:
    response = docs.get("webhooks.html")
    policy = response.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self' 'sha256-" in policy
    assert "'unsafe-inline'" not in policy.partition("script-src")[2].partition(";")[0]
    assert response.headers["x-content-type-options"] == "nosniff"


def test_a_file_is_sent_once_while_it_does_not_change(docs: httpx.Client) -> None:
    etag = docs.get("webhooks.html").headers["etag"]
    assert docs.get("webhooks.html", headers={"if-none-match": etag}).status_code == 304
    assert docs.head("webhooks.html").headers["content-type"].startswith("text/html")


@pytest.mark.parametrize("path", ["nothing.html", "..%2fapp.py", "%2e%2e/app.py", "reference/customer/nothing.html"])
def test_other_files_are_not_there(docs: httpx.Client, path: str) -> None:
    response = docs.get(httpx.URL(str(docs.base_url), raw_path=f"/docs/{path}".encode()))
    assert (response.status_code, response.json()["error"]["code"]) == (404, "NOT_FOUND")


def test_the_reference_is_the_servers_own(installation: Installation, site: Path) -> None:
    response = httpx.get(f"{installation.address}/docs/reference/customer/orders.html", verify=TLS)
    assert response.headers["location"] == "/customer/v1/docs/orders"
    overview = httpx.get(f"{installation.address}/messaging/v1/docs", verify=TLS)
    assert 'href="../../docs/errors.html"' in overview.text
    start = httpx.get(f"{installation.address}/docs", verify=TLS)
    assert (start.status_code, start.headers["location"]) == (307, "/docs/")


async def test_without_the_site_the_response_says_how_to_build_it(tmp_path: Path) -> None:
    app = build_site(documentation_routes(ROUTES, tmp_path / "nothing"))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
        response = await client.get("/docs/")
    assert response.status_code == 404
    assert "make site" in response.json()["error"]["message"]


async def open_page(browser: Browser, address: str) -> tuple[Page, list[str]]:
    """A page and what its console complains about, such as something that its policy forbids."""
    complaints: list[str] = []
    page = await new_page(browser)

    def note(message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            complaints.append(message.text)

    page.on("console", note)
    await page.goto(address)
    return page, complaints


async def search_and_switch(browser: Browser, root: str) -> list[str]:
    """Looks for a word, reads the first result and switches to the dark theme; returns what was complained about."""
    page, complaints = await open_page(browser, f"{root}index.html")
    await page.fill("input[name=q]", "idempotency")
    await page.press("input[name=q]", "Enter")
    result = page.locator("#search-results li a").first
    await result.wait_for()
    await result.click()
    await page.locator("article h1").wait_for()
    theme = page.locator(".theme-toggle:visible").first
    seen = set()
    for _ in range(3):
        seen.add(await page.evaluate("document.body.dataset.theme"))
        await theme.click()
    assert seen == {"auto", "light", "dark"}
    await page.close()
    return complaints


async def test_search_and_dark_theme_work_from_the_server(docs: httpx.Client, browser: Browser) -> None:
    assert await search_and_switch(browser, str(docs.base_url)) == []


async def test_search_and_dark_theme_work_without_a_server(site: Path, browser: Browser) -> None:
    await search_and_switch(browser, f"{site.as_uri()}/")  # excerpts of results are what a browser refuses to files


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


async def test_versions_stand_side_by_side(site: Path, tmp_path: Path, browser: Browser) -> None:
    for version in ("0.10.0", "0.9.0", "0.11.0"):
        publish(site, tmp_path, version)
    (tmp_path / "0.9.0" / "errors.html").unlink()
    assert (tmp_path / "0.9.0" / VERSIONS).read_text() == 'window.SAPA_VERSIONS = ["0.11.0", "0.10.0", "0.9.0"];\n'
    with serving(tmp_path) as address:
        page, complaints = await open_page(browser, address)
        await page.wait_for_url(f"{address}/0.11.0/index.html")
        await page.goto(f"{address}/0.11.0/errors.html")
        await page.select_option(".version-menu select", "0.10.0")
        await page.wait_for_url(f"{address}/0.10.0/errors.html")
        assert complaints == []
        await page.select_option(".version-menu select", "0.9.0")  # which has no such page
        await page.wait_for_url(f"{address}/0.9.0/index.html")
        await page.close()


async def test_a_site_of_one_version_has_no_menu(docs: httpx.Client, browser: Browser) -> None:
    page, _ = await open_page(browser, str(docs.base_url))
    assert await page.locator(".version-menu").is_hidden()
    assert __version__ in await page.title()
    await page.close()


@pytest.mark.long
def test_a_site_alone_has_the_reference_and_is_the_same_each_time(tmp_path: Path) -> None:
    first, second = tmp_path / "first" / "docs", tmp_path / "second" / "docs"
    for folder in (first, second):
        build_strictly(folder, "--reference")
    files = {path.relative_to(first) for path in first.rglob("*") if path.is_file()}
    assert files == {path.relative_to(second) for path in second.rglob("*") if path.is_file()}
    assert filecmp.cmpfiles(first, second, files, shallow=False)[1:] == ([], [])

    def load(address: str) -> str | None:
        path = first.parent / address.removeprefix("file://site/").partition("?")[0]
        if not path.is_file():
            return None
        return path.read_text() if path.suffix == ".html" else ""

    found = crawl("file://site/docs/index.html", load, follows=lambda address: True)
    assert found.broken == []
    assert "file://site/docs/reference/messaging/tickets.html" in found.pages
