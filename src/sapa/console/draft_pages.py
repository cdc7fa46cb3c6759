"""Draft orders: prepared, changed, and turned into orders."""

from starlette.responses import Response

from sapa.console.inbox_queue import read_people
from sapa.console.order_pages import DETAILS_SHOWN, MAX_LINES, list_details, list_edited, put_edit
from sapa.console.page_request import PageRequest
from sapa.console.roles import DEVELOPERS, EVERYBODY
from sapa.console.routes import console, go_to
from sapa.console.shown_fields import build_shown

STATUSES = ("open", "completed")


@console.get("/{environment}/draft-orders", roles=EVERYBODY)
async def list_drafts(page: PageRequest) -> Response:
    params = page.request.query_params
    query = {"status": params.get("status", ""), "page": params.get("page", "")}
    found = await page.call("GET", "/draft-orders", query | {"limit": "25"})
    names = await read_people(page, found["data"])
    return page.show(
        "draft_orders.html", items=found["data"], meta=found["meta"], query=query, statuses=STATUSES, names=names
    )


@console.get("/{environment}/draft-orders/{id}", roles=EVERYBODY)
async def show_draft(page: PageRequest) -> Response:
    draft = (await page.call("GET", f"/draft-orders/{page.request.path_params['id']}"))["data"]
    names = await read_people(page, [draft])
    return page.show(
        "draft_order.html",
        draft=draft,
        error_currency=draft["currency"],
        max_lines=MAX_LINES,
        names=names,
        shown=build_shown(page, list_edited(page, draft)),
        details_shown=build_shown(page, list_details(draft), DETAILS_SHOWN),
    )


@console.post("/{environment}/draft-orders/{id}", roles=EVERYBODY, shown_by=show_draft, says="Draft saved")
async def change_draft(page: PageRequest) -> Response:
    id = page.request.path_params["id"]
    draft = (await page.call("GET", f"/draft-orders/{id}"))["data"]
    await put_edit(page, f"/draft-orders/{id}", draft)
    return go_to(page.path(f"/draft-orders/{id}"))


@console.post("/{environment}/draft-orders/{id}/complete", roles=EVERYBODY, shown_by=show_draft, says="Order created")
async def complete_draft(page: PageRequest) -> Response:
    id = page.request.path_params["id"]
    order = await page.call("POST", f"/draft-orders/{id}/complete", body={})
    return go_to(page.path(f"/orders/{order['data']['id']}"))


@console.post("/{environment}/draft-orders/{id}/delete", roles=DEVELOPERS, shown_by=show_draft, says="Draft deleted")
async def delete_draft(page: PageRequest) -> Response:
    await page.call("DELETE", f"/draft-orders/{page.request.path_params['id']}")
    return go_to(page.path("/draft-orders"))
