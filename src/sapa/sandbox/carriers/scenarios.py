"""The steps of a simulated booking: fixed when it is booked, changed only by a cancellation or an advance."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Literal

import msgspec
from msgspec import Struct

Kind = Literal["instant", "express"]
Slow = Literal["aloud", "silently"]
"""Whether a carrier that cancels slowly reports it meanwhile."""

LABELLED = "labelled"
"""Not a status of a shipment: an express parcel gets its awb."""

PAID = "paid"
"""Not a status of a shipment either: somebody pays the booking."""

MARKS = frozenset({LABELLED, PAID})

LABEL_SECONDS = 0.5
LATE_LABEL_SECONDS = 60.0
PAYMENT_SECONDS = 120.0
SLOW_CANCEL_SECONDS = 5.0

SCENARIOS = (
    "no_driver",
    "driver_cancels",
    "reassign",
    "delivery_failed",
    "returned",
    "lost",
    "booking_rejected",
    "booking_timeout",
    "booking_timeout_not_booked",
    "unpaid",
    "cancel_refused",
    "cancel_slow",
    "awb_late",
    "webhook_duplicate",
    "webhook_out_of_order",
    "carrier_down",
    "slow_quote",
)

_SCENARIO_STEPS: dict[Kind, dict[str, list[tuple[str, float]]]] = {
    "instant": {
        "ordinary": [
            ("finding_driver", 0),
            ("driver_assigned", 5),
            ("picking_up", 10),
            ("picked_up", 20),
            ("out_for_delivery", 30),
            ("delivered", 60),
        ],
        "no_driver": [("finding_driver", 0), ("no_driver", 30)],
        "driver_cancels": [("finding_driver", 0), ("driver_assigned", 5), ("picking_up", 10), ("cancelled", 15)],
        "reassign": [
            ("finding_driver", 0),
            ("driver_assigned", 5),
            ("picking_up", 10),
            ("driver_assigned", 15),
            ("picking_up", 20),
            ("picked_up", 30),
            ("out_for_delivery", 40),
            ("delivered", 70),
        ],
        "delivery_failed": [("finding_driver", 0), ("driver_assigned", 5), ("picking_up", 10), ("picked_up", 20),
                            ("out_for_delivery", 30), ("delivery_failed", 45)],
        "returned": [("finding_driver", 0), ("driver_assigned", 5), ("picking_up", 10), ("picked_up", 20),
                     ("out_for_delivery", 30), ("returning", 45), ("returned", 75)],
        "lost": [("finding_driver", 0), ("driver_assigned", 5), ("picking_up", 10), ("picked_up", 20), ("lost", 45)],
    },
    "express": {
        "ordinary": [("confirmed", 0), ("picked_up", 200), ("in_transit", 300), ("delivered", 600)],
        "delivery_failed": [("confirmed", 0), ("picked_up", 200), ("in_transit", 300), ("delivery_failed", 450)],
        "returned": [("confirmed", 0), ("picked_up", 200), ("in_transit", 300), ("returning", 450), ("returned", 750)],
        "lost": [("confirmed", 0), ("picked_up", 200), ("in_transit", 300), ("lost", 450)],
    },
}  # fmt: skip


class ScenarioStep(Struct, frozen=True, omit_defaults=True):
    """A state, its time and its details."""

    state: str
    at: datetime
    driver: int = 0
    """0 for the first driver, then their replacements."""
    by: str | None = None
    reason: str | None = None


class UnknownState(Exception):
    """A state that the simulator cannot reach; the message lists those it can."""


def find_scenario(*texts: str | None) -> str | None:
    """The first `#sim:name` in the texts."""
    for word in " ".join(text for text in texts if text).replace("(", " ").replace(")", " ").split():
        name = word.removeprefix("#sim:")
        if name != word and name in SCENARIOS:
            return name
    return None


def build_steps(kind: Kind, scenario: str | None, booked_at: datetime) -> list[ScenarioStep]:
    scenarios = _SCENARIO_STEPS[kind]
    planned = scenarios.get(scenario or "ordinary", scenarios["ordinary"])
    steps: list[ScenarioStep] = []
    for state, seconds in planned:
        is_next = state == "driver_assigned" and any(step.state == state for step in steps)
        driver = (steps[-1].driver if steps else 0) + int(is_next)
        by = "driver" if scenario == "driver_cancels" and state == "cancelled" else None
        steps.append(ScenarioStep(state, booked_at + timedelta(seconds=seconds), driver, by))
    if kind == "express":
        after = LATE_LABEL_SECONDS if scenario == "awb_late" else LABEL_SECONDS
        if scenario == "unpaid":
            after += PAYMENT_SECONDS
            steps.insert(1, ScenarioStep(PAID, booked_at + timedelta(seconds=PAYMENT_SECONDS)))
        steps.insert(1, ScenarioStep(LABELLED, booked_at + timedelta(seconds=after)))
    return sorted(steps, key=lambda step: step.at)


def list_past(steps: Sequence[ScenarioStep], now: datetime) -> list[ScenarioStep]:
    """The first step always counts, even if the clock was set back since."""
    return [step for n, step in enumerate(steps) if n == 0 or step.at <= now]


def get_state(steps: Sequence[ScenarioStep], now: datetime) -> ScenarioStep:
    """The latest state; labels and payments are not states."""
    return next(step for step in reversed(list_past(steps, now)) if step.state not in MARKS)


def has_reached(steps: Sequence[ScenarioStep], now: datetime, *states: str) -> bool:
    return any(step.state in states for step in list_past(steps, now))


def advance_steps(steps: Sequence[ScenarioStep], now: datetime, kind: Kind, to: str | None) -> list[ScenarioStep]:
    """Makes the next state due now, or all up to the given one, and moves the later ones forward by as much."""
    past, upcoming = list_past(steps, now), [step for step in steps[1:] if step.at > now]
    last = next((n for n, step in enumerate(upcoming) if step.state != LABELLED and to in {None, step.state}), None)
    if last is None:
        return [*past, *_build_jump(upcoming, now, kind, to)]
    earlier = upcoming[last].at - now
    since, count = min(past[-1].at, now), last + 1
    moved = [
        msgspec.structs.replace(step, at=since + (now - since) * n / count)
        for n, step in enumerate(upcoming[:count], 1)
    ]
    rest = [msgspec.structs.replace(step, at=step.at - earlier) for step in upcoming[count:]]
    return [*past, *moved, *rest]


def _build_jump(upcoming: Sequence[ScenarioStep], now: datetime, kind: Kind, to: str | None) -> list[ScenarioStep]:
    """Jumps to a state that this scenario does not reach, and ends there."""
    states = sorted(
        {state for planned in _SCENARIO_STEPS[kind].values() for state, _ in planned} | {"cancelled", "on_hold"}
    )
    if to is None:
        raise UnknownState("is required, because the scenario has no further state")
    if to not in states:
        raise UnknownState(f"must be one of {', '.join(states)}")
    labels = [msgspec.structs.replace(step, at=now) for step in upcoming if step.state == LABELLED]
    return [*labels, ScenarioStep(to, now)]


def cancel(steps: Sequence[ScenarioStep], now: datetime, reason: str, slow: Slow | None) -> list[ScenarioStep]:
    """Drops the remaining steps. A slow carrier cancels later."""
    past, labels = list_past(steps, now), [step for step in steps if step.at > now and step.state == LABELLED]
    done = ScenarioStep("cancelled", now, by="client", reason=reason)
    pending = [msgspec.structs.replace(done, state="cancelling")] if slow == "aloud" else []
    if slow is not None:
        done = msgspec.structs.replace(done, at=now + timedelta(seconds=SLOW_CANCEL_SECONDS))
    return [*past, *sorted([*pending, done, *labels], key=lambda step: step.at)]


def is_cancelling(steps: Sequence[ScenarioStep]) -> bool:
    """Whether the client has cancelled, or the cancellation is pending."""
    return any(step.state == "cancelled" and step.by == "client" for step in steps)
