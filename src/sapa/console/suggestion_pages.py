"""What a field that chooses a customer or an article offers while somebody types, and what its text stands for."""

from typing import Any

from starlette.responses import JSONResponse, Response

from sapa.console.page_request import PageRequest
from sapa.console.rendering import HEADERS, show_person
from sapa.console.roles import EVERYBODY
from sapa.console.routes import console
from sapa.console.translations import translate
from sapa.http.errors import Invalid, NotFound

SHORTEST = 2
MOST = 8

Json = dict[str, Any]


@console.get("/{environment}/suggestions/{kind}", roles=EVERYBODY)
async def suggest(page: PageRequest) -> Response:
    """For the script of the field."""
    words = page.request.query_params.get("q", "").strip()
    kind = page.request.path_params["kind"]
    if kind not in {"customers", "articles"}:
        raise NotFound
    list_matches = list_customers if kind == "customers" else list_articles
    found = await list_matches(page, words) if len(words) >= SHORTEST else []
    return JSONResponse(found, headers=HEADERS)


async def list_customers(page: PageRequest, words: str) -> list[Json]:
    found = await _search(page, "/customers", {"search": words})
    return [
        {"value": one["id"], "label": show_person(one), "hint": one["phoneNumber"] or one["email"] or ""}
        for one in found
    ]


async def list_articles(page: PageRequest, words: str) -> list[Json]:
    """Variants on sale, with their price and what is left of them."""
    found = await _search(page, "/products", {"search": words, "status": "active"})
    articles = [_build_article(page, product, variant) for product in found for variant in product["variants"]]
    named = [one for one in articles if words.casefold() in f"{one['label']} {one['sku']}".casefold()]
    return (named or articles)[:MOST]


def _build_article(page: PageRequest, product: Json, variant: Json) -> Json:
    label = product["name"] if variant["title"] in product["name"] else f"{product['name']} · {variant['title']}"
    stock = variant["inventoryQuantity"]
    left = None if stock is None else translate(page.language, "{n} left", n=page.formats.number(stock))
    currency = page.company.currency if page.company else ""
    parts = [variant["inventorySku"], page.formats.money(variant["price"], currency).striptags(), left]
    return {
        "value": variant["id"],
        "label": label,
        "sku": variant["inventorySku"] or "",
        "hint": " · ".join(filter(None, parts)),
    }


async def choose_article(page: PageRequest, field: str, words: str) -> str:
    """The variant that a text without a choice stands for: its SKU or name, or the only one that matches."""
    found = await list_articles(page, words) if len(words) >= SHORTEST else []
    exact = [one for one in found if words.casefold() in {one["label"].casefold(), one["sku"].casefold()}]
    if len(exact or found) != 1:
        raise Invalid.field(field, "choose a product, or enter a price")
    return str((exact or found)[0]["value"])


async def choose_customer(page: PageRequest, field: str, words: str) -> str:
    """The only customer who matches a text without a choice."""
    found = await list_customers(page, words) if len(words) >= SHORTEST else []
    if len(found) != 1:
        raise Invalid.field(field, "choose a customer, or leave it empty and enter a new one")
    return str(found[0]["value"])


async def _search(page: PageRequest, path: str, query: dict[str, str]) -> list[Json]:
    try:
        found: list[Json] = (await page.call("GET", path, query | {"limit": str(MOST)}))["data"]
    except Invalid:
        return []
    return found
