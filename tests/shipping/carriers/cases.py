"""The operations of each adapter that have a fixture with the requests, the responses and the outcome."""

from collections.abc import Awaitable, Callable, Mapping
from decimal import Decimal
from typing import Any

import pytest
from msgspec import Struct

from sapa.shipping.carriers.abilities import LabelCarrier, PaidBookings
from sapa.shipping.carriers.interface import BookedShipment, Carrier, CarrierAccount, CarrierAway
from tests.shipping.carriers.simulated import build_request, build_scheduled

REFERENCE = "SP01JC9Y3Q5ME8W92V"
CREDENTIALS: Mapping[str, dict[str, str]] = {
    "kiriminaja": {"api_key": "kiriminaja-key"},
    "gosend": {"client_id": "toko-kopi", "pass_key": "gosend-pass", "callback_token": "gosend-callback"},
    "dash": {"client_key": "dash-key", "client_secret": "dash-secret", "callback_token": "dash-callback"},
    "biteship": {"api_key": "biteship-key", "signature_header": "X-Signature", "signature_secret": "biteship-sign"},
}

KIRIMINAJA = BookedShipment(REFERENCE, "KA-1001", "JNE0001234567", "KA-1001", "EXPRESS", False)
GOSEND = BookedShipment(REFERENCE, "GK-11-170563", None, "170563", "INSTANT", False)
DASH = BookedShipment(REFERENCE, "dlv-77", "dlv-77", "dlv-77", "SAME_DAY", False)
BITESHIP = BookedShipment(REFERENCE, "5dd599ebdefcd4158eb8470b", "JNE0001234567", "trk-1", "EXPRESS", False)

SHIPPED: Mapping[str, BookedShipment] = {"kiriminaja": KIRIMINAJA, "gosend": GOSEND, "dash": DASH, "biteship": BITESHIP}

Do = Callable[[Carrier, CarrierAccount], Awaitable[Any]]


class Case(Struct, frozen=True):
    adapter: str
    name: str
    do: Do

    @property
    def title(self) -> str:
        return f"{self.adapter}-{self.name}"


def _verify(carrier: Carrier, connection: CarrierAccount) -> Awaitable[Any]:
    return carrier.verify(connection)


def _find(carrier: Carrier, connection: CarrierAccount) -> Awaitable[Any]:
    return carrier.find(connection, REFERENCE, None)


def _cancel(shipment: BookedShipment) -> Do:
    return lambda carrier, connection: carrier.cancel(connection, shipment, "Pembeli berubah pikiran")


def _track(shipment: BookedShipment) -> Do:
    return lambda carrier, connection: carrier.track(connection, shipment)


def _payment(carrier: Carrier, connection: CarrierAccount) -> Awaitable[Any]:
    assert isinstance(carrier, PaidBookings)
    return carrier.find_payment(connection, "XID-0042")


def _areas(level: Any, parent: str | None, search: str | None = None) -> Do:
    return lambda carrier, connection: carrier.list_areas(connection, level, parent, search)


def _quote(**service: Any) -> Do:
    return lambda carrier, connection: carrier.quote(connection, build_request(**service))


def _book(notes: str | None = None, **service: Any) -> Do:
    if notes is not None:
        return lambda carrier, connection: carrier.book(connection, build_request(notes, **service), REFERENCE)
    return lambda carrier, connection: carrier.book(connection, build_scheduled(**service), REFERENCE)


async def _labels(carrier: Carrier, connection: CarrierAccount) -> str:
    """Why there is no file; test_labels.py fetches files."""
    assert isinstance(carrier, LabelCarrier)
    with pytest.raises(CarrierAway) as refusal:
        await carrier.fetch_labels(connection, ["JNE0001234567"])
    return str(refusal.value)


_JNE: dict[str, Any] = {"service_code": "jne:REG23", "service_name": "JNE Reguler", "fee": Decimal(1)}

_CASH = Decimal(168_000)

