"""How imports are reached."""

from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from sapa.http.bodies import XLSX, Upload
from sapa.http.endpoints import Base, Call, Routes, ToolTraits
from sapa.http.errors import Invalid, NotFound
from sapa.http.outbound_call import OutboundCall
from sapa.http.query_string import PageQuery
from sapa.http.responses import Page, build_page
from sapa.imports import actions, queries
from sapa.imports.conversion import ImportPreview
from sapa.imports.mappings import actions as mappings
from sapa.imports.mappings.types import ImportMapping
from sapa.imports.readings import ReadingOptions
from sapa.imports.scopes import ANY_READ, ANY_WRITE, list_readable, require_key_scope, require_scope
from sapa.imports.sources.spreadsheet_fields import find_column
from sapa.imports.types import Format, Import, ImportId, ImportStarted, Problem, Resource, SourceName

routes = Routes(
    "/imports", base=Base.CUSTOMER, tag="Imports", about="Customers, products and orders from CSV and NDJSON files."
)

FORMATS: dict[str, Format] = {
    "text/csv": "csv",
    "application/x-ndjson": "ndjson",
    XLSX: "xlsx",
}

Flag = Literal["true", "false"]
Source = Annotated[
    SourceName,
    Meta(
        examples=["shopify"],
        description="The system that exported the file: shopify, woocommerce, tokopedia, tiktok, shopee, medusa, or"
        " spreadsheet for any other table.",
    ),
]
ZoneName = Annotated[
    str,
    Meta(
        max_length=60,
        examples=["Asia/Makassar"],
        description="The time zone of times without an offset. Defaults to the company's.",
    ),
]


class UploadQuery(Struct, frozen=True, kw_only=True, rename="camel"):
    """What the file contains, and whether to check it only."""

    resource: Annotated[Resource, Meta(description="What each record of the file is.")]
    dry_run: Annotated[Flag, Meta(description="Check every record and change nothing.")] = "false"
    source: Source | None = None
    mapping: (
        Annotated[str, Meta(max_length=100, description="The id of a saved mapping, for the source spreadsheet.")]
        | None
    ) = None
    keep_columns: Annotated[Flag, Meta(description="Keep unknown columns as the customer's additionalData.")] = "false"
    time_zone: ZoneName | None = None
    effects: (
        Annotated[
            Flag,
            Meta(
                description="Whether records earn points, take stock and emit events. Defaults to false with a source"
                " or a mapping, otherwise to true."
            ),
        ]
        | None
    ) = None
    start: Annotated[
        Flag,
        Meta(
            description="false: store the file as a draft, to preview and start it. Its start says how it is read; the"
            " upload says only the resource and dryRun."
        ),
    ] = "true"


class ImportStartIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """How to read an uploaded file. Without a source, it has the API's own field names."""

    source: Source | None = None
    mapping: Annotated[ImportMapping | None, Meta(examples=[None], description="For the source spreadsheet.")] = None
    keep_columns: bool = False
    time_zone: ZoneName | None = None
    effects: Annotated[bool, Meta(description="Defaults to false with a source or a mapping.")] | None = None
    dry_run: (
        Annotated[bool, Meta(description="Check every record and change nothing. Defaults to what the upload said.")]
        | None
    ) = None

    @property
    def options(self) -> ReadingOptions:
        return ReadingOptions(
            source=self.source,
            mapping=self.mapping,
            keep_columns=self.keep_columns,
            time_zone=self.time_zone,
            effects=self.effects,
        )


class ImportsQuery(PageQuery, frozen=True, kw_only=True):
    """Which imports to list."""

    resource: Annotated[Resource, Meta(description="Imports of this resource only.")] | None = None


@routes.post(
    "",
    scope=ANY_WRITE,
    raises=[NotFound],
    tool=ToolTraits(hidden="It takes a file, which a tool call cannot carry."),
)
async def create_import(call: Call, query: UploadQuery, body: Upload) -> Import:
    """Import a file.

    Send CSV, NDJSON or .xlsx of up to 32 MiB. The file is stored, and the worker imports it record by record, with the
    same rules as the API. Get the import to see its progress. With a source, the file is an export of another system;
    it brings in history, which earns no points, takes no stock and emits no events unless you set effects. The key
    needs the WRITE scope of the resource.
    """
    require_scope(call, query.resource, "WRITE")
    _refuse_early_options(query)
    mapping = query.mapping and await mappings.get_for(call.db, call.company, query.mapping, query.resource)
    options = ReadingOptions(
        source=query.source,
        mapping=mapping or None,
        keep_columns=query.keep_columns == "true",
        time_zone=query.time_zone,
        effects=None if query.effects is None else query.effects == "true",
    )
    return await actions.upload(
        call.db,
        call.company,
        query.resource,
        FORMATS[body.media_type],
        body.content,
        dry_run=query.dry_run == "true",
        options=options,
        starts=query.start == "true",
    )


