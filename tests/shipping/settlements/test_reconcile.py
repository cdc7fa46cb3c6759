"""A line of a statement against its shipment: what is expected, and what differs."""

from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapa.shipping.carriers.interface import Deduction
from sapa.shipping.carriers.registry import CARRIERS
from sapa.shipping.settlements.reconcile import reconcile_line
from sapa.shipping.settlements.types import SettlementLineIn
from sapa.shipping.shipments.validation import build_draft
from sapa.shipping.types import StoredShipment
from sapa.values.company import Company

COMPANY = Company(1, "test", "ID", "IDR")
ALL: list[Deduction] = ["cod_fee", "carrier_fee", "insurance_fee"]


def parcel(**fields: Any) -> StoredShipment:
    """Delivered, with 150,000 to collect, and fees of 4,860, 12,000 and 500."""
    usual = {"cod_amount": 150_000, "cod_fee": 4_860, "carrier_fee": 12_000, "insurance_fee": 500}
    amounts = {name: None if value is None else Decimal(value) for name, value in usual.items()}
    changes = {"shipping_status": "delivered", **amounts, **fields}
    return msgspec.structs.replace(build_draft(COMPANY, "aggregator_carrier"), **changes)


def line(amount: int | str, **parts: int | str) -> SettlementLineIn:
    stated = {name: Decimal(value) for name, value in parts.items()}
    return SettlementLineIn(parcel="JNE1", amount=Decimal(amount), **stated)


def differences(*arguments: Any) -> list[tuple[str, int, int, int]]:
    result = reconcile_line(*arguments)
    return [(one.kind, int(one.expected), int(one.actual), int(one.difference)) for one in result.deviations]


def test_a_line_that_is_as_expected() -> None:
    result = reconcile_line(line(132_640), parcel(), ALL)
    assert (result.expected, result.deviations, result.is_remittance) == (Decimal(132_640), [], True)
    assert differences(line(145_140), parcel(), ["cod_fee"]) == []
    assert differences(line(150_000), parcel(), []) == []


def test_a_single_rupiah_is_found() -> None:
    assert differences(line(132_639), parcel(), ALL) == [("remitted_amount", 132_640, 132_639, -1)]
    assert differences(line(132_641), parcel(), ALL) == [("remitted_amount", 132_640, 132_641, 1)]
    assert differences(line("132640.01"), parcel(), ALL)[0][0] == "remitted_amount"


def test_a_stated_part_explains_the_difference() -> None:
    assert differences(line(132_639, cod_fee=4_861), parcel(), ALL) == [("cod_fee", 4_860, 4_861, -1)]
    assert differences(line(129_640, carrier_fee=15_000), parcel(), ALL) == [("carrier_fee", 12_000, 15_000, -3_000)]
    assert differences(line(131_640, cod_amount=149_000), parcel(), ALL) == [("cod_amount", 150_000, 149_000, -1_000)]
    assert differences(line(132_000, insurance_fee=600), parcel(), ALL) == [
        ("insurance_fee", 500, 600, -100),
        ("remitted_amount", 132_540, 132_000, -540),
    ]


def test_parts_that_cancel_out_are_differences_all_the_same() -> None:
    found = differences(line(132_640, cod_amount=150_001, cod_fee=4_861), parcel(), ALL)
    assert found == [("cod_amount", 150_000, 150_001, 1), ("cod_fee", 4_860, 4_861, -1)]


def test_a_fee_that_is_not_known_counts_as_stated() -> None:
    assert differences(line(132_640, cod_fee=4_860), parcel(cod_fee=None), ALL) == []
    assert differences(line(132_640), parcel(cod_fee=None), ALL) == [("remitted_amount", 137_500, 132_640, -4_860)]


@pytest.mark.parametrize(
    ("shipment", "kind"),
    [
        (None, "unknown_parcel"),
        (parcel(cod_amount=None), "not_cash_on_delivery"),
        (parcel(cod_remitted_at="earlier"), "remitted_before"),
        (parcel(shipping_status="returned"), "not_delivered"),
        (parcel(shipping_status="cancelled"), "not_delivered"),
        (parcel(shipping_status="lost"), "not_delivered"),
    ],
)
def test_a_line_that_nothing_is_expected_for(shipment: StoredShipment | None, kind: str) -> None:
    assert differences(line(132_640), shipment, ALL) == [(kind, 0, 132_640, 132_640)]
    assert differences(line(-12_000), shipment, ALL) == [(kind, 0, -12_000, -12_000)], "the carrier charges a return"
    result = reconcile_line(line(0), shipment, ALL)
    assert (result.expected, list(result.deviations), result.is_remittance) == (Decimal(0), [], False)


def test_money_may_arrive_before_the_news_of_the_delivery() -> None:
    result = reconcile_line(line(132_640), parcel(shipping_status="in_transit"), ALL)
    assert (list(result.deviations), result.is_remittance) == ([], True)


_AMOUNTS = st.decimals(min_value=0, max_value=10**9, places=2)
_FEES = st.one_of(st.none(), _AMOUNTS)
_KNOWN: dict[str, st.SearchStrategy[Any]] = {"cod_amount": _AMOUNTS, **dict.fromkeys(ALL, _FEES)}
_STATED: dict[str, st.SearchStrategy[Any]] = {"cod_amount": _AMOUNTS, **dict.fromkeys(ALL, _AMOUNTS)}


@given(
    known=st.fixed_dictionaries(_KNOWN),
    stated=st.fixed_dictionaries({}, optional=_STATED),
    amount=st.decimals(min_value=-(10**9), max_value=10**9, places=2),
    deductions=st.sampled_from([list(carrier.cod_deductions) for carrier in CARRIERS.values()]),
    status=st.sampled_from(["delivered", "in_transit", "returned"]),
)
def test_the_differences_of_a_line_add_up(
    known: dict[str, Decimal | None],
    stated: dict[str, Decimal],
    amount: Decimal,
    deductions: list[Deduction],
    status: str,
) -> None:
    shipment = parcel(**known, shipping_status=status)
    sent = SettlementLineIn(parcel="JNE1", amount=amount, **stated)
    result = reconcile_line(sent, shipment, deductions)
    total = sum((one.difference for one in result.deviations), Decimal(0))
    assert total == amount - result.expected
    assert all(one.difference and abs(one.difference) == abs(one.actual - one.expected) for one in result.deviations)
