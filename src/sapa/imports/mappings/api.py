"""How saved mappings are reached."""

from typing import Annotated

from msgspec import Meta

from sapa.http.endpoints import Base, Call, Routes
from sapa.http.errors import NotFound
from sapa.http.query_string import PageQuery
from sapa.http.responses import Page, build_page
from sapa.imports.mappings import actions, queries
from sapa.imports.mappings.types import MappingExists, MappingId, SavedMapping, SavedMappingIn
from sapa.imports.scopes import ANY_READ, ANY_WRITE, list_readable, require_scope
from sapa.imports.types import Resource

routes = Routes("/import-mappings", base=Base.CUSTOMER, tag="Imports")


class MappingsQuery(PageQuery, frozen=True, kw_only=True):
    """Which mappings to list."""

    resource: Annotated[Resource, Meta(description="Mappings for this resource only.")] | None = None


@routes.post("", scope=ANY_WRITE, raises=[MappingExists])
async def create_import_mapping(call: Call, body: SavedMappingIn) -> SavedMapping:
    """Save a mapping.

    It says which column of a spreadsheet is which field, and is used by its id when you import a file with these
    columns. The key needs the WRITE scope of the resource.
    """
    require_scope(call, body.resource, "WRITE")
    return await actions.save(call.db, call.company, body)


@routes.get("", scope=ANY_READ)
async def list_import_mappings(call: Call, query: MappingsQuery) -> Page[SavedMapping]:
    """List saved mappings, newest first."""
    filters = list_readable(call, query.resource)
    mappings, total = await queries.list_mappings(call.db, call.company.id, filters, query.limit, query.offset)
    return build_page(mappings, query.page, query.limit, total)


@routes.get("/{id}", scope=ANY_READ, raises=[NotFound])
async def get_import_mapping(call: Call, id: MappingId) -> SavedMapping:
    """Get one saved mapping."""
    found = await queries.get_mapping(call.db, call.company.id, id)
    require_scope(call, found.resource, "READ")
    return found


@routes.put("/{id}", scope=ANY_WRITE, raises=[NotFound, MappingExists])
async def update_import_mapping(call: Call, id: MappingId, body: SavedMappingIn) -> SavedMapping:
    """Replace a saved mapping."""
    found = await queries.get_mapping(call.db, call.company.id, id)
    require_scope(call, found.resource, "WRITE")
    require_scope(call, body.resource, "WRITE")
    return await actions.update(call.db, call.company, id, body)


@routes.delete("/{id}", scope=ANY_WRITE, raises=[NotFound])
async def delete_import_mapping(call: Call, id: MappingId) -> None:
    """Delete a saved mapping. Imports that used it stay as they are."""
    found = await queries.get_mapping(call.db, call.company.id, id)
    require_scope(call, found.resource, "WRITE")
    await actions.delete(call.db, call.company, id)
