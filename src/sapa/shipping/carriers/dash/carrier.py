"""Dash Electric: couriers on electric motorcycles. See README.md for what was verified."""

import hmac
from collections.abc import Mapping, Sequence

import msgspec

from sapa.outbound.client import NotSent, ProviderResponse
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
from sapa.shipping.carriers.dash import calls, tokens, wire
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


class Dash:
    name = calls.NAME
    provider = "ev_courier"
    label = "Dash Electric"
    address = wire.PRODUCTION
    fields: Sequence[AccountField] = (
        AccountField("client_key", "client key", is_secret=False),
        AccountField("client_secret", "client secret"),
        AccountField("callback_token", "token that its callbacks carry in Authorization", is_required=False),
    )
    levels: Sequence[Level] = ("cities",)
    service_types: Sequence[str] = wire.SERVICE_TYPES
    calls_back = True
    finds_by_reference = False
    cod_deductions: Sequence[Deduction] = ()

    async def verify(self, connection: CarrierAccount) -> None:
        """With a new token, because a cached one says nothing about the account now."""
        await tokens.get_token(connection, refresh=True)

    async def list_areas(
        self, connection: CarrierAccount, level: Level, parent: str | None, search: str | None
    ) -> Sequence[CarrierArea]:
        return calls.list_cities(search) if level == "cities" else ()

    async def quote(self, connection: CarrierAccount, shipment: ShipmentRequest) -> Quote:
        note = calls.find_note(shipment)
        if note is not None:
            return Quote((), (note,))
        response = await self._ask(connection, calls.build_quotes(shipment), QUOTING)
        if response.status >= 400:
            return Quote((), (QuoteNote(self.name, "refused", _reason(connection, response)),))
        return calls.parse_quotes(read(response, wire.Quotes), shipment.service)

    async def book(self, connection: CarrierAccount, shipment: ShipmentRequest, reference: str) -> Booked | Rejected:
        note, service_type = calls.find_note(shipment), calls.find_service_type(shipment.service)
        if note is not None:
            return Rejected(note.code.upper(), note.text)
        if service_type is None:
            return Rejected("SERVICE_NOT_OFFERED", "serviceName must be Dash Instant or Dash Same Day")
        try:
            token = await tokens.get_token(connection)
        except CarrierAway as error:
            raise NotSent(f"it issued no token: {error}") from None
        except BadCredentials as error:
            return Rejected("BAD_CREDENTIALS", str(error))
        request = calls.build_book(shipment, service_type, reference, connection.company.region)
        response = await send_once(connection, _signed(request, token))
        if response.status == 401:
            tokens.discard(connection, token)
            raise NotSent("its token has expired; nothing was booked")
        if response.status >= 400:
            return Rejected(str(response.status), _reason(connection, response))
        return calls.parse_booked(read_booking(response, wire.Delivery))

    async def find(
        self, connection: CarrierAccount, reference: str, service_type: str | None
    ) -> Booked | BookingNotFound | CannotTell:
        """Dash has no search by reference; its callbacks carry it."""
        return CannotTell("Dash has no lookup by our reference; its callback settles the booking")

    async def cancel(
        self, connection: CarrierAccount, shipment: BookedShipment, reason: str
    ) -> Cancelled | CancelPending | CancelRefused:
        number = shipment.order_no or shipment.awb
        if not number:
            return CancelRefused("Dash cancels by its delivery number, which is not assigned yet")
        response = await self._ask(connection, calls.build_cancel(number, reason))
        if is_granted(response):
            return Cancelled()
        refusal = CancelRefused(_reason(connection, response))
        try:
            delivery = await self._get(connection, number)
        except CarrierAway:
            return msgspec.structs.replace(refusal, is_sure=False)
        status = calls.parse_event(delivery, shipment.was_picked_up).status
        return Cancelled() if status in {"cancelled", "rejected"} else refusal

    async def track(self, connection: CarrierAccount, shipment: BookedShipment) -> TrackingResult:
        number = shipment.order_no or shipment.awb
        if not number:
            return TrackingResult((), was_asked=False)
        return TrackingResult([calls.parse_event(await self._get(connection, number), shipment.was_picked_up)])

    def read_callback(
        self, credentials: Mapping[str, str], headers: Mapping[str, str], body: bytes
    ) -> Sequence[CarrierEvent]:
        expected = credentials.get("callback_token")
        received = headers.get("authorization", "").removeprefix("Bearer ")
        if expected and not hmac.compare_digest(received.encode(), expected.encode()):
            raise BadSignature("the Authorization header is not the token that was agreed on")
        try:
            delivery = decode(body, wire.Delivery)
        except Unreadable:
            return ()
        return [calls.parse_event(delivery, was_picked_up=False)]

    async def _get(self, connection: CarrierAccount, number: str) -> wire.Delivery:
        response = await self._ask(connection, Request("GET", f"{wire.DELIVERIES}/{build_segment(number)}"))
        if response.status >= 400:
            raise CarrierAway(_reason(connection, response))
        return read(response, wire.Delivery)

    async def _ask(self, connection: CarrierAccount, request: Request, timeouts: Timeouts = ASKING) -> ProviderResponse:
        """Replaces an expired token once."""
        for _ in range(2):
            token = await tokens.get_token(connection)
            response = await ask(connection, _signed(request, token), timeouts)
            if response.status != 401:
                return response
            tokens.discard(connection, token)
        raise BadCredentials("Dash refuses its own token")


def _signed(request: Request, token: str) -> Request:
    headers = {"authorization": f"Bearer {token}", "x-client-time-zone": wire.TIME_ZONE}
    return msgspec.structs.replace(request, headers=headers)


def _reason(connection: CarrierAccount, response: ProviderResponse) -> str:
    try:
        problem = parse(response, wire.Problem)
    except Unreadable:
        return f"it answered {response.status} without a reason"
    reason = problem.message or problem.error or f"it answered {response.status} without a reason"
    return scrub(connection, reason)


CARRIER: Carrier = Dash()
