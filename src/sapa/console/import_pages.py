"""Importing files: uploading one, mapping the columns of a spreadsheet, and what became of it."""

import csv
from collections.abc import AsyncGenerator
from io import StringIO
from pathlib import PurePath
from typing import Any

from starlette.datastructures import UploadFile
from starlette.responses import Response

from sapa.console.page_request import PageRequest
from sapa.console.rendering import HEADERS
from sapa.console.roles import DEVELOPERS
from sapa.console.routes import console, go_to
from sapa.http.bodies import MAX_UPLOADED, XLSX
from sapa.http.downloads import Download
from sapa.http.errors import Invalid, PayloadTooLarge
from sapa.imports.sources.registry import LABELS
from sapa.imports.sources.spreadsheet import NAME as SPREADSHEET
from sapa.imports.sources.spreadsheet_fields import FIELDS
from sapa.values.spreadsheet_cells import escape_formula

RESOURCES = ("customers", "products", "orders")
MEDIA_TYPES = {"csv": "text/csv", "ndjson": "application/x-ndjson", "xlsx": XLSX}
MAX_MAPPED = 150
"""Columns that the form shows; those after them are not read."""
MAX_SHOWN = 12
"""Values of a previewed record."""


@console.get("/{environment}/imports", roles=DEVELOPERS)
async def list_imports(page: PageRequest) -> Response:
    found = await page.call("GET", "/imports", {"limit": "20"})
    return page.show(
        "imports.html",
        imports=found["data"],
        resources=RESOURCES,
        sources=LABELS,
        chosen=page.form_value("resource"),
        chosen_source=page.form_value("source"),
    )


@console.post("/{environment}/imports", roles=DEVELOPERS, shown_by=list_imports, has_file=True)
async def upload(page: PageRequest) -> Response:
    """A file with our own fields is imported at once; of any other, a preview is shown first."""
    media_type, content = await _read_file(page)
    resource, source = page.form_value("resource"), page.form_value("source")
    query = {"resource": resource, "dryRun": "true" if page.form_value("dry_run") else "false"}
    if media_type != XLSX and not source:
        try:
            started = await page.call("POST", "/imports", query, upload=(media_type, content))
            return go_to(page.path(f"/imports/{started['data']['id']}"))
        except Invalid:
            if media_type != MEDIA_TYPES["csv"]:
                raise
    draft = await page.call("POST", "/imports", query | {"start": "false"}, upload=(media_type, content))
    way_on = f"/imports/{draft['data']['id']}/mapping"
    return go_to(page.path(f"{way_on}?source={source}" if source in LABELS else way_on))


async def _read_file(page: PageRequest) -> tuple[str, bytes]:
    file = page.form.get("file")
    if not isinstance(file, UploadFile) or not file.filename:
        raise Invalid.field("file", "choose a file")
    ending = PurePath(file.filename).suffix.lower().removeprefix(".")
    if ending not in MEDIA_TYPES:
        raise Invalid.field("file", "must be a .csv, .xlsx or .ndjson file")
    if (file.size or 0) > MAX_UPLOADED:
        raise PayloadTooLarge(f"The file is larger than {MAX_UPLOADED // 1_048_576} MiB.")
    return MEDIA_TYPES[ending], await file.read()


