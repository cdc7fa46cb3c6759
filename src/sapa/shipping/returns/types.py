"""Returns: what a return shipment is made from, and what can go wrong."""

from datetime import datetime
from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from sapa.http.errors import Conflict
from sapa.shipping.providers import Provider
from sapa.shipping.types import PackageHandover, PackageIn, PartyIn, PickupCity, ServiceType, Short
from sapa.values.money import Amount


class ReturnIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """How the parcel comes back. What is absent is as it was sent, with sender and receiver swapped."""

    provider: Annotated[Provider, Meta(examples=[None])] | None = None
    service_type: ServiceType | None | UnsetType = UNSET
    service_name: Short | None | UnsetType = UNSET
    service_code: Short | None | UnsetType = UNSET
    fee: Annotated[Amount, Meta(description="Of the return; none unless you send it.")] | None = None
    package_handover: PackageHandover | None = None
    pickup_schedule: Annotated[datetime, Meta(examples=[None])] | None = None
    pickup_city: PickupCity | None | UnsetType = UNSET
    sender: Annotated[
        PartyIn | None, Meta(examples=[None], description="Changes to the customer's name and address.")
    ] = None
    delivery: Annotated[PartyIn | None, Meta(examples=[None], description="Changes to where it comes back to.")] = None
    package: Annotated[
        PackageIn | None, Meta(examples=[None], description="What comes back, if it is not all of it.")
    ] = None
    insurance: bool = False
    refund_id: (
        Annotated[str, Meta(max_length=100, examples=[None], description="A refund of the shipment's order.")] | None
    ) = None
    auto_book: Annotated[bool, Meta(description="Whether to request the pickup at once.")] = False


class NotReturnable(Conflict):
    """Only a delivered shipment can be returned."""

    code = "NOT_RETURNABLE"
    fix = "Wait until the shipment is delivered. One that is not on its way yet can be cancelled."


class ReturnExists(Conflict):
    """A return of this shipment is under way."""

    code = "RETURN_EXISTS"
    fix = "Get the shipment to find the return, and follow or cancel that one."
