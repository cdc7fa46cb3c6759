"""Exporting whole lists, and what a filter leaves of them."""

import csv
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from io import StringIO
from typing import Any

from starlette.responses import Response

from sapa.access import actions as access
from sapa.console.page_request import PageRequest
from sapa.console.rendering import HEADERS
from sapa.console.roles import DEVELOPERS
from sapa.console.routes import console
from sapa.exports import actions as exports
from sapa.http.downloads import Download
from sapa.http.errors import Invalid, NotFound
from sapa.values.json import encode
from sapa.values.spreadsheet_cells import escape_formula

RESOURCES = ("customers", "products", "orders")
MEDIA_TYPES = {"csv": "text/csv", "ndjson": "application/x-ndjson"}
PAGE = 100
MAX_FILTERED = 10_000
"""Rows of a filtered file; the whole list has no limit."""


@console.get("/{environment}/exports/{file}", roles=DEVELOPERS)
async def export(page: PageRequest) -> Response:
    resource, _, format = page.request.path_params["file"].partition(".")
    if resource not in RESOURCES or format not in MEDIA_TYPES:
        raise NotFound
    headers = HEADERS | {"content-disposition": f'attachment; filename="{resource}.{format}"'}
    resources = AsyncExitStack()
    query = {name: value for name, value in page.request.query_params.items() if value and name != "page"}
    if query.keys() - {"sort"}:
        rows = _write_filtered(page, resource, query, await _read_page(page, resource, query, 1), format)
        return Download(rows, headers, MEDIA_TYPES[format], resources)
    async with page.context.database.connection() as db:
        company = await access.get_company(db, page.company_id)
    opening = exports.open_snapshot(page.context.long_reads.stream(company.id), company, resource)
    snapshot = await resources.enter_async_context(opening)
    return Download(exports.write(snapshot, format), headers, MEDIA_TYPES[format], resources)


async def _read_page(page: PageRequest, resource: str, query: dict[str, str], number: int) -> Any:
    found = await page.call("GET", f"/{resource}", query | {"limit": str(PAGE), "page": str(number)})
    if found["meta"]["total"] > MAX_FILTERED:
        raise Invalid("A filtered export has at most 10,000 rows. Narrow the filter, or export the whole list.")
    return found


async def _write_filtered(
    page: PageRequest, resource: str, query: dict[str, str], found: Any, format: str
) -> AsyncGenerator[bytes, None]:
    """In the order of the list, with the columns of the whole export."""
    if format == "csv" and found["data"]:
        yield _write_csv([list(found["data"][0])])
    number = 1
    while True:
        rows = found["data"]
        if format == "csv":
            yield _write_csv([[escape_formula(_cell(value)) for value in row.values()] for row in rows])
        else:
            yield b"".join(encode(row) + b"\n" for row in rows)
        if not found["meta"]["hasNextPage"]:
            return
        number += 1
        found = await _read_page(page, resource, query, number)


def _write_csv(lines: list[list[str]]) -> bytes:
    text = StringIO()
    csv.writer(text).writerows(lines)
    return text.getvalue().encode()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return ",".join(value)
    return encode(value).decode() if isinstance(value, dict | list) else str(value)
