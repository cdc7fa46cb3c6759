"""One search over pages, customers, orders and parcels. The script shows its results in a dialog."""

from typing import Any

from starlette.responses import Response

from sapa.console.menu import MENU, MenuEntry
from sapa.console.page_request import PageRequest
from sapa.console.roles import EVERYBODY
from sapa.console.routes import console
from sapa.console.translations import translate

SHORTEST = 2
MOST = "5"

Json = dict[str, Any]


@console.get("/{environment}/search", roles=EVERYBODY)
async def search(page: PageRequest) -> Response:
    words = page.request.query_params.get("q", "").strip()
    found: Json = {"customers": [], "orders": [], "shipments": []}
    if len(words) >= SHORTEST:
        query = {"search": words, "limit": MOST}
        found["customers"] = (await page.call("GET", "/customers", query))["data"]
        found["orders"] = (await page.call("GET", "/orders", query))["data"]
        found["shipments"] = (await page.call("GET", "/shipping/shipments", query))["data"]
    return page.show("search.html", words=words, places=_list_places(page, words), **found)


def _list_places(page: PageRequest, words: str) -> list[MenuEntry]:
    """Pages whose name has the words, in the reader's language; all of the main ones without words."""
    if not words:
        return [entry for entry in MENU if page.session.role in entry.roles]
    entries = [
        below
        for entry in MENU
        if page.session.role in entry.roles
        for below in (entry.entries or [entry])
        if page.session.role in below.roles
    ]
    return [entry for entry in entries if words.casefold() in translate(page.language, entry.label).casefold()]
