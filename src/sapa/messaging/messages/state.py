"""How what channels report of a message becomes one state of it. Pure: no database.

Reports come late, twice, out of order, with steps left out, and contradict each other. A status moves only upward;
each instant is the earliest that the reports prove, so that in any order they lead to the same instants.
"""

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from sapa.messaging.channels.interface import Status

RANKS: dict[str, int] = {"pending": 0, "sent": 1, "delivered": 2, "read": 3}
STEPS: Sequence[Status] = ("sent", "delivered", "read")
MAY_FAIL = frozenset({"pending", "sent"})


class DeliveryState(Struct, frozen=True):
    """What is known of an outbound message."""

    status: str
    created_at: datetime
    accepted_at: datetime | None = None
    """When the channel took it in answer to our call: then it was sent, and nothing happened to it before."""
    sent_at: datetime | None = None
    delivered_at: datetime | None = None
    read_at: datetime | None = None
    failed_at: datetime | None = None
    conflict: bool = False


class MergedState(Struct, frozen=True):
    state: DeliveryState
    implied: Sequence[Status]
    """Steps that nobody had reported and that this report proves."""
    at: datetime
    """The report's instant, put into the message's life."""


def merge(state: DeliveryState, status: Status, reported_at: datetime, now: datetime) -> MergedState:
    at = max(min(reported_at, now), state.accepted_at or state.created_at)
    if status == "failed":
        return MergedState(_fail(state, at), (), at)
    return _advance(state, status, at)


def _fail(state: DeliveryState, at: datetime) -> DeliveryState:
    """A message that arrived did not fail, whatever is said afterwards."""
    if state.status == "failed":
        return replace(state, failed_at=_earlier(state.failed_at, at))
    return replace(state, status="failed", failed_at=at) if state.status in MAY_FAIL else state


def _advance(state: DeliveryState, status: Status, at: datetime) -> MergedState:
    proven = STEPS[: STEPS.index(status) + 1]
    implied = [step for step in proven[:-1] if getattr(state, f"{step}_at") is None]
    instants = {f"{step}_at": _earlier(getattr(state, f"{step}_at"), at) for step in proven}
    return MergedState(replace(state, **instants, **_status_after(state, status)), implied, at)


def _status_after(state: DeliveryState, status: Status) -> dict[str, object]:
    if state.status == "failed":
        # That it was taken says nothing against a failure; that a device has it does.
        return {} if status == "sent" else {"status": status, "conflict": True}
    return {"status": status} if RANKS[status] > RANKS[state.status] else {}


def _earlier(existing: datetime | None, at: datetime) -> datetime:
    return at if existing is None else min(existing, at)
