"""Who goes next, and how many at once."""

import time
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapa.webhooks.dispatch.slots import (
    HEALTHY_SLOTS,
    MAX_PER_ENDPOINT,
    MAX_SLOW_PER_COMPANY,
    SLOW_SLOTS,
    ActiveLane,
    Slots,
)
from sapa.webhooks.dispatch.types import DueDelivery, Grant

_numbers = count()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, which a test may move."""
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def make_lane(company_id: int, deliveries: int, failures: int = 0, resources: int = 1_000_000) -> ActiveLane:
    lane = ActiveLane(company_id, Grant(f"whe_{next(_numbers)}", 1, failures), until=1e12)
    lane.fresh_until = 1e12
    lane.add_deliveries(make_deliveries(lane, deliveries, resources), deliveries + 1)
    return lane


def make_deliveries(lane: ActiveLane, number: int, resources: int) -> list[DueDelivery]:
    return [
        DueDelivery(lane.endpoint_id, f"whd_{n}", 1, f"evt_{n}", "customer.updated", f"cust_{n % resources}", b"{}")
        for n in range(number)
    ]


def start(spaces: Slots, *lanes: ActiveLane) -> list[tuple[ActiveLane, DueDelivery]]:
    for lane in lanes:
        spaces.enqueue(lane)
    return list(spaces.assign())


def test_a_lane_grows_with_success_and_shrinks_with_a_failure() -> None:
    spaces, lane = Slots(), make_lane(1, 100)
    under_way = start(spaces, lane)
    widths = [len(under_way)]
    for has_failed in [False, False, False, False, True, True, True, True, False]:
        _, delivery = under_way.pop(0)
        spaces.finish(lane, delivery, has_failed, is_counted=True)
        under_way += spaces.assign()
        widths.append(len(under_way))
    assert widths == [1, 2, 3, MAX_PER_ENDPOINT, 4, 3, 2, 1, 1, 2]


def test_endpoints_that_hang_leave_the_slots_of_those_that_respond(clock: list[float]) -> None:
    spaces = Slots()
    hanging = [make_lane(number, 10) for number in range(HEALTHY_SLOTS)]
    assert len(start(spaces, *hanging)) == HEALTHY_SLOTS
    healthy = [make_lane(1000 + number, 10) for number in range(HEALTHY_SLOTS)]
    assert start(spaces, *healthy) == []
    clock[0] += 2.1
    for lane in hanging:
        spaces.update_pool(lane)
    assert [lane for lane, _ in spaces.assign()] == healthy


def test_endpoints_that_fail_share_the_small_pool() -> None:
    spaces = Slots()
    failing = [make_lane(number, 10, failures=1) for number in range(SLOW_SLOTS + 50)]
    assert len(start(spaces, *failing)) == SLOW_SLOTS
    assert len(start(spaces, make_lane(5000, 10))) == 1


def test_a_company_has_its_share_of_the_small_pool_and_deferred_lanes_continue() -> None:
    spaces = Slots()
    lanes = [make_lane(1, 3, failures=1) for _ in range(MAX_SLOW_PER_COMPANY + 8)]
    under_way = start(spaces, *lanes)
    assert len(under_way) == MAX_SLOW_PER_COMPANY
    assert len(start(spaces, make_lane(2, 10, failures=1))) == 1
    served = {lane.endpoint_id for lane, _ in under_way}
    while under_way:
        lane, delivery = under_way.pop(0)
        spaces.finish(lane, delivery, has_failed=True, is_counted=True)
        under_way += spaces.assign()
        assert len(under_way) <= MAX_SLOW_PER_COMPANY
        served.add(lane.endpoint_id)
    assert len(served) == len(lanes)
    assert spaces.in_flight == 1


def test_endpoints_that_hang_leave_those_of_their_own_company_alone(clock: list[float]) -> None:
    """However many places they took while they still answered."""
    spaces = Slots()
    hanging = [make_lane(1, 100) for _ in range(9)]
    under_way = start(spaces, *hanging)
    while len(under_way) < 9 * MAX_PER_ENDPOINT:
        lane, delivery = under_way.pop(0)
        spaces.finish(lane, delivery, has_failed=False, is_counted=True)
        under_way += spaces.assign()
    healthy = make_lane(1, 100)
    assert [lane for lane, _ in start(spaces, healthy)] == [healthy]
    clock[0] += 2.1
    for lane in hanging:
        spaces.update_pool(lane)
    for lane, delivery in under_way[:4]:
        spaces.finish(lane, delivery, has_failed=False, is_counted=True)
    assert list(spaces.assign()) == [], "they have more than the company's share of the small pool already"
    other = make_lane(1, 100)
    assert [lane for lane, _ in start(spaces, other)] == [other]


@given(st.lists(st.tuples(st.sampled_from(["finish", "fail", "wait"]), st.integers(0, 50)), max_size=120))
def test_no_delivery_is_lost_while_lanes_change_pools(moves: list[tuple[str, int]]) -> None:
    """Whatever happens to twelve endpoints of one company: when all answer again, all is sent."""
    now = [1000.0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "monotonic", lambda: now[0])
        spaces, lanes = Slots(), [make_lane(1, 40) for _ in range(12)]
        under_way = start(spaces, *lanes)
        sent = len(under_way)
        for move, choice in moves + [("finish", 0)] * 1000:
            if move == "wait":
                now[0] += 1.5
                for lane in lanes:
                    spaces.update_pool(lane)
            elif under_way:
                lane, delivery = under_way.pop(choice % len(under_way))
                spaces.finish(lane, delivery, move == "fail", is_counted=not lane.is_exhausted and move != "fail")
            begun = list(spaces.assign())
            under_way, sent = under_way + begun, sent + len(begun)
            assert spaces.in_flight == len(under_way)
    assert sent == 12 * 40


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 3)), max_size=80), st.integers(1, 6))
def test_resources_keep_their_order_whatever_finishes_first(moves: list[tuple[bool, int]], resources: int) -> None:
    spaces, lane = Slots(), make_lane(1, 40, resources=resources)
    under_way = [delivery for _, delivery in start(spaces, lane)]
    sent = list(under_way)
    for has_failed, choice in moves:
        if not under_way:
            break
        done = under_way.pop(choice % len(under_way))
        spaces.finish(lane, done, has_failed, is_counted=False)
        begun = [delivery for _, delivery in spaces.assign()]
        under_way += begun
        sent += begun
        assert len({delivery.resource_id for delivery in under_way}) == len(under_way) <= MAX_PER_ENDPOINT
    for resource in {delivery.resource_id for delivery in sent}:
        order = [int(delivery.id[4:]) for delivery in sent if delivery.resource_id == resource]
        assert order == sorted(order)
