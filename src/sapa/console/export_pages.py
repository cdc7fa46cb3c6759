"""Exporting whole lists."""

from contextlib import AsyncExitStack

from starlette.responses import Response

from sapa.access import actions as access
from sapa.console.page_request import PageRequest
from sapa.console.rendering import HEADERS
from sapa.console.roles import DEVELOPERS
from sapa.console.routes import console
from sapa.exports import actions as exports
from sapa.http.downloads import Download
from sapa.http.errors import NotFound

RESOURCES = ("customers", "products", "orders")
MEDIA_TYPES = {"csv": "text/csv", "ndjson": "application/x-ndjson"}


@console.get("/{environment}/exports/{file}", roles=DEVELOPERS)
async def export(page: PageRequest) -> Response:
    resource, _, format = page.request.path_params["file"].partition(".")
    if resource not in RESOURCES or format not in MEDIA_TYPES:
        raise NotFound
    async with page.context.database.connection() as db:
        company = await access.get_company(db, page.company_id)
    resources = AsyncExitStack()
    opening = exports.open_snapshot(page.context.long_reads.stream(company.id), company, resource)
    snapshot = await resources.enter_async_context(opening)
    headers = HEADERS | {"content-disposition": f'attachment; filename="{resource}.{format}"'}
    return Download(exports.write(snapshot, format), headers, MEDIA_TYPES[format], resources)