@routes.get("", scope=ANY_READ)
async def list_imports(call: Call, query: ImportsQuery) -> Page[Import]:
    """List imports.

    Newest first. Imports are kept for 30 days. Only imports of resources that the key may read are listed.
    """
    filters = list_readable(call, query.resource)
    imports, total = await queries.list_imports(call.db, call.company.id, filters, query.limit, query.offset)
    return build_page(imports, query.page, query.limit, total)


@routes.get("/{id}", scope=ANY_READ, raises=[NotFound])
async def get_import(call: Call, id: ImportId) -> Import:
    """Get one import and its progress."""
    return await _get(call, id)


@routes.get("/{id}/errors", scope=ANY_READ, raises=[NotFound])
async def list_import_errors(call: Call, id: ImportId, query: PageQuery) -> Page[Problem]:
    """List the failed lines of an import, in the order of the file."""
    found = await _get(call, id)
    problems = await queries.list_problems(call.db, call.company.id, id, query.limit, query.offset)
    if problems and (mapping := await queries.find_mapping(call.db, call.company.id, id)):
        problems = [replace(problem, column=find_column(mapping, problem.field)) for problem in problems]
    return build_page(problems, query.page, query.limit, found.failed)


@routes.post(
    "/{id}/preview",
    scope=ANY_WRITE,
    status=200,
    raises=[NotFound, ImportStarted],
    tool=ToolTraits(is_destructive=False),
)
async def preview_import(call: OutboundCall, id: ImportId, body: ImportStartIn = ImportStartIn()) -> ImportPreview:
    """Preview an uploaded file.

    Shows what the file is, which column would become which field, and its first ten records as they would be imported.
    Without a source the file is recognised by its header. A spreadsheet gets a proposed mapping, or the saved one for
    the same columns. Changes nothing.
    """
    with NamedTemporaryFile() as file:
        async with call.context.database.connection() as db:
            draft = await queries.get_import(db, call.company.id, id)
            require_key_scope(call.key, draft.resource, "WRITE")
            if draft.status != "draft":
                raise ImportStarted
            file.write(await actions.get_upload(db, call.company, id))
        file.flush()
        path, company = Path(file.name), call.company
        preview = await actions.preview(path, company, draft.resource, draft.format, body.options)
        if preview.mapping is None or body.mapping is not None:
            return preview
        async with call.context.database.connection() as db:
            names = [column.name for column in preview.columns]
            saved = await mappings.find_for_columns(db, company, draft.resource, names)
        if saved is None:
            return preview
        options = msgspec.structs.replace(body.options, mapping=saved)
        return await actions.preview(path, company, draft.resource, draft.format, options)


@routes.post("/{id}/start", scope=ANY_WRITE, status=200, raises=[NotFound, ImportStarted])
async def start_import(call: Call, id: ImportId, body: ImportStartIn = ImportStartIn()) -> Import:
    """Start the import of an uploaded file, read as the body says."""
    found = await queries.get_import(call.db, call.company.id, id)
    require_scope(call, found.resource, "WRITE")
    if found.status != "draft":
        raise ImportStarted
    dry_run = found.dry_run if body.dry_run is None else body.dry_run
    return await actions.start(call.db, call.company, id, body.options, dry_run=dry_run)


def _refuse_early_options(query: UploadQuery) -> None:
    """Those of a draft come with its start."""
    options = {
        "source": query.source,
        "mapping": query.mapping,
        "keepColumns": query.keep_columns == "true",
        "timeZone": query.time_zone,
        "effects": query.effects,
    }
    for name, value in options.items():
        if value and query.start == "false":
            raise Invalid.field(name, "is decided when a draft starts; send it to POST /imports/{id}/start")


async def _get(call: Call, id: str) -> Import:
    found = await queries.get_import(call.db, call.company.id, id)
    require_scope(call, found.resource, "READ")
    return found
