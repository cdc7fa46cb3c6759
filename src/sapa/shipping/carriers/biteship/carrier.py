"""Biteship: another aggregator of Indonesian couriers. See README.md for what was verified."""

import hmac
from collections.abc import Mapping, Sequence

import msgspec

from sapa.outbound.client import NotSent, ProviderResponse
from sapa.shipping.carriers.biteship import calls, wire
from sapa.shipping.carriers.biteship.statuses import find_status
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
    ServiceOffer,
    ShipmentRequest,
    TrackingResult,
)
from sapa.shipping.carriers.offers import choose_offer
from sapa.shipping.carriers.reading import Unreadable, decode
from sapa.values.provider_accounts import AccountField, BadSignature

SHORTEST_SEARCH = 3


class Biteship:
    name = calls.NAME
    provider = "aggregator_carrier"
    label = "Biteship"
    address = wire.PRODUCTION
    fields: Sequence[AccountField] = (
        AccountField("api_key", "API key"),
        AccountField(
            "signature_header", "name of the header that signs its callbacks", is_secret=False, is_required=False
        ),
        AccountField("signature_secret", "value of that header", is_required=False),
    )
    levels: Sequence[Level] = ("districts",)
    service_types: Sequence[str] = (calls.SERVICE_TYPE,)
    calls_back = True
    finds_by_reference = False
    cod_deductions: Sequence[Deduction] = ("cod_fee",)

    async def verify(self, connection: CarrierAccount) -> None:
        response = await self._ask(connection, Request("GET", wire.COURIERS_PATH))
        if not is_granted(response):
            raise CarrierAway(_parse_problem(connection, response).reason)

    async def list_areas(
        self, connection: CarrierAccount, level: Level, parent: str | None, search: str | None
    ) -> Sequence[CarrierArea]:
        """Biteship has no hierarchy of areas, only a search for districts."""
        if level != "districts" or len(search or "") < SHORTEST_SEARCH:
            return ()
        response = await self._ask(connection, calls.build_areas(search or ""))
        if not is_granted(response):
            raise CarrierAway(_parse_problem(connection, response).reason)
        return calls.parse_areas(read(response, wire.Areas))

    async def quote(self, connection: CarrierAccount, shipment: ShipmentRequest) -> Quote:
        note = calls.find_note(shipment)
        if note is not None:
            return Quote((), (note,))
        response = await self._ask(connection, calls.build_rates(shipment), QUOTING)
        if response.status < 400:
            rates = read(response, wire.Rates)
            if rates.success:
                return calls.parse_rates(rates, shipment.service)
        return Quote((), (QuoteNote(self.name, "refused", _parse_problem(connection, response).reason),))

    async def book(self, connection: CarrierAccount, shipment: ShipmentRequest, reference: str) -> Booked | Rejected:
        note = calls.find_note(shipment)
        if note is not None:
            return Rejected(note.code.upper(), note.text)
        offer = await self._choose(connection, shipment)
        if isinstance(offer, Rejected):
            return offer
        code = offer.service_code if offer else shipment.service.service_code or ""
        request = calls.build_book(shipment, code, reference, connection.company.region)
        response = await send_once(connection, _signed(connection, request))
        if response.status in {401, 403}:
            return Rejected("BAD_CREDENTIALS", "Biteship refuses the API key")
        if response.status < 400 and read_booking(response, wire.Verdict).success:
            order = read_booking(response, wire.Order)
            return calls.parse_booked(order, shipment.service.package_handover, offer)
        problem = _parse_problem(connection, response)
        return calls.parse_twin(problem.twin, reference) or Rejected(problem.code, problem.reason)

    async def find(
        self, connection: CarrierAccount, reference: str, service_type: str | None
    ) -> Booked | BookingNotFound | CannotTell:
        """Biteship has no search by reference, and its callbacks do not carry it."""
        return CannotTell("Biteship has no lookup by our reference; check the order in its dashboard")

    async def cancel(
        self, connection: CarrierAccount, shipment: BookedShipment, reason: str
    ) -> Cancelled | CancelPending | CancelRefused:
        if not shipment.order_no:
            return CancelRefused("Biteship cancels by its order number, which is not assigned yet")
        response = await self._ask(connection, calls.build_cancel(shipment.order_no, reason))
        if is_granted(response):
            return Cancelled()
        refusal = CancelRefused(_parse_problem(connection, response).reason)
        try:
            status = (await self._get(connection, shipment.order_no)).status
        except CarrierAway:
            return msgspec.structs.replace(refusal, is_sure=False)
        return Cancelled() if find_status(status) in {"cancelled", "no_driver", "rejected"} else refusal

    async def track(self, connection: CarrierAccount, shipment: BookedShipment) -> TrackingResult:
        if not shipment.order_no:
            return TrackingResult((), was_asked=False)
        return TrackingResult(calls.parse_tracked(await self._get(connection, shipment.order_no), shipment))

    def read_callback(
        self, credentials: Mapping[str, str], headers: Mapping[str, str], body: bytes
    ) -> Sequence[CarrierEvent]:
        """The first call has an empty body and only checks the address."""
        if not body.strip():
            return ()
        name, expected = credentials.get("signature_header"), credentials.get("signature_secret")
        received = headers.get((name or "").lower(), "")
        if name and expected and not hmac.compare_digest(received.encode(), expected.encode()):
            raise BadSignature(f"the header {name} is not the secret that was agreed on")
        try:
            callback = decode(body, wire.Callback)
        except Unreadable:
            return ()
        return list(calls.parse_callback(callback))

    async def _choose(self, connection: CarrierAccount, shipment: ShipmentRequest) -> ServiceOffer | Rejected | None:
        """Quoted again if only its name is known, or if the fee for cash is needed. None if its code is enough."""
        service = shipment.service
        if ":" in (service.service_code or "") and service.cod_amount is None:
            return None
        try:
            return choose_offer(await self.quote(connection, shipment), shipment.service)
        except CarrierAway as error:
            raise NotSent(f"the price could not be requested: {error}") from None
        except BadCredentials as error:
            return Rejected("BAD_CREDENTIALS", str(error))

    async def _get(self, connection: CarrierAccount, order_no: str) -> wire.Order:
        response = await self._ask(connection, Request("GET", f"{wire.ORDERS}/{build_segment(order_no)}"))
        if response.status >= 400:
            raise CarrierAway(_parse_problem(connection, response).reason)
        return read(response, wire.Order)

    async def _ask(self, connection: CarrierAccount, request: Request, timeouts: Timeouts = ASKING) -> ProviderResponse:
        response = await ask(connection, _signed(connection, request), timeouts)
        if response.status in {401, 403}:
            raise BadCredentials("Biteship refuses the API key")
        return response


def _signed(connection: CarrierAccount, request: Request) -> Request:
    """The bare key, without a scheme."""
    return msgspec.structs.replace(request, headers={"authorization": connection.credentials.get("api_key", "")})


class _Problem(msgspec.Struct, frozen=True):
    code: str
    reason: str
    twin: wire.Twin | None


def _parse_problem(connection: CarrierAccount, response: ProviderResponse) -> _Problem:
    try:
        problem = parse(response, wire.Problem)
    except Unreadable:
        return _Problem(str(response.status), f"it answered {response.status} without a reason", None)
    reason = problem.error or problem.message or f"it answered {response.status} without a reason"
    return _Problem(str(problem.code or response.status), scrub(connection, reason), problem.details)


CARRIER: Carrier = Biteship()
