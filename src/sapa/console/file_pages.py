"""Files in and out: a CSV or NDJSON file uploaded and watched, and a whole list downloaded."""

import csv
from collections.abc import AsyncIterator
from io import StringIO
from typing import Any

from starlette.datastructures import UploadFile
from starlette.responses import Response, StreamingResponse

from sapa.access import actions as access
from sapa.console.rendering import HEADERS
from sapa.console.routes import (
    DEVELOPERS,
    PageRequest,
    console,
    go_to,
)
from sapa.exports import actions as exports
from sapa.http.bodies import MOST_UPLOADED
from sapa.http.errors import Invalid, NotFound, PayloadTooLarge
from sapa.values.spreadsheet_cells import escape_formula

RESOURCES = ("customers", "products", "orders")
MEDIA_TYPES = {"csv": "text/csv", "ndjson": "application/x-ndjson"}


@console.get("/{environment}/imports", roles=DEVELOPERS)
async def list_imports(visit: PageRequest) -> Response:
    found = await visit.ask("GET", "/imports", {"limit": "20"})
    return visit.show("imports.html", imports=found["data"], resources=RESOURCES, chosen=visit.given("resource"))


@console.post("/{environment}/imports", roles=DEVELOPERS, shown_by=list_imports)
async def upload(visit: PageRequest) -> Response:
    file = visit.form.get("file")
    if not isinstance(file, UploadFile) or not file.filename:
        raise Invalid.field("file", "choose a file")
    ending = file.filename.rpartition(".")[2].lower()
    if ending not in MEDIA_TYPES:
        raise Invalid.field("file", "must be a .csv or .ndjson file")
    if (file.size or 0) > MOST_UPLOADED:
        raise PayloadTooLarge(f"The file is larger than {MOST_UPLOADED // 1_048_576} MiB.")
    query = {"resource": visit.given("resource"), "dryRun": "true" if visit.given("dry_run") else "false"}
    made = await visit.ask("POST", "/imports", query, upload=(MEDIA_TYPES[ending], await file.read()))
    return go_to(visit.path(f"/imports/{made['data']['id']}"))


@console.get("/{environment}/imports/{id}", roles=DEVELOPERS)
async def show_import(visit: PageRequest) -> Response:
    id = visit.request.path_params["id"]
    job = (await visit.ask("GET", f"/imports/{id}"))["data"]
    problems = await visit.ask("GET", f"/imports/{id}/errors", {"limit": "50"})
    return visit.show("import.html", job=job, problems=problems["data"], total=problems["meta"]["total"])


@console.get("/{environment}/imports/{id}/errors.csv", roles=DEVELOPERS)
async def download_errors(visit: PageRequest) -> Response:
    """Every line that failed and why, to be mended and imported again."""
    id = visit.request.path_params["id"]
    await visit.ask("GET", f"/imports/{id}")

    async def stream() -> AsyncIterator[bytes]:
        yield b"line,field,reason\r\n"
        page, goes_on = 1, True
        while goes_on:
            found = await visit.ask("GET", f"/imports/{id}/errors", {"page": str(page), "limit": "100"})
            yield _build_lines(found["data"])
            page, goes_on = page + 1, found["meta"]["hasNextPage"]

    headers = HEADERS | {"content-disposition": f'attachment; filename="{id}-errors.csv"'}
    return StreamingResponse(stream(), headers=headers, media_type=MEDIA_TYPES["csv"])


def _build_lines(problems: list[dict[str, Any]]) -> bytes:
    text = StringIO()
    rows = ([one["line"], escape_formula(one["field"] or ""), escape_formula(one["message"])] for one in problems)
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()


@console.get("/{environment}/exports/{file}", roles=DEVELOPERS)
async def export(visit: PageRequest) -> Response:
    resource, _, format = visit.request.path_params["file"].partition(".")
    if resource not in RESOURCES or format not in MEDIA_TYPES:
        raise NotFound
    async with visit.context.database.connection() as db:
        company = await access.get_company(db, visit.company_id)

    async def stream() -> AsyncIterator[bytes]:
        async with exports.open_snapshot(visit.context.database, company, resource) as snapshot:
            async for part in exports.write(snapshot, format):
                yield part

    headers = HEADERS | {"content-disposition": f'attachment; filename="{resource}.{format}"'}
    return StreamingResponse(stream(), headers=headers, media_type=MEDIA_TYPES[format])
