"""The tables of statuses and codes, entry by entry."""

import pytest

from sapa.shipping.carriers.biteship.statuses import BY_WORD as BITESHIP
from sapa.shipping.carriers.biteship.statuses import find_status as find_biteship
from sapa.shipping.carriers.dash.statuses import find_status as find_dash
from sapa.shipping.carriers.gosend.statuses import find_status as find_gosend
from sapa.shipping.carriers.kiriminaja.statuses import BY_CODE, BY_METHOD, find_status

KIRIMINAJA = {
    "confirmed": [100, 101, 102, 105, 110],
    "picked_up": [103, 104],
    "in_transit": [106, 107, 211],
    "on_hold": [210, 500, 555, 901, 902, 903, 904, 905],
    "delivery_failed": [152, 301, 310, 311],
    "delivered": [200],
    "cancelled": [300, 302],
    "cancelling": [350],
    "returning": [401, 402, 403, 404, 405, 406],
    "returned": [400],
    "lost": [303, 333, 701, 702, 703, 704],
}


def test_kiriminajas_codes() -> None:
    assert {code: status for status, codes in KIRIMINAJA.items() for code in codes} == BY_CODE
    assert BY_CODE.get(999) is None


@pytest.mark.parametrize(
    ("code", "text", "status"),
    [
        (100, "Received at sorting center BANDUNG", "in_transit"),
        (100, "PAKET DALAM PERJALANAN", "in_transit"),
        (100, "Shipment forwarded to destination", "in_transit"),
        (100, "Paket dibuat", "confirmed"),
        (100, "", "confirmed"),
        (100, None, "confirmed"),
        (101, "transit", "confirmed"),
        (200, "transit", "delivered"),
        (None, "transit", None),
    ],
)
def test_a_new_parcel_of_kiriminaja_is_in_transit_if_its_text_says_so(
    code: int | None, text: str | None, status: str | None
) -> None:
    assert find_status(code, text) == status


@pytest.mark.parametrize(
    ("method", "status"),
    [
        ("processed_packages", "confirmed"),
        ("validated_packages", "confirmed"),
        ("shipped_packages", "picked_up"),
        ("finished_packages", "delivered"),
        ("canceled_packages", "cancelled"),
        ("rejected_packages", "rejected"),
        ("returned_packages", "returning"),
        ("return_finished_packages", "returned"),
        ("new_packages", None),
    ],
)
def test_kiriminajas_methods(method: str, status: str | None) -> None:
    assert BY_METHOD.get(method) == status


@pytest.mark.parametrize(
    ("word", "before", "after"),
    [
        ("confirmed", "finding_driver", "finding_driver"),
        ("allocated", "driver_assigned", "driver_assigned"),
        ("out_for_pickup", "picking_up", "picking_up"),
        ("picked", "picked_up", "picked_up"),
        ("out_for_delivery", "out_for_delivery", "out_for_delivery"),
        ("on_hold", "on_hold", "on_hold"),
        ("delivered", "delivered", "delivered"),
        ("cancelled", "cancelled", "cancelled"),
        ("rejected", "rejected", "returning"),
        ("no_driver", "no_driver", "no_driver"),
        ("teleported", None, None),
    ],
)
def test_gosends_words(word: str, before: str | None, after: str | None) -> None:
    assert (find_gosend(word, was_picked_up=False), find_gosend(word, was_picked_up=True)) == (before, after)


@pytest.mark.parametrize(
    ("word", "before", "after"),
    [
        ("QUEUEING", "scheduled", "scheduled"),
        ("ALLOCATING", "finding_driver", "finding_driver"),
        ("PENDING_PICKUP", "driver_assigned", "driver_assigned"),
        ("PICKING_UP", "picking_up", "picking_up"),
        ("PENDING_DELIVERY", "picked_up", "picked_up"),
        ("IN_DELIVERY", "out_for_delivery", "out_for_delivery"),
        ("COMPLETED", "delivered", "delivered"),
        ("CANCELLED", "cancelled", "cancelled"),
        ("FAILED", "rejected", "returning"),
        ("IN_RETURN", "returning", "returning"),
        ("RETURNED", "returned", "returned"),
        ("TELEPORTED", None, None),
    ],
)
def test_dashs_words(word: str, before: str | None, after: str | None) -> None:
    assert (find_dash(word, was_picked_up=False), find_dash(word, was_picked_up=True)) == (before, after)


def test_biteships_words() -> None:
    assert BITESHIP == {
        "confirmed": "confirmed",
        "scheduled": "scheduled",
        "allocated": "driver_assigned",
        "picking_up": "picking_up",
        "picked": "picked_up",
        "dropping_off": "out_for_delivery",
        "on_hold": "on_hold",
        "delivered": "delivered",
        "rejected": "rejected",
        "courier_not_found": "no_driver",
        "cancelled": "cancelled",
        "return_in_transit": "returning",
        "returned": "returned",
        "disposed": "lost",
    }


@pytest.mark.parametrize(
    ("word", "status"),
    [
        ("pickingUp", "picking_up"),
        ("droppingOff", "out_for_delivery"),
        ("onHold", "on_hold"),
        ("returnInTransit", "returning"),
        ("courierNotFound", "no_driver"),
        ("delivered", "delivered"),
        ("teleportedAway", None),
        ("", None),
        (None, None),
    ],
)
def test_biteships_words_of_tracking(word: str | None, status: str | None) -> None:
    assert find_biteship(word) == status
