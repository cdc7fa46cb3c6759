"""Customers and products: lists, details and the most common actions."""

from starlette.responses import Response

from sapa.console.filter_pages import list_saved
from sapa.console.listing import read_list
from sapa.console.loyalty_pages import adjust_points
from sapa.console.page_request import PageRequest
from sapa.console.roles import EVERYBODY
from sapa.console.routes import console, go_to
from sapa.messaging.channels.interface import Source
from sapa.messaging.consents.types import ALL_CHANNELS

PRODUCT_STATUSES = ("active", "draft", "archived")
CUSTOMER_SORTS = (
    ("updatedAt:desc", "Last changed"),
    ("createdAt:desc", "Newest first"),
    ("createdAt:asc", "Oldest first"),
    ("firstName:asc", "First name"),
    ("lastName:asc", "Last name"),
    ("email:asc", "Email"),
)
"""The first is the API's own."""
CONSENTS_SHOWN = "20"
FORM_FIELDS = ("points", "reason", "direction", "app", "status", "proof.text", "proof.place", "proof.reference")


@console.get("/{environment}/customers", roles=EVERYBODY)
async def list_customers(page: PageRequest) -> Response:
    listed = await read_list(page, "/customers", "tags", "sort")
    return page.show("customers.html", sorts=CUSTOMER_SORTS, saved=await list_saved(page, "customers"), **listed)


@console.get("/{environment}/customers/{id}", roles=EVERYBODY)
async def show_customer(page: PageRequest) -> Response:
    id = page.request.path_params["id"]
    customer = (await page.call("GET", f"/customers/{id}"))["data"]
    orders = await page.call("GET", "/orders", {"customerId": id, "limit": "10"})
    wallet = (await page.call("GET", f"/loyalty/customers/{id}/wallet"))["data"]
    timeline = await page.call("GET", f"/loyalty/customers/{id}/timeline", {"limit": "20"})
    consents = await page.call("GET", f"/customers/{id}/consents", {"limit": CONSENTS_SHOWN})
    return page.show(
        "customer.html",
        customer=customer,
        orders=orders["data"],
        wallet=wallet,
        timeline=timeline["data"],
        consents=consents["data"],
        apps=(ALL_CHANNELS, *Source),
        given={name: page.form_value(name) for name in FORM_FIELDS},
    )


@console.post("/{environment}/customers/{id}/points", roles=EVERYBODY, shown_by=show_customer, says="Points changed")
async def change_points(page: PageRequest) -> Response:
    await adjust_points(page)
    return go_to(page.path(f"/customers/{page.request.path_params['id']}"))


@console.get("/{environment}/products", roles=EVERYBODY)
async def list_products(page: PageRequest) -> Response:
    listed = await read_list(page, "/products", "status", "tags")
    saved = await list_saved(page, "products")
    return page.show("products.html", statuses=PRODUCT_STATUSES, saved=saved, **listed)


@console.get("/{environment}/products/{id}", roles=EVERYBODY)
async def show_product(page: PageRequest) -> Response:
    product = (await page.call("GET", f"/products/{page.request.path_params['id']}"))["data"]
    return page.show("product.html", product=product)
