"""Merges the channels' reports on a message into one state. Pure: no database.

Reports come late, twice, out of order and with steps missing, and contradict each other. A status only advances. Each
timestamp is the earliest that the reports prove, so every order of reports gives the same timestamps.
"""

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from sapa.messaging.channels.interface import Status

RANKS: dict[str, int] = {"pending": 0, "sent": 1, "delivered": 2, "read": 3}
STEPS: Sequence[Status] = ("sent", "delivered", "read")
FAILABLE = frozenset({"pending", "sent"})


class DeliveryState(Struct, frozen=True):
    """The state of an outbound message."""

    status: str
    created_at: datetime
    accepted_at: datetime | None = None
    """When the channel accepted it in response to our call. Nothing can have happened to the message earlier."""
    sent_at: datetime | None = None
    delivered_at: datetime | None = None
    read_at: datetime | None = None
    failed_at: datetime | None = None
    conflict: bool = False


class MergedState(Struct, frozen=True):
    state: DeliveryState
    implied: Sequence[Status]
    """Steps that this report proves and that were not reported."""
    at: datetime
    """The report's timestamp, clamped to the message's lifetime."""


def merge(state: DeliveryState, status: Status, reported_at: datetime, now: datetime) -> MergedState:
    at = max(min(reported_at, now), state.accepted_at or state.created_at)
    if status == "failed":
        return MergedState(_fail(state, at), (), at)
    return _advance(state, status, at)


def _fail(state: DeliveryState, at: datetime) -> DeliveryState:
    """A delivered message cannot fail, whatever is reported later."""
    if state.status == "failed":
        return replace(state, failed_at=_earlier(state.failed_at, at))
    return replace(state, status="failed", failed_at=at) if state.status in FAILABLE else state


def _advance(state: DeliveryState, status: Status, at: datetime) -> MergedState:
    instants = [state.sent_at, state.delivered_at, state.read_at]
    implied = []
    for place, step in enumerate(STEPS):
        if instants[place] is None and step != status:
            implied.append(step)
        instants[place] = _earlier(instants[place], at)
        if step == status:
            break
    sent_at, delivered_at, read_at = instants
    new_status, conflict = _get_status_after(state, status)
    advanced = DeliveryState(
        new_status, state.created_at, state.accepted_at, sent_at, delivered_at, read_at, state.failed_at, conflict
    )
    return MergedState(advanced, implied, at)


def _get_status_after(state: DeliveryState, status: Status) -> tuple[str, bool]:
    """The status after the report, and whether the reports contradict each other."""
    if state.status == "failed":
        # Acceptance by the channel does not contradict a failure; delivery to a device does.
        return (state.status, state.conflict) if status == "sent" else (status, True)
    return max(state.status, status, key=RANKS.__getitem__), state.conflict


def _earlier(existing: datetime | None, at: datetime) -> datetime:
    return at if existing is None else min(existing, at)
