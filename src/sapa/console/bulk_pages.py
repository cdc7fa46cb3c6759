"""One action for several rows of a list."""

from collections.abc import Awaitable, Callable
from typing import Any

from starlette.responses import Response

from sapa.console.fields import split_words
from sapa.console.page_request import PageRequest
from sapa.console.roles import EVERYBODY
from sapa.console.routes import console, go_to
from sapa.console.translations import translate
from sapa.http.errors import ApiError, Invalid

MAX_ROWS = 100

ORDER_ACTIONS: dict[str, tuple[dict[str, str], str]] = {
    "paid": ({"financialStatus": "paid"}, "{n} orders marked as paid"),
    "fulfilled": ({"fulfillmentStatus": "fulfilled"}, "{n} orders marked as shipped"),
    "archived": ({"status": "archived"}, "{n} orders archived"),
}
PRODUCT_ACTIONS = {
    "active": "{n} products put on sale",
    "draft": "{n} products made drafts",
    "archived": "{n} products archived",
}
"""With the notice about those that changed."""

Change = Callable[[str], Awaitable[Any]]


@console.post("/{environment}/orders/bulk", roles=EVERYBODY)
async def change_orders(page: PageRequest) -> Response:
    if (action := ORDER_ACTIONS.get(page.form_value("change"))) is None:
        raise Invalid.field("change", "choose what to do")
    body, message = action
    return await _change_all(page, "/orders", lambda row: page.call("PUT", f"/orders/{row}", body=body), message)


@console.post("/{environment}/products/bulk", roles=EVERYBODY)
async def change_products(page: PageRequest) -> Response:
    status = page.form_value("change")
    if status not in PRODUCT_ACTIONS:
        raise Invalid.field("change", "choose what to do")
    return await _change_all(
        page,
        "/products",
        lambda row: page.call("PUT", f"/products/{row}", body={"status": status}),
        PRODUCT_ACTIONS[status],
    )


@console.post("/{environment}/customers/bulk", roles=EVERYBODY)
async def change_customers(page: PageRequest) -> Response:
    """Adds labels to the customers, or removes them."""
    words = split_words(page.form_value("tags"))
    if not words:
        raise Invalid.field("tags", "is required")
    is_removal = page.form_value("change") == "remove"

    async def change(id: str) -> None:
        tags = (await page.call("GET", f"/customers/{id}"))["data"]["tags"]
        others = [tag for tag in tags if tag not in words]
        await page.call("PUT", f"/customers/{id}", body={"tags": others if is_removal else [*others, *words]})

    message = "{n} customers lost the labels" if is_removal else "{n} customers got the labels"
    return await _change_all(page, "/customers", change, message)


async def _change_all(page: PageRequest, list_path: str, change: Change, message: str) -> Response:
    """Each on its own: those that cannot change are counted, and the others change."""
    ids = page.form_values("id")[:MAX_ROWS]
    if not ids:
        raise Invalid.field("id", "choose at least one row")
    refused = 0
    for id in ids:
        try:
            await change(id)
        except ApiError:
            refused += 1
    done = translate(page.language, message, n=len(ids) - refused)
    if refused:
        page.say("{done}, {m} not possible", done=done, m=refused)
    else:
        page.say(done)
    return go_to(page.back_to(list_path))
