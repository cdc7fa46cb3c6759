"""GoSend, Gojek's couriers on motorcycles. See README.md for what was verified."""

import hmac
from collections.abc import Mapping, Sequence

import msgspec

from sapa.outbound.client import ProviderResponse
from sapa.shipping.carriers.calls import (
    ASKING,
    QUOTING,
    Request,
    Timeouts,
    ask,
    build_segment,
    is_granted,
    parse,
    read,
    read_booking,
    scrub,
    send_once,
)
from sapa.shipping.carriers.gosend import calls, wire
from sapa.shipping.carriers.gosend.statuses import find_status
from sapa.shipping.carriers.interface import (
    BadCredentials,
    Booked,
    BookedShipment,
    BookingNotFound,
    Cancelled,
    CancelPending,
    CancelRefused,
    CannotTell,
    Carrier,
    CarrierAccount,
    CarrierArea,
    CarrierAway,
    CarrierEvent,
    Coordinates,
    Deduction,
    Level,
    Quote,
    QuoteNote,
    Rejected,
    ShipmentRequest,
    TrackingResult,
)
from sapa.shipping.carriers.reading import Unreadable, decode
from sapa.values.provider_accounts import AccountField, BadSignature

_MONAS, _SENAYAN = Coordinates(-6.1754, 106.8272), Coordinates(-6.2188, 106.8019)


