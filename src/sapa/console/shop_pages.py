"""Customers and products: their lists, and a product."""

from asyncio import gather

from starlette.responses import Response

from sapa.console.filter_pages import list_saved
from sapa.console.listing import NamedFilters, build_tabs, count_cells, read_cells, read_list
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
        page.call("GET", "/products", LOW_STOCK | {"limit": "1"}),
    )
    counted = [(label, wanted, count_cells(cells, wanted)) for label, wanted in PRODUCT_TABS]
    return page.show(
        "products.html",
        statuses=PRODUCT_STATUSES,
        tabs=build_tabs(listed["query"], [*counted, ("Low stock", LOW_STOCK, low["meta"]["total"])]),
        sorts=PRODUCT_SORTS,
        saved=saved,
        low_stock=int(LOW_STOCK["stockAtMost"]),
        **listed,
    )


@console.get("/{environment}/products/{id}", roles=EVERYBODY)
async def show_product(page: PageRequest) -> Response:
    product = (await page.call("GET", f"/products/{page.request.path_params['id']}"))["data"]
    return page.show("product.html", product=product)
