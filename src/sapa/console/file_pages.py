"""Importing CSV and NDJSON files, and exporting whole lists."""

import csv
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from io import StringIO
from typing import Any

from starlette.datastructures import UploadFile
from starlette.responses import Response

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
from sapa.http.downloads import Download
from sapa.http.errors import Invalid, NotFound, PayloadTooLarge
from sapa.values.spreadsheet_cells import escape_formula

RESOURCES = ("customers", "products", "orders")
MEDIA_TYPES = {"csv": "text/csv", "ndjson": "application/x-ndjson"}


@console.get("/{environment}/imports", roles=DEVELOPERS)
async def list_imports(page: PageRequest) -> Response:
    found = await page.call("GET", "/imports", {"limit": "20"})
    return page.show("imports.html", imports=found["data"], resources=RESOURCES, chosen=page.form_value("resource"))


@console.post("/{environment}/imports", roles=DEVELOPERS, shown_by=list_imports, has_file=True)
async def upload(page: PageRequest) -> Response:
    file = page.form.get("file")
    if not isinstance(file, UploadFile) or not file.filename:
        raise Invalid.field("file", "choose a file")
    ending = file.filename.rpartition(".")[2].lower()
    if ending not in MEDIA_TYPES:
        raise Invalid.field("file", "must be a .csv or .ndjson file")
    if (file.size or 0) > MOST_UPLOADED:
        raise PayloadTooLarge(f"The file is larger than {MOST_UPLOADED // 1_048_576} MiB.")
    query = {"resource": page.form_value("resource"), "dryRun": "true" if page.form_value("dry_run") else "false"}
    made = await page.call("POST", "/imports", query, upload=(MEDIA_TYPES[ending], await file.read()))
    return go_to(page.path(f"/imports/{made['data']['id']}"))


@console.get("/{environment}/imports/{id}", roles=DEVELOPERS)
async def show_import(page: PageRequest) -> Response:
    id = page.request.path_params["id"]
    job = (await page.call("GET", f"/imports/{id}"))["data"]
    problems = await page.call("GET", f"/imports/{id}/errors", {"limit": "50"})
    return page.show("import.html", job=job, problems=problems["data"], total=problems["meta"]["total"])


@console.get("/{environment}/imports/{id}/errors.csv", roles=DEVELOPERS)
async def download_errors(page: PageRequest) -> Response:
    """Every failed line with its reason, to be fixed and imported again."""
    id = page.request.path_params["id"]
    await page.call("GET", f"/imports/{id}")

    async def stream() -> AsyncGenerator[bytes, None]:
        yield b"line,field,reason\r\n"
        batch, goes_on = 1, True
        while goes_on:
            found = await page.call("GET", f"/imports/{id}/errors", {"page": str(batch), "limit": "100"})
            yield _build_lines(found["data"])
            batch, goes_on = batch + 1, found["meta"]["hasNextPage"]

    headers = HEADERS | {"content-disposition": f'attachment; filename="{id}-errors.csv"'}
    return Download(stream(), headers, MEDIA_TYPES["csv"])


def _build_lines(problems: list[dict[str, Any]]) -> bytes:
    text = StringIO()
    rows = ([one["line"], escape_formula(one["field"] or ""), escape_formula(one["message"])] for one in problems)
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()


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
