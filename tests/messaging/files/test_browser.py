"""Hostile files in a real browser: nothing of them runs, wherever a page puts their addresses."""

import httpx
from playwright.async_api import Browser, Dialog, Error

from sapa.db.pool import Database
from tests.browsers import new_page
from tests.conftest import Installation
from tests.factories import Environments
from tests.messaging.files.corpus import HOSTILE
from tests.messaging.files.steps import list_media, reset_limits, send_file, upload

EMBEDDED = """(urls) => Promise.all(urls.flatMap((url) => ["script", "img", "iframe", "object", "embed"].map((tag) =>
  new Promise((done) => {
    const node = document.createElement(tag);
    node.onload = node.onerror = done;
    setTimeout(done, 3000);
    node[tag === "object" ? "data" : "src"] = url;
    document.body.append(node);
  }))))"""


async def test_a_browser_runs_nothing(
    browser: Browser, installation: Installation, sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    urls = []
    for file in HOSTILE:
        await reset_limits(database, company.test)
        made = await upload(sandbox, file.content, file.name, content_type=file.declared)
        (media,) = await list_media(sandbox, (await send_file(sandbox, made["id"]))["messageId2"])
        urls.append(installation.address + "/media/" + media["url"].partition("/media/")[2])
    page, alerts = await new_page(browser), list[str]()

    async def note(dialog: Dialog) -> None:
        alerts.append(f"{page.url}: {dialog.message}")
        await dialog.dismiss()

    page.on("dialog", note)
    for url in urls:
        try:
            await page.goto(url)
        except Error as error:
            assert "Download is starting" in str(error)  # noqa: PT017 - what is not shown is a download
    # The worst place: a page of the same origin that takes them for scripts and pages.
    await page.goto(f"{installation.address}/healthz")
    await page.evaluate(EMBEDDED, urls)
    assert alerts == []
    # The same page does run a script, so the test would notice one.
    await page.evaluate("alert('seen')")
    assert len(alerts) == 1
    await page.close()
