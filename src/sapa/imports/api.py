"""How imports are reached."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from sapa.access.types import Scope
from sapa.http.bodies import Upload
from sapa.http.endpoints import OR, Base, Call, Routes
from sapa.http.errors import InsufficientScope, NotFound
from sapa.http.query_string import PageQuery
from sapa.http.responses import Page, build_page
from sapa.imports import actions, queries
from sapa.imports.types import Format, Import, ImportId, Problem, Resource

routes = Routes(
    "/imports", base=Base.CUSTOMER, tag="Imports", about="Customers, products and orders from CSV and NDJSON files."
)

# Any of them admits a call; which one it needs depends on the resource.
ANY_WRITE = OR.join([Scope.CUSTOMERS_WRITE, Scope.PRODUCTS_WRITE, Scope.ORDERS_WRITE])
ANY_READ = OR.join([Scope.CUSTOMERS_READ, Scope.PRODUCTS_READ, Scope.ORDERS_READ])

RESOURCES: list[Resource] = ["customers", "products", "orders"]
FORMATS: dict[str, Format] = {"text/csv": "csv", "application/x-ndjson": "ndjson"}


class UploadQuery(Struct, frozen=True, kw_only=True, rename="camel"):
    """What the file contains, and whether to check it only."""

    resource: Annotated[Resource, Meta(description="What each record of the file is.")]
    dry_run: Annotated[Literal["true", "false"], Meta(description="Check every record and change nothing.")] = "false"


class ImportsQuery(PageQuery, frozen=True, kw_only=True):
    """Which imports to list."""

    resource: Annotated[Resource, Meta(description="Imports of this resource only.")] | None = None


@routes.post("", scope=ANY_WRITE)
async def upload_import(call: Call, query: UploadQuery, body: Upload) -> Import:
    """Import a file.

    Send CSV or NDJSON of up to 32 MiB. The file is stored, and the worker imports it record by record, with the same
    rules as the API. Get the import to see its progress. The key needs the WRITE scope of the resource.
    """
    _require(call, query.resource, "WRITE")
    is_dry_run = query.dry_run == "true"
    format = FORMATS[body.media_type]
    return await actions.upload(call.db, call.company, query.resource, format, body.content, dry_run=is_dry_run)


@routes.get("", scope=ANY_READ)
async def list_imports(call: Call, query: ImportsQuery) -> Page[Import]:
    """List imports.

    Newest first. Imports are kept for 30 days. Only imports of resources that the key may read are listed.
    """
    readable = [name for name in RESOURCES if f"{name}:READ" in call.key.scopes and query.resource in {None, name}]
    if query.resource is not None:
        _require(call, query.resource, "READ")
    filters = {} if readable == RESOURCES else {"resources": readable}
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
    return build_page(problems, query.page, query.limit, found.failed)


async def _get(call: Call, id: str) -> Import:
    found = await queries.get_import(call.db, call.company.id, id)
    _require(call, found.resource, "READ")
    return found


def _require(call: Call, resource: Resource, action: str) -> None:
    """Which of the declared scopes a call needs depends on its resource."""
    scope = f"{resource}:{action}"
    if scope not in call.key.scopes:
        raise InsufficientScope(f"The API key lacks the scope {scope}.")
