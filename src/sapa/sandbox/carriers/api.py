"""How a simulated shipment is advanced, and its carrier's statement read, over HTTP. A live key is refused."""

from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct

from sapa.access.types import Scope
from sapa.http.endpoints import Base, Call, Routes, ToolTraits
from sapa.http.errors import Unauthorized
from sapa.sandbox.carriers.advance import advance
from sapa.sandbox.carriers.environment import SandboxShipping
from sapa.sandbox.carriers.statements import SandboxStatement, get_statement
from sapa.sandbox.types import TestKeyRequired
from sapa.shipping.carriers.registry import CARRIERS
from sapa.shipping.errors import NotBookable, ShipmentNotFound
from sapa.shipping.providers import Provider
from sapa.shipping.shipments import actions as shipments
from sapa.shipping.types import Shipment, ShipmentId

routes = Routes("/shipping", base=Base.CUSTOMER, tag="Shipments", product="CRM", refusal=Unauthorized)


class SandboxStatementQuery(Struct, frozen=True, kw_only=True, rename="camel"):
    """Whose statement."""

    provider: Annotated[Provider, Meta(description="Parcels of this provider's simulated carriers.")]
    delivered_from: Annotated[datetime, Meta(description="Parcels delivered at this instant or later.")] | None = None


class AdvanceIn(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How far to advance the simulated carrier."""

    to: Annotated[str, Meta(max_length=50, description="The state to advance to; the next one if absent.")] | None = (
        None
    )


class CarrierSimulatorAccount(Struct, frozen=True):
    """An account with the simulator of a carrier. A program uses it as it would use an account with the carrier."""

    carrier: Annotated[str, Meta(examples=[next(iter(CARRIERS))])]
    address: Annotated[
        str,
        Meta(
            examples=[f"https://sapa.example.com/sandbox/{next(iter(CARRIERS))}"],
            description="Instead of the carrier's own.",
        ),
    ]
    credentials: Annotated[
        dict[str, str], Meta(examples=[{"api_key": "sbx_1_…"}], description="Valid for the simulator only.")
    ]


@routes.post(
    "/shipments/{id}/sandbox/advance",
    scope=Scope.ORDERS_WRITE,
    status=200,
    raises=[ShipmentNotFound, NotBookable],
    tool=ToolTraits(is_for_tests=True),
)
async def advance_sandbox_shipment(call: Call, id: ShipmentId, body: AdvanceIn = AdvanceIn()) -> Shipment:
    """Advance a simulated shipment.

    For test keys only. The simulated carrier goes to its next state, or to the one in `to`, at once and sends its
    callback. The shipment follows within a second or two.
    """
    shipment = await shipments.get_stored(call.db, call.company.id, id)
    if not call.company.is_test:
        raise NotBookable("Only shipments of a test environment can be advanced.")
    if shipment.adapter is None or shipment.reference is None:
        status = shipment.shipping_status
        raise NotBookable(f"The shipment is {status} and has no booking with a simulated carrier. Book it first.")
    await advance(call.context, call.db, call.company.id, shipment.adapter, shipment.reference, body.to)
    return shipment.shipment


@routes.post(
    "/sandbox/accounts",
    scope=Scope.ORDERS_WRITE,
    status=200,
    raises=[TestKeyRequired],
    tool=ToolTraits(hidden="It returns credentials."),
)
async def open_sandbox_carrier_accounts(call: Call) -> list[CarrierSimulatorAccount]:
    """Open the accounts with the carriers' simulators.

    For test keys only. With an account's address and credentials, a program that was made for the carrier uses the
    simulator instead. Every call returns the same credentials. The simulator's callbacks go to Sapa only.
    """
    if not call.company.is_test:
        raise TestKeyRequired
    base, environment = call.context.settings.server.address, SandboxShipping()
    return [
        CarrierSimulatorAccount(
            carrier=carrier.name,
            address=f"{base}/sandbox/{carrier.name}",
            credentials=environment.build_credentials(call.context, call.company.id, carrier),
        )
        for carrier in CARRIERS.values()
    ]


@routes.get(
    "/sandbox/cod-statement", scope=Scope.ORDERS_READ, raises=[TestKeyRequired], tool=ToolTraits(is_for_tests=True)
)
async def get_sandbox_cod_statement(call: Call, query: SandboxStatementQuery) -> SandboxStatement:
    """Get the cash-on-delivery statement of a simulated carrier.

    For test keys only. It has every delivered parcel that collected cash and is not paid out yet, as the carrier
    computes it. Send it to `POST /shipping/settlements` to reconcile it; change an amount to see a difference.
    """
    if not call.company.is_test:
        raise TestKeyRequired
    return await get_statement(call.db, call.company.id, query.provider, query.delivered_from)
