"""A sample delivery, to test an endpoint."""

from functools import lru_cache
from typing import Annotated

from msgspec import Meta, Struct

from sapa.db.pool import Connection
from sapa.events import CATALOGUE, EVENT_ID
from sapa.http.errors import Invalid
from sapa.http.openapi import build_document
from sapa.settings import WebhookSettings
from sapa.values.json import encode
from sapa.values.sealing import Vault
from sapa.webhooks.endpoints import queries
from sapa.webhooks.endpoints.fields import build_target, check_events
from sapa.webhooks.sender import (
    SendResult,
    Target,
    WebhookMessage,
    WebhookSender,
)


class WebhookTestResult(Struct, frozen=True, rename="camel"):
    """What the receiver did with a sample event."""

    event_id: Annotated[str, Meta(examples=[EVENT_ID.example])]
    event: Annotated[str, Meta(examples=["customer.created"])]
    delivered: Annotated[bool, Meta(examples=[True], description="Whether the response was a 2xx.")]
    status: Annotated[int | None, Meta(examples=[200], description="Null if there was no response.")]
    milliseconds: Annotated[int, Meta(examples=[87])]
    error: str | None
    message: str | None
    address: Annotated[str | None, Meta(examples=["198.51.100.7"])]
    response: Annotated[str, Meta(examples=["ok"], description="The beginning of the response's body, at most 4 KB.")]


async def prepare_test_event(
    db: Connection, vault: Vault, company_id: int, id: str, kind: str | None
) -> tuple[Target, WebhookMessage]:
    """A signed sample event, by default of the endpoint's first kind. It is not recorded."""
    stored = await queries.get_endpoint(db, company_id, id)
    chosen = kind or next(iter(stored.kinds or CATALOGUE))
    check_events([chosen], "event")
    return build_target(vault, stored), WebhookMessage(EVENT_ID.new(), chosen, build_sample(chosen))


async def send_test_event(settings: WebhookSettings, target: Target, message: WebhookMessage) -> SendResult:
    sender = WebhookSender(settings)
    try:
        return await sender.send(target, message)
    finally:
        await sender.close()


def build_result(message: WebhookMessage, outcome: SendResult) -> WebhookTestResult:
    return WebhookTestResult(
        event_id=message.event_id,
        event=message.kind,
        delivered=outcome.delivered,
        status=outcome.status,
        milliseconds=outcome.milliseconds,
        error=outcome.error,
        message=outcome.message,
        address=outcome.address,
        response=outcome.response.decode(errors="replace"),
    )


@lru_cache
def build_sample(kind: str) -> bytes:
    """The example that the reference shows for this kind."""
    described = build_document(CATALOGUE[kind].base, "", []).content["webhooks"][kind]["post"]
    media = described["requestBody"]["content"]["application/json"]
    example = media.get("example")
    if example is None:
        raise Invalid.field("event", f"there is no sample of {kind}")
    return encode(example)
