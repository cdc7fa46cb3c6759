"""Exporting whole lists."""

from collections.abc import AsyncIterator

from starlette.responses import Response, StreamingResponse

from sapa.access import actions as access
from sapa.console.rendering import HEADERS
from sapa.console.routes import DEVELOPERS, PageRequest, console
from sapa.exports import actions as exports
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

    async def stream() -> AsyncIterator[bytes]:
        async with exports.open_snapshot(page.context.database, company, resource) as snapshot:
            async for part in exports.write(snapshot, format):
                yield part

    headers = HEADERS | {"content-disposition": f'attachment; filename="{resource}.{format}"'}
    return StreamingResponse(stream(), headers=headers, media_type=MEDIA_TYPES[format])
