"""Store locations: where parcels are picked up."""

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from sapa.db.listing import Listing
from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql
from sapa.events import emit_all
from sapa.http.errors import Invalid, NotFound
from sapa.http.responses import StoredJson, Timestamp
from sapa.shipping.shipments import queries as shipments
from sapa.shipping.shipments.document import (
    NOBODY,
    check_spot,
    encode_spot,
    parse_number,
)
from sapa.shipping.types import (
    LOCATION_ID,
    AddressText,
    AreaId,
    EmailText,
    LocationId,
    Party,
    PartyNotes,
    Person,
    PhoneText,
    ShipmentUpdated,
    Short,
    Spot,
    Zip,
)
from sapa.values.company import Company

COUNTER = "store_locations"
LEFT_AT_ONCE = 1_000

StoreName = Annotated[str, Meta(min_length=1, max_length=200, examples=["Gudang Senayan"])]


class StoreLocation(Struct, frozen=True, rename="camel"):
    """A place where parcels are picked up."""

    id: LocationId
    name: Annotated[str, Meta(examples=["Gudang Senayan"])]
    contact_name: Annotated[str | None, Meta(examples=["Budi Santoso"])]
    phone: Annotated[str | None, Meta(examples=["+6281234567890"])]
    email: str | None
    address: Annotated[str, Meta(examples=["Jl. Asia Afrika 8, Senayan"])]
    notes: str | None
    city: str | None
    province: str | None
    country: str | None
    zip: str | None
    kecamatan: str | None
    kelurahan: str | None
    kecamatan_id: int | None
    kelurahan_id: int | None
    coordinates: Annotated[Raw | None, StoredJson(Spot | None)]
    is_default: bool
    created_at: Timestamp
    updated_at: Timestamp


