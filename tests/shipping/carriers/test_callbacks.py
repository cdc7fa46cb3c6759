"""Carriers' callbacks: signatures, parsed events and duplicates."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapa.shipping.carriers.interface import CarrierEvent, Driver
from sapa.shipping.carriers.registry import CARRIERS
from sapa.values.provider_accounts import BadSignature
from tests.shipping.carriers.cases import CREDENTIALS, REFERENCE

HEADERS: Mapping[str, dict[str, str]] = {
    "kiriminaja": {"authorization": "Bearer kiriminaja-key"},
    "gosend": {"authorization": "gosend-callback"},
    "dash": {"authorization": "Bearer dash-callback"},
    "biteship": {"x-signature": "biteship-sign"},
}
NO_LINKS = {"cancelled_by", "cancellation_reason"}
SIGNING = [adapter for adapter, headers in HEADERS.items() if headers]

GOSEND: dict[str, Any] = {
    "entity_id": "GK-11-170563",
    "type": "DELIVERY",
    "event_date": 1_772_420_640_123,
    "event_id": "evt-1",
    "partner_id": "toko-kopi",
    "booking_id": "GK-11-170563",
    "status": "allocated",
    "cancelled_by": None,
    "booking_type": "Instant",
    "driver_name": "Agus",
    "driver_phone": "+628990000001",
    "driver_phone2": "",
    "driver_photo_url": "https://img.example/agus.jpg",
    "receiver_name": "",
    "total_distance_in_kms": 5.4,
    "pickup_eta": "1772420640000-1772421000000",
    "price": "22500",
    "cancellation_reason": None,
    "attributes": {"key1": "x"},
    "liveTrackingUrl": "https://track.example/1",
    "store_order_id": REFERENCE,
}
DASH: dict[str, Any] = {
    "deliveryID": "dlv-77",
    "providerOrderID": REFERENCE,
    "status": "PENDING_PICKUP",
    "updatedAt": "2026-03-02T10:04:00.123+07:00",
    "trackingURL": "https://track.example/dlv-77",
    "courier": {"name": "Agus", "phone": "+628990000001", "vehicle": {"licensePlate": "B 1234 SBX"}},
    "media": [],
}
BITESHIP: dict[str, Any] = {
    "event": "order.status",
    "order_id": "5dd599ebdefcd4158eb8470b",
    "status": "picked",
    "order_price": 12000,
    "courier_tracking_id": "trk-1",
    "courier_waybill_id": "JNE0001234567",
    "courier_company": "jne",
    "courier_type": "reg",
    "courier_driver_name": "Agus",
    "courier_driver_phone": "+628990000001",
    "courier_driver_photo_url": "",
    "courier_driver_plate_number": "B 1234 SBX",
    "courier_link": "https://track.biteship.com/trk-1",
}
KIRIMINAJA: dict[str, Any] = {
    "method": "shipped_packages",
    "data": [
        {"order_id": REFERENCE, "awb": "JNE0001234567", "shipped_at": "2026-03-02 13:00:00"},
        {"order_id": "SPOTHER", "awb": "JNE0001234568", "shipped_at": "2026-03-02 13:00:00"},
    ],
}
BODIES = {"kiriminaja": KIRIMINAJA, "gosend": GOSEND, "dash": DASH, "biteship": BITESHIP}
CHANGED: Mapping[str, dict[str, Any]] = {
    "kiriminaja": {"method": "finished_packages"},
    "gosend": {"event_id": "evt-2"},
    "dash": {"status": "PICKING_UP"},
    "biteship": {"status": "delivered"},
}
"""What makes the body another event."""
UNKNOWN: Mapping[str, dict[str, Any]] = {
    "kiriminaja": {"method": "teleported_packages"},
    "gosend": {"status": "teleported"},
    "dash": {"status": "TELEPORTED"},
    "biteship": {"status": "teleported"},
}
"""A status that the carrier does not have."""


def read(adapter: str, body: Any, headers: Mapping[str, str] | None = None) -> list[CarrierEvent]:
    content = body if isinstance(body, bytes) else msgspec.json.encode(body)
    given = HEADERS[adapter] if headers is None else headers
    return list(CARRIERS[adapter].read_callback(CREDENTIALS[adapter], given, content))


@pytest.mark.parametrize("adapter", SIGNING)
@pytest.mark.parametrize("header", [None, "", "Bearer", "wrong", "gosend-callback2", "Bearer dash-callback ", "é"])
def test_a_callback_without_the_carriers_signature_is_refused(adapter: str, header: str | None) -> None:
    name = next(iter(HEADERS[adapter]))
    with pytest.raises(BadSignature):
        read(adapter, BODIES[adapter], {} if header is None else {name: header})


@pytest.mark.parametrize("adapter", SIGNING)
def test_without_a_signature_the_address_authenticates_a_callback(adapter: str) -> None:
    assert CARRIERS[adapter].read_callback({}, {}, msgspec.json.encode(BODIES[adapter]))


@pytest.mark.parametrize("adapter", list(CARRIERS))
@pytest.mark.parametrize("body", [b"", b" ", b"null", b"[]", b"{", b"\xff\xfe", b'"text"', b"{}", b'{"status": 5}'])
def test_what_cannot_be_read_says_nothing(adapter: str, body: bytes) -> None:
    assert read(adapter, body) == []


@pytest.mark.parametrize("adapter", list(CARRIERS))
@given(body=st.binary(max_size=200))
def test_any_body_is_read_without_an_error(adapter: str, body: bytes) -> None:
    read(adapter, body)


@pytest.mark.parametrize("adapter", list(CARRIERS))
def test_the_same_again_has_the_same_key_and_another_status_has_another(adapter: str) -> None:
    body = BODIES[adapter]
    keys = {event.dedupe_key for event in read(adapter, body)}
    assert keys == {event.dedupe_key for event in read(adapter, {**body, "something": "new"})}
    assert keys.isdisjoint(event.dedupe_key for event in read(adapter, {**body, **CHANGED[adapter]}))


@pytest.mark.parametrize(
    ("payment", "status"),
    [
        ({"payment_id": "XID-1", "status_code": 0}, "paid"),
        ({"status_code": "9"}, "pending"),
        ({"status_code": 5}, None),
        ({}, None),
        ([], None),
        (None, None),
        ("paid", None),
    ],
)
def test_kiriminaja_reports_the_payment_of_its_parcels(payment: Any, status: str | None) -> None:
    events = read("kiriminaja", {**KIRIMINAJA, "payment": payment})
    assert [event.payment_status for event in events] == [status, status]


def test_gosend_reports_a_driver() -> None:
    (event,) = read("gosend", GOSEND)
    assert event == CarrierEvent(
        dedupe_key="evt-1",
        occurred_at=datetime(2026, 3, 2, 3, 4, 0, 123_000, tzinfo=UTC),
        status="driver_assigned",
        text="allocated",
        reference=REFERENCE,
        order_no="GK-11-170563",
        tracking_url="https://track.example/1",
        driver=Driver("Agus", "+628990000001", "https://img.example/agus.jpg", None),
        proof=[],
    )


def test_gosends_rejection_after_the_pick_up_is_a_way_back() -> None:
    assert read("gosend", {**GOSEND, "status": "rejected"})[0].status == "rejected"
    (event,) = read("gosend", {**GOSEND, "status": "rejected", "pop_url": "https://img.example/pop.jpg"})
    assert (event.status, event.proof) == ("returning", ["https://img.example/pop.jpg"])
    photos = {"pop_url": "https://img.example/pop.jpg", "pod_url": "https://img.example/pod.jpg"}
    assert read("gosend", {**GOSEND, "status": "rejected", **photos})[0].status == "returned"


def test_gosend_reports_who_cancelled() -> None:
    (event,) = read("gosend", {**GOSEND, "status": "cancelled", "cancelled_by": "DRIVER", "cancellation_reason": "x"})
    assert (event.status, event.cancelled_by, event.reason) == ("cancelled", "DRIVER", "x")


def test_dash_reports_a_driver_who_may_be_a_replacement() -> None:
    (event,) = read("dash", DASH)
    assert (event.status, event.is_reassignment, event.reference) == ("driver_assigned", True, REFERENCE)
    assert event.driver == Driver("Agus", "+628990000001", None, "B 1234 SBX")
    assert event.occurred_at == datetime(2026, 3, 2, 3, 4, 0, 123_000, tzinfo=UTC)
    assert not read("dash", {**DASH, "status": "PICKING_UP"})[0].is_reassignment


def test_dashs_failure_after_the_pick_up_is_a_way_back() -> None:
    assert read("dash", {**DASH, "status": "FAILED"})[0].status == "rejected"
    media = [{"type": "PICKUP_PROOF", "url": "https://img.example/p.jpg"}]
    assert read("dash", {**DASH, "status": "FAILED", "media": media})[0].status == "returning"
    assert read("dash", {**DASH, "status": "FAILED", "pickupAt": "2026-03-02T03:00:00Z"})[0].status == "returning"


def test_dash_says_why_and_who_received_it() -> None:
    failed = {"failedReason": "Penerima menolak", "cancelledReason": None}
    assert read("dash", {**DASH, "status": "FAILED", **failed})[0].reason == "Penerima menolak"
    (event,) = read("dash", {**DASH, "status": "CANCELLED", "failedReason": None, "cancelledReason": "Stok habis"})
    assert (event.status, event.reason) == ("cancelled", "Stok habis")
    recipient = {"firstName": "Ayu", "phone": "+6281299998888", "actualRecipientName": "Satpam"}
    assert read("dash", {**DASH, "status": "COMPLETED", "recipient": recipient})[0].receiver == "Satpam"


def test_dash_reports_each_new_driver() -> None:
    keys = {
        event.dedupe_key
        for instant in ("2026-03-02T03:04:00.123Z", "2026-03-02T03:09:00.456Z")
        for event in read("dash", {**DASH, "updatedAt": instant})
    }
    assert len(keys) == 2


def test_biteship_reports_a_pickup() -> None:
    (event,) = read("biteship", BITESHIP)
    assert (event.status, event.order_no, event.awb) == ("picked_up", BITESHIP["order_id"], "JNE0001234567")
    assert event.driver == Driver("Agus", "+628990000001", None, "B 1234 SBX")


@pytest.mark.parametrize("kind", ["order.price", "order.waybill_id"])
def test_biteships_news_of_price_and_waybill_move_nothing(kind: str) -> None:
    (event,) = read("biteship", {**BITESHIP, "event": kind})
    assert (event.status, event.awb) == (None, "JNE0001234567")


def test_one_callback_of_kiriminaja_reports_many_parcels() -> None:
    events = read("kiriminaja", KIRIMINAJA)
    assert [(event.reference, event.awb, event.status) for event in events] == [
        (REFERENCE, "JNE0001234567", "picked_up"),
        ("SPOTHER", "JNE0001234568", "picked_up"),
    ]
    assert events[0].occurred_at == datetime(2026, 3, 2, 6, 0, tzinfo=UTC)


def test_kiriminajas_packages_count_when_there_is_no_data() -> None:
    parcel = {"order_id": REFERENCE, "awb": "JNE1", "status": "701", "date": "2026-03-02 13:00:00"}
    (event,) = read("kiriminaja", {"method": "shipped_packages", "data": [], "packages": [parcel]})
    assert (event.status, event.status_code) == ("lost", 701)


def test_a_parcel_of_kiriminaja_has_returned_only_when_it_has_arrived() -> None:
    parcel = {"order_id": REFERENCE, "awb": "JNE1", "date": "2026-03-01 09:00:00", "shipped_at": "2026-03-02 13:00:00"}
    started = datetime.now(UTC)
    (begun,) = read("kiriminaja", {"method": "returned_packages", "data": [parcel | {"returned_at": None}]})
    (arrived,) = read(
        "kiriminaja", {"method": "returned_packages", "data": [parcel | {"returned_at": "2026-03-09 10:00:00"}]}
    )
    assert (begun.status, arrived.status) == ("returning", "returned")
    assert begun.occurred_at >= started
    assert arrived.occurred_at == datetime(2026, 3, 9, 3, 0, tzinfo=UTC)
    assert begun.dedupe_key != arrived.dedupe_key


def test_kiriminaja_reports_when_a_parcel_was_cancelled() -> None:
    parcel = {"order_id": REFERENCE, "date": "2026-03-01 09:00:00", "canceled_at": "2026-03-02 13:00:00"}
    (event,) = read("kiriminaja", {"method": "canceled_packages", "data": [parcel | {"reason": "3pl rejection"}]})
    assert (event.status, event.reason) == ("cancelled", "3pl rejection")
    assert event.occurred_at == datetime(2026, 3, 2, 6, 0, tzinfo=UTC)


def test_kiriminajas_awb_comes_with_the_sorting_code() -> None:
    parcel = {"order_id": REFERENCE, "awb": "JNE1", "sorting_code": "JOG-JOG1000-JKT2010"}
    (event,) = read("kiriminaja", {"method": "processed_packages", "data": [parcel]})
    assert (event.status, event.awb, event.sorting_code) == ("confirmed", "JNE1", "JOG-JOG1000-JKT2010")


@pytest.mark.parametrize("word", ["dropping_off", "droppingOff"])
def test_biteship_writes_its_statuses_in_two_ways(word: str) -> None:
    (event,) = read("biteship", {**BITESHIP, "status": word})
    assert (event.status, event.text) == ("out_for_delivery", word)


@pytest.mark.parametrize("adapter", list(CARRIERS))
def test_an_unknown_status_is_recorded_without_effect(adapter: str) -> None:
    event = read(adapter, {**BODIES[adapter], **UNKNOWN[adapter]})[0]
    assert event.status is None
    assert "teleported" in event.text.lower()


@pytest.mark.parametrize(
    "link", ["javascript:alert(1)", "JAVASCRIPT://x", "data:text/html,x", "//track.example", "track.example/9"]
)
@pytest.mark.parametrize(
    ("adapter", "body"),
    [
        ("gosend", GOSEND | {"driver_photo_url": None, "liveTrackingUrl": None, "pod_url": None}),
        ("dash", DASH | {"trackingURL": None}),
        ("biteship", BITESHIP | {"courier_link": None, "courier_driver_photo_url": None}),
    ],
)
def test_a_link_that_a_browser_would_run_is_left_out(adapter: str, body: dict[str, Any], link: str) -> None:
    planted = {name: link if value is None and name not in NO_LINKS else value for name, value in body.items()}
    content = msgspec.json.encode(planted)
    (event,) = CARRIERS[adapter].read_callback(CREDENTIALS[adapter], HEADERS[adapter], content)
    assert link.encode() in content
    assert link not in repr(event)
