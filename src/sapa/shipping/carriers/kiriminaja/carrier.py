"""KiriminAja: an aggregator of Indonesian couriers. See README.md for what was verified."""

import hmac
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import msgspec

from sapa.outbound.client import NotSent, ProviderResponse, Unclear
from sapa.shipping.carriers.calls import (
    ASKING,
    QUOTING,
    Request,
    Timeouts,
    ask,
    fetch_pdf,
    parse,
    read,
    read_booking,
    scrub,
    send_once,
)
from sapa.shipping.carriers.interface import (
    BadCredentials,
    Booked,
    BookedShipment,
    BookingNotFound,
    BookingPayment,
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
    ServiceOffer,
    ShipmentRequest,
    TrackingResult,
)
from sapa.shipping.carriers.kiriminaja import calls, wire
from sapa.shipping.carriers.kiriminaja.statuses import BY_CODE
from sapa.shipping.carriers.offers import choose_offer
from sapa.shipping.carriers.reading import Unreadable, decode
from sapa.values.provider_accounts import AccountField, BadSignature


class KiriminAja:
    name = calls.NAME
    provider = "aggregator_carrier"
    label = "KiriminAja"
    address = wire.PRODUCTION
    fields: Sequence[AccountField] = (AccountField("api_key", "API key"),)
    levels: Sequence[Level] = ("provinces", "cities", "districts", "sub-districts")
    service_types: Sequence[str] = (calls.SERVICE_TYPE,)
    calls_back = True
    finds_by_reference = True
    cod_deductions: Sequence[Deduction] = ("cod_fee", "carrier_fee", "insurance_fee")

    async def verify(self, connection: CarrierAccount) -> None:
        verdict = read(await self._ask(connection, Request("POST", wire.COURIERS_PATH, body={})), wire.Verdict)
        if verdict.is_key_unknown and not verdict.status:
            raise BadCredentials(f"KiriminAja refuses the API key: {scrub(connection, verdict.reason)}")
        _check(connection, verdict)

    async def list_areas(
        self, connection: CarrierAccount, level: Level, parent: str | None, search: str | None
    ) -> Sequence[CarrierArea]:
        if parent is not None and not parent.isdigit():
            return ()  # its area ids are numbers
        response = await self._ask(connection, calls.build_areas(level, parent))
        rows = read(response, wire.AreaRows)
        if parent is None or not rows.is_not_found:
            _check(connection, rows)
        areas = calls.parse_areas(rows)
        return [area for area in areas if (search or "").lower() in area.name.lower()]

    async def quote(self, connection: CarrierAccount, shipment: ShipmentRequest) -> Quote:
        if shipment.service.service_type not in {None, calls.SERVICE_TYPE}:
            message = f"{shipment.service.service_type} is not offered here; use the provider instant_carrier."
            return Quote((), (QuoteNote(self.name, "service_type_not_offered", message),))
        if not (shipment.origin.kecamatan_id and shipment.destination.kecamatan_id):
            message = "origin.districtId and destination.districtId are required; coverage/districts lists the ids."
            return Quote((), (QuoteNote(self.name, "missing_district", message),))
        response = await self._ask(connection, calls.build_price(shipment), QUOTING)
        prices = read(response, wire.Prices)
        if not prices.status:
            return Quote((), (QuoteNote(self.name, "refused", scrub(connection, prices.reason)),))
        return calls.parse_prices(prices, shipment)

    async def book(self, connection: CarrierAccount, shipment: ShipmentRequest, reference: str) -> Booked | Rejected:
        obstacle = calls.find_obstacle(shipment, connection.company.region)
        if obstacle is not None:
            return obstacle
        offer = await self._choose(connection, shipment)
        if isinstance(offer, Rejected):
            return offer
        request = calls.build_book(shipment, offer, reference, connection.company.region, datetime.now(UTC))
        response = await send_once(connection, _signed(connection, request))
        if response.status in {401, 403}:
            return Rejected("BAD_CREDENTIALS", "KiriminAja refuses the API key")
        if response.status >= 400:
            return Rejected(str(response.status), _reason(connection, response))
        pickup = read_booking(response, wire.Pickup)
        outcome = calls.parse_booked(pickup, shipment, reference, offer)
        if outcome is None:
            raise Unclear("it accepted the booking without a number")
        if isinstance(outcome, Rejected):
            return Rejected(outcome.code, scrub(connection, outcome.reason))
        return await self._with_payment(connection, outcome)

    async def find(
        self, connection: CarrierAccount, reference: str, service_type: str | None
    ) -> Booked | BookingNotFound | CannotTell:
        try:
            tracking = await self._track(connection, reference)
        except (CarrierAway, BadCredentials) as error:
            return CannotTell(str(error))
        if tracking.status:
            return calls.parse_found(tracking)
        return BookingNotFound() if tracking.is_not_found else CannotTell(scrub(connection, tracking.reason))

    async def cancel(
        self, connection: CarrierAccount, shipment: BookedShipment, reason: str
    ) -> Cancelled | CancelPending | CancelRefused:
        """It answers `pending` to every accepted cancellation; its tracking tells whether it is done."""
        if not shipment.awb:
            return CancelRefused("KiriminAja cancels by awb, which is not assigned yet")
        response = await self._ask(connection, calls.build_cancel(shipment.awb, reason))
        verdict = read(response, wire.Verdict)
        status = await self._find_status(connection, shipment)
        if status == "cancelled":
            return Cancelled()
        is_taken = verdict.status or status == "cancelling"
        if is_taken:
            return CancelPending()
        return CancelRefused(scrub(connection, verdict.reason), is_sure=status is not None)

    async def track(self, connection: CarrierAccount, shipment: BookedShipment) -> TrackingResult:
        tracking = await self._track(connection, shipment.awb or shipment.reference)
        _check(connection, tracking)
        return TrackingResult(calls.parse_tracked(tracking, shipment))

    async def fetch_labels(self, connection: CarrierAccount, awbs: Sequence[str]) -> bytes:
        """KiriminAja answers with the address of a PDF."""
        labels = read(await self._ask(connection, calls.build_labels(awbs)), wire.Labels)
        _check(connection, labels)
        if labels.data is None or labels.data.data is None:
            raise CarrierAway("it answered without a file")
        return await fetch_pdf(connection, labels.data.data.url)

    def read_callback(
        self, credentials: Mapping[str, str], headers: Mapping[str, str], body: bytes
    ) -> Sequence[CarrierEvent]:
        """KiriminAja authenticates its callbacks with the account's own API key."""
        expected = credentials.get("api_key")
        received = headers.get("authorization", "").removeprefix("Bearer ")
        if expected and not hmac.compare_digest(received.encode(), expected.encode()):
            raise BadSignature("the Authorization header is not the account's API key")
        try:
            callback = decode(body, wire.Callback)
        except Unreadable:
            return ()
        return list(calls.parse_callback(callback))

    async def find_payment(self, connection: CarrierAccount, payment_id: str) -> BookingPayment | None:
        inquiry = read(await self._ask(connection, calls.build_payment(payment_id)), wire.PaymentInquiry)
        if not inquiry.status and not inquiry.is_not_found:
            _check(connection, inquiry)
        return calls.parse_payment(inquiry)

    async def _with_payment(self, connection: CarrierAccount, booked: Booked) -> Booked:
        """A booking that is not paid yet with its QRIS code. Without it the booking stands, and tracking asks again."""
        if booked.payment_status != "pending" or booked.payment_id is None:
            return booked
        try:
            payment = await self.find_payment(connection, booked.payment_id)
        except (CarrierAway, BadCredentials):
            return booked
        if payment is None:
            return booked
        status = payment.status or booked.payment_status
        qr = (payment.qr or booked.payment_qr) if status == "pending" else None
        return msgspec.structs.replace(booked, payment_qr=qr, payment_status=status)

    async def _choose(self, connection: CarrierAccount, shipment: ShipmentRequest) -> ServiceOffer | Rejected:
        """The present offer: a booking must send KiriminAja's own price, whatever the shop charges."""
        try:
            return choose_offer(await self.quote(connection, shipment), shipment.service)
        except CarrierAway as error:
            raise NotSent(f"the price could not be requested: {error}") from None
        except BadCredentials as error:
            return Rejected("BAD_CREDENTIALS", str(error))

    async def _find_status(self, connection: CarrierAccount, shipment: BookedShipment) -> str | None:
        try:
            return BY_CODE.get((await self._track(connection, shipment.reference)).status_code or 0)
        except CarrierAway:
            return None

    async def _track(self, connection: CarrierAccount, key: str) -> wire.Tracking:
        return read(await self._ask(connection, calls.build_track(key)), wire.Tracking)

    async def _ask(self, connection: CarrierAccount, request: Request, timeouts: Timeouts = ASKING) -> ProviderResponse:
        response = await ask(connection, _signed(connection, request), timeouts)
        if response.status in {401, 403}:
            raise BadCredentials("KiriminAja refuses the API key")
        return response


def _signed(connection: CarrierAccount, request: Request) -> Request:
    key = connection.credentials.get("api_key", "")
    return msgspec.structs.replace(request, headers={"authorization": f"Bearer {key}"})


def _check(connection: CarrierAccount, verdict: wire.Verdict) -> None:
    """Errors are HTTP 200 with a false status."""
    if not verdict.status:
        raise CarrierAway(scrub(connection, verdict.reason))


def _reason(connection: CarrierAccount, response: ProviderResponse) -> str:
    try:
        return scrub(connection, parse(response, wire.Verdict).reason)
    except Unreadable:
        return f"it answered {response.status} without a reason"


CARRIER: Carrier = KiriminAja()
