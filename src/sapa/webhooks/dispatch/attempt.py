"""One attempt: the message of a delivery, and the result that is stored. Pure functions."""

from datetime import UTC, datetime

from msgspec.structs import replace

from sapa.http.endpoints import Base
from sapa.webhooks.dispatch.slots import ActiveLane
from sapa.webhooks.dispatch.types import AttemptResult, DueDelivery
from sapa.webhooks.sender import SendResult, WebhookMessage, shorten

RESOURCES = {
    "customer": f"{Base.CUSTOMER}/customers",
    "order": f"{Base.CUSTOMER}/orders",
    "product": f"{Base.CUSTOMER}/products",
    "shipment": f"{Base.CUSTOMER}/shipping/shipments",
    "message": f"{Base.MESSAGING}/messages",
    "ticket": f"{Base.MESSAGING}/tickets",
}

GONE = "the event is past its retention, so it cannot be sent"

UNRECORDED = "the outcome of this attempt could not be stored, so it counts as failed and is not sent again"


def build_message(delivery: DueDelivery, address: str) -> WebhookMessage | None:
    """None when the event is past its retention."""
    if delivery.kind is None or delivery.resource_id is None or delivery.body is None:
        return None
    url = build_url(address, delivery.kind, delivery.resource_id)
    return WebhookMessage(delivery.event_id, delivery.kind, shorten(delivery.body, delivery.resource_id, url))


def build_url(address: str, kind: str, resource_id: str) -> str | None:
    """The URL of a resource that is too large for a delivery; None once it is deleted."""
    resource, _, change = kind.partition(".")
    path = RESOURCES.get(resource)
    return f"{address}{path}/{resource_id}" if path and change != "deleted" else None


def build_result(lane: ActiveLane, delivery: DueDelivery, outcome: SendResult) -> AttemptResult:
    return AttemptResult(
        company_id=lane.company_id,
        endpoint_id=lane.endpoint_id,
        epoch=lane.epoch,
        delivery_id=delivery.id,
        attempt=delivery.attempt,
        kind=delivery.kind or "unknown",
        started_at=outcome.started_at,
        milliseconds=outcome.milliseconds,
        status=outcome.status,
        error=outcome.error,
        message=clean(outcome.message),
        address=clean(outcome.address),
        response=outcome.response,
        is_ours=outcome.is_ours,
    )


def build_expired(lane: ActiveLane, delivery: DueDelivery) -> AttemptResult:
    """The event is past its retention; this does not count as a failure."""
    return replace(build_result(lane, delivery, _build_unsent("expired", GONE)), is_final=True)


def build_internal_failure(lane: ActiveLane, delivery: DueDelivery) -> AttemptResult:
    """An error of this installation."""
    return build_result(lane, delivery, replace(_build_unsent("internal", None), is_ours=True))


def strip_response(result: AttemptResult) -> AttemptResult:
    """The same result without the receiver's response."""
    return replace(result, message=None, address=None, response=b"")


def build_unrecorded(result: AttemptResult) -> AttemptResult:
    """In place of a result that the database does not accept."""
    return replace(
        strip_response(result),
        started_at=datetime.now(UTC),
        milliseconds=0,
        status=None,
        error="unrecorded",
        message=UNRECORDED,
        is_ours=False,
        is_final=True,
    )


def build_postponed(result: AttemptResult) -> AttemptResult:
    """The delivery is retried later, and this attempt is not recorded."""
    return replace(result, error="unrecorded", is_ours=True)


def _build_unsent(error: str, message: str | None) -> SendResult:
    return SendResult(datetime.now(UTC), 0, None, error, message, None, b"")


def clean(text: str | None) -> str | None:
    """Text that PostgreSQL accepts: messages may contain what a receiver sent."""
    if text is None or text.isprintable():
        return text
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode(errors="replace").decode()
