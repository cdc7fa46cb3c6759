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
    proven = STEPS[: STEPS.index(status) + 1]
    implied = [step for step in proven[:-1] if getattr(state, f"{step}_at") is None]
    instants = {f"{step}_at": _earlier(getattr(state, f"{step}_at"), at) for step in proven}
    return MergedState(replace(state, **instants, **_status_after(state, status)), implied, at)


def _status_after(state: DeliveryState, status: Status) -> dict[str, object]:
    if state.status == "failed":
        # Acceptance by the channel does not contradict a failure; delivery to a device does.
        return {} if status == "sent" else {"status": status, "conflict": True}
    return {"status": status} if RANKS[status] > RANKS[state.status] else {}


def _earlier(existing: datetime | None, at: datetime) -> datetime:
    return at if existing is None else min(existing, at)
