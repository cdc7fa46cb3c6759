"""How store locations change, and which one a shipment starts at."""

from functools import partial

import msgspec
from msgspec import UNSET, UnsetType

from sapa.db.pool import Database, Tx
from sapa.http.errors import Invalid, NotFound
from sapa.shipping.shipments import actions as shipments
from sapa.shipping.shipments.validation import check_spot, encode_spot, parse_phone_field
from sapa.shipping.stores import queries
from sapa.shipping.stores.types import StoreLocation, StoreLocationIn, StoreLocationPatch
from sapa.shipping.types import LOCATION_ID, NO_PARTY, Party, Spot
from sapa.values.company import Company


async def find_sender(
    tx: Tx, company: Company, id: str | None | UnsetType, *, or_default: bool
) -> tuple[str, Party] | None:
    """The named store, or the default one, and the sender built from it."""
    if isinstance(id, str):
        store = await queries.find_locked_store(tx, company.id, id) if LOCATION_ID.matches(id) else None
        if store is None:
            raise Invalid.field("storeLocationId", "is not the id of a store location")
        return store.id, build_sender(store)
    default = await queries.find_locked_default(tx, company.id) if or_default and id is UNSET else None
    return None if default is None else (default.id, build_sender(default))


async def lock_named(tx: Tx, company: Company, id: str | None | UnsetType) -> None:
    """Keeps a store that a shipment is to get, if there is one. Call it before locking the shipment: the deletion of a
    store locks the store, then its shipments."""
    if isinstance(id, str) and LOCATION_ID.matches(id):
        await queries.find_locked_store(tx, company.id, id)


def build_sender(store: StoreLocation) -> Party:
    fields = {name: getattr(store, name) for name in Party.__struct_fields__ if name not in {"name", "coordinates"}}
    spot = None if store.coordinates is None else msgspec.json.decode(store.coordinates, type=Spot)
    return msgspec.structs.replace(NO_PARTY, **fields, name=store.contact_name or store.name, coordinates=spot)


async def create(tx: Tx, company: Company, body: StoreLocationIn) -> StoreLocation:
    """The first store is the default unless the body says otherwise."""
    id = LOCATION_ID.new()
    await queries.lock_changes(tx, company.id)
    fields = {**dict.fromkeys(queries.WRITTEN.names), **_build_changes(company, body)}
    if body.is_default is UNSET:
        fields["is_default"] = not (await queries.list_stores(tx, company.id, 1, 0))[1]
    if fields["is_default"]:
        await queries.clear_default(tx, company.id, id)
    return await queries.insert_store(tx, company.id, id, fields)


async def update(tx: Tx, company: Company, id: str, patch: StoreLocationPatch) -> StoreLocation:
    """Existing shipments keep their sender."""
    await queries.lock_changes(tx, company.id)
    stored = await queries.lock_store(tx, company.id, id)
    changed = msgspec.structs.replace(stored, **_build_changes(company, patch))
    if changed == stored:
        return stored
    if changed.is_default:
        await queries.clear_default(tx, company.id, id)
    return await queries.update_store(tx, company.id, changed)


async def detach_shipments(database: Database, company: Company, id: str) -> None:
    """Ahead of `delete`: the store may have many shipments."""
    detach = partial(shipments.detach_store, company=company, store_id=id)
    await database.transact_in_batches(detach, shipments.DETACH_BATCH)


async def delete(tx: Tx, company: Company, id: str) -> None:
    """Shipments of the store keep their sender."""
    await queries.lock_store(tx, company.id, id)
    if not await queries.delete_store(tx, company.id, id):
        raise NotFound
    while await shipments.detach_store(tx, company, id):
        pass


def _build_changes(company: Company, patch: StoreLocationPatch) -> dict[str, object]:
    changes = {name: value for name in patch.__struct_fields__ if (value := getattr(patch, name)) is not UNSET}
    if changes.get("phone") is not None:
        changes["phone"] = parse_phone_field(company, "phone", changes["phone"])
    if changes.get("coordinates") is not None:
        check_spot("coordinates", changes["coordinates"])
        changes["coordinates"] = encode_spot(changes["coordinates"])
    return changes
