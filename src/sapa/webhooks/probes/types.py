"""Probes of suspended endpoints."""

from datetime import datetime

from msgspec import Struct

from sapa.webhooks.dispatch.types import DueDelivery
from sapa.webhooks.sender import Target, WebhookMessage


class DueProbe(Struct, frozen=True):
    """A suspended endpoint that is to be probed now."""

    company_id: int
    endpoint_id: str


class Probe(Struct, frozen=True):
    """The delivery that is sent as a probe, and where to."""

    delivery: DueDelivery
    message: WebhookMessage
    target: Target


class ProbeResult(Struct, frozen=True):
    """What is stored of a probe; the outcome is that of the delivery."""

    started_at: datetime
    milliseconds: int
    status: int | None
    error: str | None
    message: str | None
    address: str | None
    response: bytes
    outcome: str