CASES = [
    Case("kiriminaja", "verify", _verify),
    Case("kiriminaja", "provinces", _areas("provinces", None)),
    Case("kiriminaja", "cities", _areas("cities", "31")),
    Case("kiriminaja", "districts", _areas("districts", "3171")),
    Case("kiriminaja", "sub-districts", _areas("sub-districts", "317106", "cik")),
    Case("kiriminaja", "quote", _quote(insurance=True)),
    Case("kiriminaja", "quote_refused", _quote()),
    Case("kiriminaja", "quote_nothing", _quote()),
    Case("kiriminaja", "quote_cod", _quote(cod_amount=_CASH)),
    Case("kiriminaja", "book", _book(**_JNE)),
    Case("kiriminaja", "book_cod", _book(**_JNE, cod_amount=_CASH)),
    Case("kiriminaja", "book_cod_refused", _book(service_name="JNE YES", cod_amount=_CASH)),
    Case("kiriminaja", "book_by_name", _book(service_name="jne reguler", package_handover="DROP_OFF", insurance=True)),
    Case("kiriminaja", "book_refused", _book(**_JNE)),
    Case("kiriminaja", "book_unpaid", _book(**_JNE)),
    Case("kiriminaja", "payment", _payment),
    Case("kiriminaja", "payment_paid", _payment),
    Case("kiriminaja", "payment_nothing", _payment),
    Case("kiriminaja", "find", _find),
    Case("kiriminaja", "find_nothing", _find),
    Case("kiriminaja", "find_unclear", _find),
    Case("kiriminaja", "track", _track(KIRIMINAJA)),
    Case("kiriminaja", "track_new", _track(KIRIMINAJA)),
    Case("kiriminaja", "cancel", _cancel(KIRIMINAJA)),
    Case("kiriminaja", "cancel_pending", _cancel(KIRIMINAJA)),
    Case("kiriminaja", "cancel_refused", _cancel(KIRIMINAJA)),
    Case("kiriminaja", "labels_refused", _labels),
    Case("gosend", "verify", _verify),
    Case("gosend", "quote", _quote()),
    Case("gosend", "quote_same_day", _quote(service_type="SAME_DAY")),
    Case("gosend", "quote_refused", _quote()),
    Case("gosend", "book", _book("Rumah pagar biru", service_type="INSTANT", service_name="GoSend Instant")),
    Case("gosend", "book_insured", _book(service_name="GoSend SameDay", insurance=True)),
    Case("gosend", "book_refused", _book(service_type="INSTANT")),
    Case("gosend", "book_refused_in_body", _book(service_type="INSTANT")),
    Case("gosend", "find", _find),
    Case("gosend", "find_nothing", _find),
    Case("gosend", "find_unclear", _find),
    Case("gosend", "track", _track(GOSEND)),
    Case("gosend", "track_unknown_word", _track(GOSEND)),
    Case("gosend", "cancel", _cancel(GOSEND)),
    Case("gosend", "cancel_again", _cancel(GOSEND)),
    Case("gosend", "cancel_refused", _cancel(GOSEND)),
    Case("dash", "verify", _verify),
    Case("dash", "quote", _quote(pickup_city="3171")),
    Case("dash", "quote_refused", _quote(pickup_city="3171")),
    Case("dash", "book", _book(service_name="Dash Instant", pickup_city="3171")),
    Case("dash", "book_noted", _book("Titip di satpam", service_type="SAME_DAY", pickup_city="Jakarta Pusat")),
    Case("dash", "book_refused", _book(service_type="SAME_DAY", pickup_city="3171")),
    Case("dash", "track", _track(DASH)),
    Case("dash", "cancel", _cancel(DASH)),
    Case("dash", "cancel_again", _cancel(DASH)),
    Case("dash", "cancel_refused", _cancel(DASH)),
    Case("biteship", "verify", _verify),
    Case("biteship", "districts", _areas("districts", None, "Tebet")),
    Case("biteship", "quote", _quote(insurance=True)),
    Case("biteship", "quote_refused", _quote()),
    Case("biteship", "quote_cod", _quote(cod_amount=_CASH)),
    Case("biteship", "book", _book(service_code="jne:reg", service_name="JNE Reguler")),
    Case("biteship", "book_cod", _book(service_code="jne:reg", service_name="JNE Reguler", cod_amount=_CASH)),
    Case("biteship", "book_now", _book("Rumah pagar biru", service_code="jne:reg")),
    Case("biteship", "book_refused", _book(service_code="jne:reg")),
    Case("biteship", "book_twin", _book(service_code="jne:reg")),
    Case("biteship", "track", _track(BITESHIP)),
    Case("biteship", "cancel", _cancel(BITESHIP)),
    Case("biteship", "cancel_refused", _cancel(BITESHIP)),
]
