"""Reports in every order and with duplicates lead to the state that the rules give."""

from datetime import UTC, datetime, timedelta
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapa.messaging.channels.interface import Status
from sapa.messaging.messages.state import (
    RANKS,
    STEPS,
    DeliveryState,
    merge,
)

CREATED = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)
NOW = CREATED + timedelta(hours=1)
STATUSES: tuple[Status, ...] = ("sent", "delivered", "read", "failed")

Report = tuple[Status, datetime]


def at(seconds: float) -> datetime:
    return CREATED + timedelta(seconds=seconds)


def apply_all(state: DeliveryState, reports: list[Report]) -> DeliveryState:
    for status, when in reports:
        state = merge(state, status, when, NOW).state
    return state


def expected_status(reports: list[Report]) -> tuple[str, bool]:
    """The rules written another way: a walk over the reports."""
    status, conflict = "pending", False
    for reported, _ in reports:
        if reported == "failed":
            status = "failed" if status in {"pending", "sent"} else status
        elif status == "failed":
            if reported != "sent":
                status, conflict = reported, True
        else:
            status = max(status, reported, key=lambda word: RANKS[word])
    return status, conflict


def expected_instant(reports: list[Report], step: Status, floor: datetime) -> datetime | None:
    """The earliest report that proves the step: its own or a later one."""
    proofs = [when for status, when in reports if status in STEPS[STEPS.index(step) :]]
    return max(min(min(proofs), NOW), floor) if proofs else None


def check(reports: list[Report]) -> None:
    state = apply_all(DeliveryState("pending", CREATED), reports)
    assert (state.status, state.conflict) == expected_status(reports)
    assert state.sent_at == expected_instant(reports, "sent", CREATED)
    assert state.delivered_at == expected_instant(reports, "delivered", CREATED)
    assert state.read_at == expected_instant(reports, "read", CREATED)
    instants = [when for when in (state.sent_at, state.delivered_at, state.read_at) if when]
    assert instants == sorted(instants)
    assert (state.failed_at is not None) == (state.status == "failed" or state.conflict)


@pytest.mark.parametrize("twice", [False, True])
def test_every_permutation_of_the_four(twice: bool) -> None:
    times = {"sent": at(1), "delivered": at(2), "read": at(3), "failed": at(4)}
    for order in permutations(STATUSES):
        reports = [(status, times[status]) for status in order]
        check([report for report in reports for _ in range(2)] if twice else reports)


reports_strategy = st.lists(st.tuples(st.sampled_from(STATUSES), st.integers(-100, 5000).map(at)), max_size=8)


@given(reports_strategy)
def test_any_reports_in_any_order(reports: list[Report]) -> None:
    check(reports)


@given(reports_strategy)
def test_applying_all_reports_again_changes_nothing(reports: list[Report]) -> None:
    positive = [report for report in reports if report[0] != "failed"]
    once = apply_all(DeliveryState("pending", CREATED), positive)
    assert apply_all(once, positive) == once


@given(reports_strategy, st.randoms())
def test_without_failures_the_order_does_not_matter(reports: list[Report], random: object) -> None:
    positive = [report for report in reports if report[0] != "failed"]
    shuffled = positive.copy()
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert apply_all(DeliveryState("pending", CREATED), shuffled) == apply_all(
        DeliveryState("pending", CREATED), positive
    )


@given(reports_strategy)
def test_the_acceptance_time_stays_as_it_was_returned(reports: list[Report]) -> None:
    """A channel that reports whole seconds does not change the sending time that the caller saw."""
    taken = DeliveryState("sent", CREATED, accepted_at=at(0.7), sent_at=at(0.7))
    state = apply_all(taken, reports)
    assert state.sent_at == at(0.7)
    assert all(when >= at(0.7) for when in (state.delivered_at, state.read_at, state.failed_at) if when)


def test_a_read_message_counts_as_delivered_without_a_report() -> None:
    merged = merge(DeliveryState("sent", CREATED, sent_at=at(1)), "read", at(5), NOW)
    assert list(merged.implied) == ["delivered"]
    assert (merged.state.delivered_at, merged.state.read_at) == (at(5), at(5))


def test_a_report_from_the_future_counts_as_now() -> None:
    assert merge(DeliveryState("sent", CREATED), "delivered", NOW + timedelta(days=1), NOW).state.delivered_at == NOW