@console.get("/{environment}/imports/{id}/mapping", roles=DEVELOPERS)
async def show_mapping(page: PageRequest) -> Response:
    """How the file is read, with its first records; the form changes it."""
    id = page.request.path_params["id"]
    job = (await page.call("GET", f"/imports/{id}"))["data"]
    if job["status"] != "draft":
        return go_to(page.path(f"/imports/{id}"))
    body = _build_body(page)
    if not page.form:
        body["source"] = page.request.query_params.get("source") or None
    preview, error = None, None
    try:
        preview = (await page.call("POST", f"/imports/{id}/preview", body=body))["data"]
    except Invalid as refusal:
        error = refusal.message
    return page.show(
        "import_mapping.html",
        job=job,
        preview=preview,
        refusal=error or (preview and preview["error"]),
        records=_list_records(preview),
        mapped=_list_mapped(preview),
        hidden_columns=max(0, len(preview["columns"]) - MAX_MAPPED) if preview else 0,
        sources=LABELS,
        fields=[field.name for field in FIELDS[job["resource"]]],
        chosen=body,
        has_effects=bool(page.form_value("effects")) if page.form else preview is not None and not preview["source"],
        is_check=bool(page.form_value("dry_run")) if page.form else job["dryRun"],
        is_spreadsheet=preview is not None and preview["source"] == SPREADSHEET,
    )


@console.post("/{environment}/imports/{id}/mapping", roles=DEVELOPERS, shown_by=show_mapping, says="Saved")
async def change_mapping(page: PageRequest) -> Response:
    id = page.request.path_params["id"]
    if page.form_value("action") != "start":
        return await show_mapping(page)
    body = _build_body(page)
    if (name := page.form_value("name")) and body["mapping"]:
        job = (await page.call("GET", f"/imports/{id}"))["data"]
        saved = {"resource": job["resource"], "name": name, "mapping": body["mapping"]}
        await page.call("POST", "/import-mappings", body=saved)
    start = body | {"effects": bool(page.form_value("effects")), "dryRun": bool(page.form_value("dry_run"))}
    await page.call("POST", f"/imports/{id}/start", body=start)
    return go_to(page.path(f"/imports/{id}"))


def _build_body(page: PageRequest) -> dict[str, Any]:
    """The form as the API's body. The columns are sent only for a spreadsheet that was shown before."""
    source = page.form_value("source") or None
    names, fields = page.form_values("column"), page.form_values("field")
    mapping = None
    if source == SPREADSHEET and names and page.form_value("shown_source") == SPREADSHEET:
        mapping = {
            "columns": {name: field or None for name, field in zip(names, fields, strict=False)},
            "keepColumns": bool(page.form_value("keep_columns")),
        }
    return {
        "source": source,
        "mapping": mapping,
        "keepColumns": bool(page.form_value("keep_columns")),
        "timeZone": page.form_value("time_zone") or None,
    }


def _list_mapped(preview: dict[str, Any] | None) -> list[dict[str, Any]]:
    return [] if preview is None else preview["columns"][:MAX_MAPPED]


def _list_records(preview: dict[str, Any] | None) -> list[dict[str, Any]]:
    """Each of the first records as a few pairs of name and value."""
    return [
        {**one, "values": list(_flatten("", one["record"]))[:MAX_SHOWN]} for one in (preview or {}).get("records", [])
    ]


def _flatten(path: str, value: Any) -> list[tuple[str, str]]:
    if isinstance(value, dict):
        return [pair for name, inner in value.items() for pair in _flatten(f"{path}.{name}" if path else name, inner)]
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return [pair for n, inner in enumerate(value, 1) for pair in _flatten(f"{path}.{n}", inner)]
    if isinstance(value, list):
        return [(path, ", ".join(map(str, value)))]
    return [] if value is None else [(path, str(value))]


@console.get("/{environment}/imports/{id}", roles=DEVELOPERS)
async def show_import(page: PageRequest) -> Response:
    id = page.request.path_params["id"]
    job = (await page.call("GET", f"/imports/{id}"))["data"]
    if job["status"] == "draft":
        return go_to(page.path(f"/imports/{id}/mapping"))
    problems = await page.call("GET", f"/imports/{id}/errors", {"limit": "50"})
    return page.show(
        "import.html",
        job=job,
        problems=problems["data"],
        total=problems["meta"]["total"],
        source=LABELS.get(job["source"] or ""),
    )


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
    rows = (
        [one["line"], escape_formula(one["column"] or one["field"]), escape_formula(one["message"])] for one in problems
    )
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()
