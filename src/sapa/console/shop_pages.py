"""Customers, orders and products: lists to search, one of each to look at, and what is done with them most."""

from secrets import token_hex

from starlette.responses import Response

from sapa.console.listing import read_list
from sapa.console.loyalty_pages import adjust_points
from sapa.console.routes import (
    EVERYBODY,
    PageRequest,
    console,
    go_to,
)

STATUSES = ("active", "archived", "cancelled", "refunded")
PRODUCT_STATUSES = ("active", "draft", "archived")
FULFILMENTS = ("unfulfilled", "fulfilled")
PAYMENTS = ("pending", "paid", "refunded")
CHANGES = {"status": STATUSES, "fulfillmentStatus": FULFILMENTS, "financialStatus": PAYMENTS}


@console.get("/{environment}/customers", roles=EVERYBODY)
async def list_customers(visit: PageRequest) -> Response:
    return visit.show("customers.html", **await read_list(visit, "/customers", "tags"))


@console.get("/{environment}/customers/{id}", roles=EVERYBODY)
async def show_customer(visit: PageRequest) -> Response:
    id = visit.request.path_params["id"]
    customer = (await visit.ask("GET", f"/customers/{id}"))["data"]
    orders = await visit.ask("GET", "/orders", {"customerId": id, "limit": "10"})
    wallet = (await visit.ask("GET", f"/loyalty/customers/{id}/wallet"))["data"]
    timeline = await visit.ask("GET", f"/loyalty/customers/{id}/timeline", {"limit": "20"})
    return visit.show(
        "customer.html",
        customer=customer,
        orders=orders["data"],
        wallet=wallet,
        timeline=timeline["data"],
        once=token_hex(16),
        given={name: visit.given(name) for name in ("points", "reason", "direction")},
    )


@console.post("/{environment}/customers/{id}/points", roles=EVERYBODY, shown_by=show_customer)
async def change_points(visit: PageRequest) -> Response:
    await adjust_points(visit)
    return go_to(visit.path(f"/customers/{visit.request.path_params['id']}"))


@console.get("/{environment}/orders", roles=EVERYBODY)
async def list_orders(visit: PageRequest) -> Response:
    shown = await read_list(visit, "/orders", "status", "fulfillmentStatus", "financialStatus", "customerId")
    return visit.show("orders.html", choices=CHANGES, **shown)


@console.get("/{environment}/orders/{id}", roles=EVERYBODY)
async def show_order(visit: PageRequest) -> Response:
    order = (await visit.ask("GET", f"/orders/{visit.request.path_params['id']}"))["data"]
    shipments = await visit.ask("GET", "/shipping/shipments", {"orderId": order["id"], "limit": "10"})
    return visit.show("order.html", order=order, choices=CHANGES, shipments=shipments["data"])


@console.post("/{environment}/orders/{id}", roles=EVERYBODY, shown_by=show_order)
async def change_order(visit: PageRequest) -> Response:
    id = visit.request.path_params["id"]
    body = {name: value for name in CHANGES if (value := visit.given(name))}
    await visit.ask("PUT", f"/orders/{id}", body=body)
    return go_to(visit.path(f"/orders/{id}"))


@console.get("/{environment}/products", roles=EVERYBODY)
async def list_products(visit: PageRequest) -> Response:
    return visit.show("products.html", statuses=PRODUCT_STATUSES, **await read_list(visit, "/products", "status"))


@console.get("/{environment}/products/{id}", roles=EVERYBODY)
async def show_product(visit: PageRequest) -> Response:
    product = (await visit.ask("GET", f"/products/{visit.request.path_params['id']}"))["data"]
    return visit.show("product.html", product=product)
