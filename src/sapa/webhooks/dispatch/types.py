"""Lanes, the deliveries in them, and the results of attempts."""

from datetime import datetime

from msgspec import Struct

RETRY_SECONDS = (30, 5 * 60, 30 * 60, 2 * 3600)
"""From the end of a failed attempt to the next."""
MAX_ATTEMPTS = len(RETRY_SECONDS) + 1
MAX_FAILURES = 10
"""Failed attempts in a row, over all deliveries of an endpoint, after which it is suspended."""


class DueLane(Struct, frozen=True):
    """A lane with deliveries in it that this worker may serve."""

    company_id: int
    endpoint_id: str
    is_orphaned: bool
    """The endpoint was deleted while a delivery was being queued for it."""
    wait_seconds: float
    """Until its next delivery is due, by company time; 0 or less when one is due."""


class Grant(Struct, frozen=True):
    """A lease of a lane; it ends when another worker gets a higher epoch."""

    endpoint_id: str
    epoch: int
    failures: int


class LockedLane(Struct, frozen=True):
    endpoint_id: str
    owner: str | None
    epoch: int
    failures: int


class Suspension(Struct, frozen=True):
    """An endpoint that has just been suspended."""

    url: str
    description: str | None
    auto_resume: bool
    suspended_at: str
    next_probe_at: str | None


class DueDelivery(Struct, frozen=True):
    """One event that is due at one endpoint. Kind and body are None once the event is past its retention."""

    endpoint_id: str
    id: str
    attempt: int
    event_id: str
    kind: str | None
    resource_id: str | None
    body: bytes | None
    traceparent: str | None = None
    """Of the call that recorded the event, if it was traced."""


class AttemptResult(Struct, frozen=True):
    """The outcome of one attempt, and the lane's epoch under which it was made."""

    company_id: int
    endpoint_id: str
    epoch: int
    delivery_id: str
    attempt: int
    kind: str
    started_at: datetime
    milliseconds: int
    status: int | None
    error: str | None
    message: str | None
    address: str | None
    response: bytes
    is_ours: bool = False
    """Not the receiver's fault: it neither uses up an attempt nor counts as a failure."""
    is_final: bool = False
    """No further attempt is made."""

    @property
    def is_counted(self) -> bool:
        """Whether it adds to the failures in a row, or resets them."""
        return not self.is_ours and not self.is_final

    @property
    def outcome(self) -> str:
        if self.error is None:
            return "delivered"
        return "failed" if self.is_final or self.attempt >= MAX_ATTEMPTS else "retrying"