class StoreLocationPatch(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Changes to a store location: what is absent stays as it is, null clears."""

    name: StoreName | UnsetType = UNSET
    contact_name: Person | None | UnsetType = UNSET
    phone: PhoneText | None | UnsetType = UNSET
    email: EmailText | None | UnsetType = UNSET
    address: AddressText | UnsetType = UNSET
    notes: PartyNotes | None | UnsetType = UNSET
    city: Short | None | UnsetType = UNSET
    province: Short | None | UnsetType = UNSET
    country: Short | None | UnsetType = UNSET
    zip: Zip | None | UnsetType = UNSET
    kecamatan: Short | None | UnsetType = UNSET
    kelurahan: Short | None | UnsetType = UNSET
    kecamatan_id: AreaId | None | UnsetType = UNSET
    kelurahan_id: AreaId | None | UnsetType = UNSET
    coordinates: Spot | None | UnsetType = UNSET
    is_default: (
        Annotated[bool, Meta(description="Whether shipments without a sender of their own start here.")] | UnsetType
    ) = UNSET


class StoreLocationIn(StoreLocationPatch, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A new store location."""

    name: StoreName
    address: AddressText


_WRITTEN = [name for name in StoreLocation.__struct_fields__ if name not in {"id", "created_at", "updated_at"}]
_COLUMNS = ", ".join(StoreLocation.__struct_fields__)
_PLACES = range(3, len(_WRITTEN) + 3)
_ASSIGNED = ", ".join(f"{name} = ${place}" for name, place in zip(_WRITTEN, _PLACES, strict=True))

GET = sql(f"SELECT {_COLUMNS} FROM store_locations WHERE company_id = $1 AND id = $2", row=StoreLocation)

LOCK = sql(f"SELECT {_COLUMNS} FROM store_locations WHERE company_id = $1 AND id = $2 FOR UPDATE", row=StoreLocation)

# Whoever names a store in a shipment holds on to it: it is not deleted before the shipment is there to be cleared.
HOLD = sql(f"SELECT {_COLUMNS} FROM store_locations WHERE company_id = $1 AND id = $2 FOR KEY SHARE", row=StoreLocation)

HOLD_DEFAULT = sql(
    f"SELECT {_COLUMNS} FROM store_locations WHERE company_id = $1 AND is_default FOR KEY SHARE", row=StoreLocation
)

INSERT = sql(
    f"""
    WITH counted AS (
        INSERT INTO counter_deltas (company_id, counter, cell, delta) VALUES ($1, 'store_locations', '', 1)
    )
    INSERT INTO store_locations (company_id, id, {", ".join(_WRITTEN)})
    VALUES ($1, $2, {", ".join(f"${place}" for place in _PLACES)})
    RETURNING {_COLUMNS}""",
    row=StoreLocation,
)

UPDATE = sql(
    f"""
    UPDATE store_locations SET {_ASSIGNED}, updated_at = GREATEST(clock_timestamp(), updated_at)
     WHERE company_id = $1 AND id = $2
    RETURNING {_COLUMNS}""",
    row=StoreLocation,
)

# One default for each company: whoever makes one waits for whoever else does.
STEP_BACK = sql(
    """
    UPDATE store_locations SET is_default = false, updated_at = GREATEST(clock_timestamp(), updated_at)
     WHERE company_id = $1 AND is_default AND id <> $2"""
)

TAKE_TURN = sql("SELECT pg_advisory_xact_lock(hashtextextended('store locations of ' || $1::bigint, 0))")

DELETE = sql(
    """
    WITH deleted AS (
        DELETE FROM store_locations WHERE company_id = $1 AND id = $2 RETURNING id
    )
    INSERT INTO counter_deltas (company_id, counter, cell, delta)
    SELECT $1, 'store_locations', '', -1 FROM deleted"""
)

LISTING = Listing("store_locations", row=StoreLocation, counter=COUNTER, filters={}, sorts={"createdAt": "created_at"})


async def get_store(db: Connection, company_id: int, id: str) -> StoreLocation:
    found = await GET.find(db, company_id, id)
    if found is None:
        raise NotFound
    return found


async def list_stores(db: Connection, company_id: int, limit: int, offset: int) -> tuple[list[StoreLocation], int]:
    """One page, newest first, and how many there are in all."""
    return await LISTING.page(db, company_id, {}, "createdAt:desc", limit, offset)


async def find_sender(
    tx: Tx, company: Company, id: str | None | UnsetType, *, or_default: bool
) -> tuple[str, Party] | None:
    """The store that is named, or the default one, with itself as a sender."""
    if isinstance(id, str):
        store = await HOLD.find(tx, company.id, id) if LOCATION_ID.matches(id) else None
        if store is None:
            raise Invalid.field("storeLocationId", "is not the id of a store location")
        return store.id, build_sender(store)
    default = await HOLD_DEFAULT.find(tx, company.id) if or_default and id is UNSET else None
    return None if default is None else (default.id, build_sender(default))


def build_sender(store: StoreLocation) -> Party:
    fields = {name: getattr(store, name) for name in Party.__struct_fields__ if name not in {"name", "coordinates"}}
    spot = None if store.coordinates is None else msgspec.json.decode(store.coordinates, type=Spot)
    return msgspec.structs.replace(NOBODY, **fields, name=store.contact_name or store.name, coordinates=spot)


async def create(tx: Tx, company: Company, given: StoreLocationIn) -> StoreLocation:
    """The first one is the default, unless it says that it is not."""
    id = LOCATION_ID.new()
    await TAKE_TURN.run(tx, company.id)
    changes = {**dict.fromkeys(_WRITTEN), **_changes(company, given)}
    if given.is_default is UNSET:
        changes["is_default"] = not (await list_stores(tx, company.id, 1, 0))[1]
    if changes["is_default"]:
        await STEP_BACK.run(tx, company.id, id)
    return _made(await INSERT.find(tx, company.id, id, *(changes[name] for name in _WRITTEN)))


async def update(tx: Tx, company: Company, id: str, patch: StoreLocationPatch) -> StoreLocation:
    """Shipments keep the sender that they were made with."""
    await TAKE_TURN.run(tx, company.id)
    now = await LOCK.find(tx, company.id, id)
    if now is None:
        raise NotFound
    after = msgspec.structs.replace(now, **_changes(company, patch))
    if after == now:
        return now
    if after.is_default:
        await STEP_BACK.run(tx, company.id, id)
    return _made(await UPDATE.find(tx, company.id, id, *(getattr(after, name) for name in _WRITTEN)))


async def delete(tx: Tx, company: Company, id: str) -> None:
    """For good. Shipments that named it name it no longer, and keep their sender."""
    await LOCK.find(tx, company.id, id)
    if not await DELETE.run(tx, company.id, id):
        raise NotFound
    while left := await shipments.leave_store(tx, company.id, id, LEFT_AT_ONCE):
        await emit_all(tx, company, [ShipmentUpdated(shipment) for shipment in left])


def _changes(company: Company, given: StoreLocationPatch) -> dict[str, object]:
    changes = {name: value for name in given.__struct_fields__ if (value := getattr(given, name)) is not UNSET}
    if changes.get("phone") is not None:
        changes["phone"] = parse_number(company, "phone", changes["phone"])
    if changes.get("coordinates") is not None:
        check_spot("coordinates", changes["coordinates"])
        changes["coordinates"] = encode_spot(changes["coordinates"])
    return changes


def _made(store: StoreLocation | None) -> StoreLocation:
    if store is None:
        raise NotFound
    return store