class GoSend:
    name = calls.NAME
    provider = "instant_carrier"
    label = "GoSend"
    address = wire.PRODUCTION
    fields: Sequence[AccountField] = (
        AccountField("client_id", "Client-ID", is_secret=False),
        AccountField("pass_key", "Pass-Key"),
        AccountField("callback_token", "token that its callbacks carry in Authorization", is_required=False),
    )
    levels: Sequence[Level] = ()
    service_types: Sequence[str] = tuple(wire.METHODS)
    calls_back = True
    finds_by_reference = True
    cod_deductions: Sequence[Deduction] = ()

    async def verify(self, connection: CarrierAccount) -> None:
        """A route that GoSend always serves: if it refuses, the account is at fault."""
        response = await self._ask(connection, calls.build_price(_MONAS, _SENAYAN))
        if not is_granted(response):
            raise BadCredentials(f"GoSend returned no prices for this account: {_reason(connection, response)}")

    async def list_areas(
        self, connection: CarrierAccount, level: Level, parent: str | None, search: str | None
    ) -> Sequence[CarrierArea]:
        """GoSend locates by coordinates and has no areas."""
        return ()

    async def quote(self, connection: CarrierAccount, shipment: ShipmentRequest) -> Quote:
        note, origin, destination = (
            calls.find_note(shipment),
            shipment.origin.coordinates,
            shipment.destination.coordinates,
        )
        if note is not None or origin is None or destination is None:
            return Quote((), (note,) if note else ())
        response = await self._ask(connection, calls.build_price(origin, destination), QUOTING)
        if not is_granted(response):
            return Quote((), (QuoteNote(self.name, "refused", _reason(connection, response)),))
        return calls.parse_prices(read(response, dict[str, msgspec.Raw]), shipment.service)

    async def book(self, connection: CarrierAccount, shipment: ShipmentRequest, reference: str) -> Booked | Rejected:
        note, method = calls.find_note(shipment), calls.find_method(shipment.service)
        if note is not None:
            return Rejected(note.code.upper(), note.text)
        if method is None:
            return Rejected("SERVICE_NOT_OFFERED", f"serviceName must be {' or '.join(wire.METHODS.values())}")
        request = calls.build_book(shipment, method, reference, connection.company.region)
        response = await send_once(connection, _signed(connection, request))
        if response.status in {401, 403}:
            return Rejected("BAD_CREDENTIALS", "GoSend refuses the Client-ID and Pass-Key")
        if response.status >= 400:
            return Rejected(str(response.status), _reason(connection, response))
        order = read_booking(response, wire.NewOrder)
        return Booked("finding_driver", order_no=order.orderNo, booking_id=str(order.id) if order.id else None)

    async def find(
        self, connection: CarrierAccount, reference: str, service_type: str | None
    ) -> Booked | BookingNotFound | CannotTell:
        """Its search by reference sometimes fails: only a plain 404 means that there is no booking."""
        try:
            response = await self._ask(connection, Request("GET", wire.BY_REFERENCE + reference))
            if response.status == 404:
                return BookingNotFound()
            if response.status >= 400:
                return CannotTell(_reason(connection, response))
            return calls.parse_found(read(response, wire.Status))
        except (CarrierAway, BadCredentials) as error:
            return CannotTell(str(error))

    async def cancel(
        self, connection: CarrierAccount, shipment: BookedShipment, reason: str
    ) -> Cancelled | CancelPending | CancelRefused:
        """GoSend takes no reason. A refusal may mean that it was cancelled or rejected before."""
        if not shipment.order_no:
            return CancelRefused("GoSend cancels by its order number, which is not assigned yet")
        response = await self._ask(connection, Request("PUT", wire.CANCEL, body={"orderNo": shipment.order_no}))
        if is_granted(response):
            return Cancelled()
        refusal = CancelRefused(_reason(connection, response))
        try:
            word = (await self._track(connection, shipment.order_no)).status
        except CarrierAway:
            return msgspec.structs.replace(refusal, is_sure=False)
        status = find_status(word, shipment.was_picked_up)
        return Cancelled() if status in {"cancelled", "no_driver", "rejected"} else refusal

    async def track(self, connection: CarrierAccount, shipment: BookedShipment) -> TrackingResult:
        if not shipment.order_no:
            return TrackingResult((), was_asked=False)
        return TrackingResult(calls.parse_tracked(await self._track(connection, shipment.order_no), shipment))

    def read_callback(
        self, credentials: Mapping[str, str], headers: Mapping[str, str], body: bytes
    ) -> Sequence[CarrierEvent]:
        expected = credentials.get("callback_token")
        received = headers.get("authorization", "").removeprefix("Bearer ")
        if expected and not hmac.compare_digest(received.encode(), expected.encode()):
            raise BadSignature("the Authorization header is not the token that was agreed on")
        try:
            callback = decode(body, wire.Callback)
        except Unreadable:
            return ()
        return list(calls.parse_callback(callback))

    async def _track(self, connection: CarrierAccount, order_no: str) -> wire.Status:
        response = await self._ask(connection, Request("GET", wire.BY_ORDER_NO + build_segment(order_no)))
        if response.status >= 400:
            raise CarrierAway(_reason(connection, response))
        return read(response, wire.Status)

    async def _ask(self, connection: CarrierAccount, request: Request, timeouts: Timeouts = ASKING) -> ProviderResponse:
        response = await ask(connection, _signed(connection, request), timeouts)
        if response.status in {401, 403}:
            raise BadCredentials("GoSend refuses the Client-ID and Pass-Key")
        return response


def _signed(connection: CarrierAccount, request: Request) -> Request:
    credentials = connection.credentials
    headers = {"Client-ID": credentials.get("client_id", ""), "Pass-Key": credentials.get("pass_key", "")}
    return msgspec.structs.replace(request, headers=headers)


class _Errors(msgspec.Struct, frozen=True):
    errors: list[object] = []


def _reason(connection: CarrierAccount, response: ProviderResponse) -> str:
    """From a header, else from the body."""
    reason = response.headers.get("error-message", "")
    if not reason:
        try:
            reason = "; ".join(_build_reason(error) for error in parse(response, _Errors).errors)
        except Unreadable:
            reason = ""
    return scrub(connection, reason or f"it answered {response.status} without a reason")


def _build_reason(error: object) -> str:
    return str(error.get("message") or error) if isinstance(error, dict) else str(error)


CARRIER: Carrier = GoSend()
