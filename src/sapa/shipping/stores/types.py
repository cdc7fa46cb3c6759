"""Store locations: where parcels are picked up."""

from typing import Annotated

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from sapa.http.responses import StoredJson, Timestamp
from sapa.shipping.types import (
    AddressText,
    AreaId,
    EmailText,
    LocationId,
    PartyNotes,
    Person,
    PhoneText,
    Short,
    Spot,
    Zip,
)

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
