"""Customers and products: their lists, and a product."""

from asyncio import gather
from functools import partial
from typing import Any

from msgspec import Struct
from starlette.responses import Response

from sapa.console.filter_pages import list_saved
from sapa.console.listing import NamedFilters, build_tabs, count_cells, read_cells, read_list
from sapa.console.menu import COUNT_SECONDS
from sapa.console.page_request import PageRequest
from sapa.console.roles import EVERYBODY
from sapa.console.routes import console

PRODUCT_STATUSES = ("active", "draft", "archived")
PRODUCT_TABS: NamedFilters = (
    ("All", {}),
    *((f"products {status}", {"status": status}) for status in PRODUCT_STATUSES),
)
LOW_STOCK = {"status": "active", "stockAtMost": "5"}
"""Products on sale with a variant that runs out."""
CUSTOMER_SORTS = (
    ("updatedAt:desc", "Last changed"),
    ("createdAt:desc", "Newest first"),
    ("createdAt:asc", "Oldest first"),
    ("firstName:asc", "First name"),
    ("lastName:asc", "Last name"),
    ("email:asc", "Email"),
)
PRODUCT_SORTS = (
    ("createdAt:desc", "Newest first"),
    ("createdAt:asc", "Oldest first"),
    ("name:asc", "Name"),
    ("name:desc", "Name, backwards"),
    ("price:asc", "Lowest price"),
    ("price:desc", "Highest price"),
    ("stock:asc", "Least stock"),
    ("stock:desc", "Most stock"),
)
"""The first of each is the API's own."""


class ListedProduct(Struct, frozen=True):
    """A product in the list, with what its variants say together."""

    product: dict[str, Any]
    prices: list[float]
    """The lowest and the highest."""
    stock: int | None
    """None where it is not tracked."""
    scarcest: int | None
    """The stock of the variant that has the least."""


@console.get("/{environment}/customers", roles=EVERYBODY)
async def list_customers(page: PageRequest) -> Response:
    listed, saved = await gather(read_list(page, "/customers", "tags", "sort"), list_saved(page, "customers"))
    return page.show("customers.html", sorts=CUSTOMER_SORTS, saved=saved, **listed)


@console.get("/{environment}/products", roles=EVERYBODY)
async def list_products(page: PageRequest) -> Response:
    listed, saved, cells, low = await gather(
        read_list(page, "/products", "status", "tags", "stockAtMost", "sort"),
        list_saved(page, "products"),
        read_cells(page, "products", "status"),
        page.api.cache("low stock", page.company_id, COUNT_SECONDS, partial(_count_low_stock, page)),
    )
    counted = [(label, wanted, count_cells(cells, wanted)) for label, wanted in PRODUCT_TABS]
    return page.show(
        "products.html",
        statuses=PRODUCT_STATUSES,
        tabs=build_tabs(listed["query"], [*counted, ("Low stock", LOW_STOCK, low)]),
        sorts=PRODUCT_SORTS,
        saved=saved,
        low_stock=int(LOW_STOCK["stockAtMost"]),
        rows=[_build_row(product) for product in listed["items"]],
        **listed,
    )


async def _count_low_stock(page: PageRequest) -> int:
    found = await page.call("GET", "/products", LOW_STOCK | {"limit": "1"})
    return int(found["meta"]["total"])


def _build_row(product: dict[str, Any]) -> ListedProduct:
    prices = [variant["price"] for variant in product["variants"]]
    quantities = [variant["inventoryQuantity"] for variant in product["variants"]]
    tracked = [quantity for quantity in quantities if quantity is not None]
    return ListedProduct(
        product,
        [min(prices), max(prices)] if prices else [],
        sum(tracked) if tracked else None,
        min(tracked, default=None),
    )


@console.get("/{environment}/products/{id}", roles=EVERYBODY)
async def show_product(page: PageRequest) -> Response:
    product = (await page.call("GET", f"/products/{page.request.path_params['id']}"))["data"]
    return page.show("product.html", product=product)
