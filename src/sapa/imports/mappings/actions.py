"""How saved mappings change."""

from collections.abc import Collection

import msgspec

from sapa.db.pool import Connection, Tx
from sapa.http.errors import Invalid
from sapa.imports.mappings import queries
from sapa.imports.mappings.types import MAPPING_ID, ImportMapping, SavedMapping, SavedMappingIn
from sapa.imports.sources.spreadsheet_fields import check_mapping
from sapa.imports.tables.types import normalise_header
from sapa.imports.types import Resource, UnusableFile
from sapa.values.company import Company
from sapa.values.json import encode

MAX_COMPARED = 100

_read_mapping = msgspec.json.Decoder(ImportMapping).decode


async def save(tx: Tx, company: Company, body: SavedMappingIn) -> SavedMapping:
    """Raises Invalid unless the mapping has the fields that the resource needs."""
    _check(body)
    mapping = encode(body.mapping)
    return await queries.insert_mapping(tx, company.id, MAPPING_ID.new(), body.resource, body.name, mapping)


async def update(tx: Tx, company: Company, id: str, body: SavedMappingIn) -> SavedMapping:
    _check(body)
    return await queries.update_mapping(tx, company.id, id, body.resource, body.name, encode(body.mapping))


async def delete(tx: Tx, company: Company, id: str) -> None:
    await queries.delete_mapping(tx, company.id, id)


async def get_for(db: Connection, company: Company, id: str, resource: Resource) -> ImportMapping:
    """The mapping with this id; raises Invalid if it is for another resource."""
    saved = await queries.get_mapping(db, company.id, id)
    if saved.resource != resource:
        raise Invalid.field("mapping", f"is for {saved.resource}; choose one for {resource}")
    return _read_mapping(saved.mapping)


async def find_for_columns(
    db: Connection, company: Company, resource: Resource, names: Collection[str]
) -> ImportMapping | None:
    """The newest saved mapping for a file with exactly these columns."""
    saved, _ = await queries.list_mappings(db, company.id, {"resources": [resource]}, MAX_COMPARED, 0)
    columns = {normalise_header(name) for name in names}
    for one in saved:
        mapping = _read_mapping(one.mapping)
        if {normalise_header(name) for name in mapping.columns} == columns:
            return mapping
    return None


def _check(body: SavedMappingIn) -> None:
    try:
        check_mapping(body.resource, body.mapping, list(body.mapping.columns))
    except UnusableFile as error:
        raise Invalid.field("mapping.columns", error.message) from None
