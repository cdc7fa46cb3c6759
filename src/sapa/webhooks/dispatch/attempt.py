"""One attempt: what is sent for a delivery, and what is written down of it. Nothing here waits for anybody."""

from datetime import UTC, datetime

from msgspec.structs import replace

from sapa.http.endpoints import Base
from sapa.webhooks.dispatch.slots import ActiveLane
from sapa.webhooks.dispatch.types import DueDelivery, Result
from sapa.webhooks.sender import Outcome, WebhookMessage, shorten

RESOURCES = {
    "customer": f"{Base.CUSTOMER}/customers",
    "order": f"{Base.CUSTOMER}/orders",
    "product": f"{Base.CUSTOMER}/products",
    "shipment": f"{Base.CUSTOMER}/shipping/shipments",
    "message": f"{Base.MESSAGING}/messages",
    "ticket": f"{Base.MESSAGING}/tickets",
}

GONE = "the event is older than events are kept, so there is nothing left to send"

UNRECORDED = "the outcome of this attempt could not be stored, so it counts as failed and is not sent again"


def build_message(delivery: DueDelivery, address: str) -> WebhookMessage | None:
    """None when the event is gone."""
    if delivery.kind is None or delivery.resource_id is None or delivery.body is None:
        return None
    url = build_url(address, delivery.kind, delivery.resource_id)
    return WebhookMessage(delivery.event_id, delivery.kind, shorten(delivery.body, delivery.resource_id, url))


def build_url(address: str, kind: str, resource_id: str) -> str | None:
    """Where a resource that is too large for a delivery can be read; nowhere once it is deleted."""
    resource, _, happened = kind.partition(".")
    path = RESOURCES.get(resource)
    return f"{address}{path}/{resource_id}" if path and happened != "deleted" else None


def build_result(lane: ActiveLane, delivery: DueDelivery, outcome: Outcome) -> Result:
    return Result(
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
        message=_storable(outcome.message),
        address=_storable(outcome.address),
        response=outcome.response,
        is_ours=outcome.retry_uncounted,
    )


def build_gone(lane: ActiveLane, delivery: DueDelivery) -> Result:
    """There is nothing to send any more, and nobody is to blame."""
    return replace(build_result(lane, delivery, _unsent("expired", GONE)), is_final=True)


def build_stumble(lane: ActiveLane, delivery: DueDelivery) -> Result:
    """Our own fault."""
    return build_result(lane, delivery, replace(_unsent("internal", None), retry_uncounted=True))


def without_words(result: Result) -> Result:
    """The same outcome without what the receiver said."""
    return replace(result, message=None, address=None, response=b"")


def build_unrecorded(result: Result) -> Result:
    """In place of an outcome that the database does not take."""
    return replace(
        without_words(result),
        started_at=datetime.now(UTC),
        milliseconds=0,
        status=None,
        error="unrecorded",
        message=UNRECORDED,
        is_ours=False,
        is_final=True,
    )


def build_postponed(result: Result) -> Result:
    """The delivery is tried later, and nothing is written down of this attempt."""
    return replace(result, error="unrecorded", is_ours=True)


def _unsent(error: str, message: str | None) -> Outcome:
    return Outcome(datetime.now(UTC), 0, None, error, message, None, b"")


def _storable(text: str | None) -> str | None:
    """What PostgreSQL takes: receivers may make us say anything."""
    if text is None or text.isprintable():
        return text
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode(errors="replace").decode()
