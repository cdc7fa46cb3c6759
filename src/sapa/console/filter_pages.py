"""Filters of lists that a person keeps under a name."""

from starlette.responses import Response

from sapa.console.page_request import PageRequest
from sapa.console.roles import EVERYBODY
from sapa.console.routes import console, go_to
from sapa.http.errors import NotFound
from sapa.people.filters import actions as filters
from sapa.people.filters.types import SavedFilter

LISTS = ("customers", "products", "orders", "shipments")


async def list_saved(page: PageRequest, list_name: str) -> list[SavedFilter]:
    async with page.context.database.connection() as db:
        return await filters.list_filters(db, page.company_id, page.session.user_id, list_name)


@console.post("/{environment}/filters/{list}", roles=EVERYBODY, says="Filter saved")
async def save_filter(page: PageRequest) -> Response:
    list_name = _get_list(page)
    name, query = page.form_value("name"), page.form_value("query")
    async with page.context.database.transaction() as tx:
        await filters.save(tx, page.company_id, page.session.user_id, list_name, name, query)
    return go_to(page.path(f"/{list_name}?{query}"))


@console.post("/{environment}/filters/{list}/remove", roles=EVERYBODY, says="Filter removed")
async def remove_filter(page: PageRequest) -> Response:
    list_name = _get_list(page)
    async with page.context.database.transaction() as tx:
        await filters.delete(tx, page.company_id, page.session.user_id, page.form_value("id"))
    return go_to(page.back_to(f"/{list_name}"))


def _get_list(page: PageRequest) -> str:
    name = str(page.request.path_params["list"])
    if name not in LISTS:
        raise NotFound
    return name
