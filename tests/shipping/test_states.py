"""The table of statuses: complete, consistent, and the same in the manual."""

from pathlib import Path

import pytest

from sapa.shipping import states
from sapa.shipping.states import ACTORS, GROUP_OF, MOVES, STATUSES, TERMINAL, is_allowed, list_next, print_table

MANUAL = Path(__file__).parents[2] / "docs" / "shipping.md"


def test_every_status_is_in_the_table_and_in_one_group() -> None:
    assert set(MOVES) == set(STATUSES)
    assert len(STATUSES) == len(set(STATUSES)) == sum(map(len, states.GROUPS.values())) == 25


def test_moves_lead_to_statuses_and_never_to_where_they_start() -> None:
    for status, row in MOVES.items():
        for actor, targets in row.items():
            assert actor in ACTORS
            assert targets <= set(STATUSES)
            assert status not in targets


def reachable(start: str) -> set[str]:
    found, new = set(), {start}
    while new:
        found |= new
        new = {to for status in new for targets in MOVES[status].values() for to in targets} - found
    return found


def test_every_status_can_be_reached_from_a_draft() -> None:
    assert reachable("draft") == set(STATUSES)


@pytest.mark.parametrize("status", sorted(set(STATUSES) - TERMINAL))
def test_whatever_is_not_over_can_come_to_an_end(status: str) -> None:
    assert reachable(status) & TERMINAL


def test_what_was_delivered_comes_back_at_most() -> None:
    assert list_next("delivered", "carrier") == ["returning"]
    assert (
        list_next("delivered", "caller")
        == list_next("delivered", "sapa")
        == list_next("delivered", "reassignment")[1:]
        == []
    )


@pytest.mark.parametrize("status", [*states.GROUPS["accepted"], "no_driver", "rejected"])
def test_a_final_status_is_accepted_without_the_statuses_before_it(status: str) -> None:
    ends = {
        "picked_up",
        "in_transit",
        "out_for_delivery",
        "delivery_failed",
        "delivered",
        "returning",
        "returned",
        "lost",
    }
    assert ends <= set(list_next(status, "carrier"))


def test_a_picked_up_shipment_cannot_be_cancelled_through_the_api() -> None:
    for status in ("picked_up", "in_transit", "out_for_delivery", "delivery_failed", "delivered", "returning"):
        assert not is_allowed(status, "cancelling", "caller")
        assert not is_allowed(status, "cancelled", "caller")


def test_only_a_new_driver_leads_back_over_the_pick_up() -> None:
    for status in ("picked_up", "in_transit", "out_for_delivery"):
        for back in ("finding_driver", "driver_assigned", "picking_up"):
            assert not is_allowed(status, back, "carrier")
            assert is_allowed(status, back, "reassignment")


def test_the_manual_shows_this_table() -> None:
    assert print_table() in MANUAL.read_text()


def test_groups_and_rebooking_are_those_of_the_statuses() -> None:
    assert {GROUP_OF[status] for status in TERMINAL} == {"delivered", "returned", "cancelled", "failed"}
    for status in states.REBOOKABLE | {"draft", "awaiting"}:
        assert is_allowed(status, "booking", "caller")
    for status in set(STATUSES) - states.BOOKABLE:
        assert not is_allowed(status, "booking", "caller")
