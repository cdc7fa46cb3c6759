"""Measures, phones and times in carriers' forms."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapa.sandbox.carriers.scenarios import (
    SCENARIOS,
    advance_steps,
    build_steps,
    cancel,
    find_scenario,
    list_past,
)
from sapa.shipping.carriers.calls import shorten
from sapa.shipping.carriers.interface import Parcel
from sapa.shipping.carriers.kiriminaja.calls import build_price, build_schedule, find_obstacle
from sapa.shipping.carriers.parcels import (
    digits_of_phone,
    grams,
    international_phone,
    local_phone,
    parse_local,
    volumetric_grams,
)
from tests.shipping.carriers.simulated import build_request

BOOKED_AT = datetime(2026, 3, 2, 3, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("kilograms", "expected"), [("1.2", 1200), ("0.0001", 1), ("0", 1), ("0.25", 250), ("1.2345", 1235), ("40", 40_000)]
)
def test_kilograms_are_grams_rounded_up(kilograms: str, expected: int) -> None:
    assert grams(Parcel(Decimal(kilograms))) == expected


def test_a_parcel_that_is_large_weighs_its_volume() -> None:
    parcel: dict[str, Any] = {"length": Decimal(40), "width": Decimal(30), "height": Decimal("20.5")}
    assert volumetric_grams(Parcel(Decimal(1), **parcel)) == 4100
    body = build_price(build_request(parcel=parcel)).body
    assert (body["weight"], body["length"], body["width"], body["height"]) == (4100, 40, 30, 21)
    assert build_price(build_request()).body["weight"] == 1200


@pytest.mark.parametrize(
    ("phone", "digits"),
    [
        ("08123456789", "628123456789"),
        ("+62 812-3456-789", "628123456789"),
        ("628123456789", "628123456789"),
        ("+65 6123 4567", "6561234567"),
        ("no number", ""),
        (None, ""),
    ],
)
def test_a_phone_in_the_carriers_form(phone: str | None, digits: str) -> None:
    assert digits_of_phone(phone, "ID") == digits
    assert international_phone(phone, "ID") == (f"+{digits}" if digits else "")


@pytest.mark.parametrize(
    ("phone", "region", "local"),
    [
        ("+628123456789", "ID", "08123456789"),
        ("08123456789", "ID", "08123456789"),
        ("+62 895-1234-56789", "SG", "0895123456789"),
        ("+62215551234", "ID", "0215551234"),
        ("+6561234567", "ID", "+6561234567"),
        (None, "ID", ""),
    ],
)
def test_a_phone_in_its_national_form(phone: str | None, region: str, local: str) -> None:
    assert local_phone(phone, region) == local


@pytest.mark.parametrize(
    ("now", "wanted", "schedule"),
    [
        ("2026-03-02T03:00:00Z", None, "2026-03-02 11:00:00"),
        ("2026-03-02T08:30:00Z", None, "2026-03-03 09:00:00"),
        ("2026-03-02T18:00:00Z", None, "2026-03-03 02:00:00"),
        ("2026-03-02T08:30:00Z", "2026-03-04T17:00:00Z", "2026-03-05 00:00:00"),
    ],
)
def test_when_kiriminaja_fetches(now: str, wanted: str | None, schedule: str) -> None:
    instant = datetime.fromisoformat(wanted) if wanted else None
    assert build_schedule(instant, datetime.fromisoformat(now)) == schedule


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2026-03-02 10:00:00", BOOKED_AT),
        ("2026-03-02T03:00:00Z", BOOKED_AT),
        ("2026-03-02T11:00:00+08:00", BOOKED_AT),
        ("yesterday", None),
        ("", None),
        (None, None),
    ],
)
def test_an_instant_without_a_zone_is_jakartas(text: str | None, instant: datetime | None) -> None:
    assert parse_local(text) == instant


def test_what_kiriminaja_would_refuse_is_rejected_with_our_message() -> None:
    assert find_obstacle(build_request(), "ID") is None
    shipment = build_request()
    for change, code in (
        ({"kelurahan_id": None}, "MISSING_AREA"),
        ({"kecamatan_id": None}, "MISSING_AREA"),
        ({"name": "x" * 51}, "NAME_TOO_LONG"),
        ({"address": "x" * 256}, "ADDRESS_TOO_LONG"),
        ({"phone": "+6561234567"}, "PHONE_NOT_USABLE"),
        ({"phone": "08123456789012"}, "PHONE_NOT_USABLE"),
    ):
        place = msgspec.structs.replace(shipment.destination, **change)
        refused = find_obstacle(msgspec.structs.replace(shipment, destination=place), "ID")
        assert refused is not None
        assert refused.code == code
        assert "delivery." in refused.reason


@given(text=st.text(max_size=120), most=st.integers(2, 60))
def test_a_shortened_text_fits_and_a_short_one_stays(text: str, most: int) -> None:
    short = shorten(text, most)
    assert len(short) <= most
    assert short == text or (len(text) > most and short.endswith("…"))


@given(
    kind=st.sampled_from(["instant", "express"]),
    scenario=st.sampled_from([None, *SCENARIOS]),
    deeds=st.lists(st.tuples(st.floats(0, 900), st.sampled_from(["wait", "hasten", "cancel", "slow"])), max_size=6),
)
def test_steps_stay_in_order_after_advances_and_cancellations(
    kind: str, scenario: str | None, deeds: list[tuple[float, str]]
) -> None:
    now, steps = BOOKED_AT, build_steps(kind, scenario, BOOKED_AT)  # type: ignore[arg-type]
    for seconds, deed in deeds:
        now += timedelta(seconds=seconds)
        past = list_past(steps, now)
        if deed == "hasten" and any(step.at > now and step.state != "labelled" for step in steps):
            steps = advance_steps(steps, now, kind, None)  # type: ignore[arg-type]
        elif deed in {"cancel", "slow"} and past[-1].state != "cancelled":
            steps = cancel(steps, now, "x", "silently" if deed == "slow" else None)
        assert steps[: len(past)] == past
        assert [step.at for step in list_past(steps, now)] == sorted(step.at for step in list_past(steps, now))


@pytest.mark.parametrize(
    ("texts", "name"),
    [
        (["#sim:lost"], "lost"),
        (["leave it", "Jl. A 1 (ring #sim:no_driver)"], "no_driver"),
        (["#sim:nothing_known", None], None),
        (["sim:lost #sim: lost"], None),
        ([None, ""], None),
    ],
)
def test_a_scenario_is_found_in_notes(texts: list[str | None], name: str | None) -> None:
    assert find_scenario(*texts) == name
