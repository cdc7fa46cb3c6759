"""Verifies deliveries of webhooks and reads their events."""

from __future__ import annotations

import time
from base64 import b64decode, b64encode
from collections.abc import Mapping
from datetime import UTC, datetime
from hmac import compare_digest, digest
from typing import Any

import msgspec

from . import types
from ._errors import SapaError
from .events import BY_KIND, AnyEvent, TruncatedEvent, UnknownEvent

TOLERANCE_SECONDS = 300
LONGEST_TIMESTAMP = 12
_SECRET_PREFIX = "whsec_"  # noqa: S105


class InvalidWebhook(SapaError):
    """The delivery is not from Sapa, was changed on its way, or is too old. Answer it with 400."""


def verify(
    body: bytes | str, headers: Mapping[str, str], secret: str, *, tolerance: float = TOLERANCE_SECONDS
) -> AnyEvent:
    """Checks the signature of a delivery and returns its event; raises `InvalidWebhook`.

    Pass the body exactly as it was received: parsed and written again, it has other bytes. `secret` is the signing
    secret of the endpoint, `whsec_…`. A delivery that was sent more than `tolerance` seconds ago is refused, so that
    nobody can send it once more later.
    """
    content = body.encode() if isinstance(body, str) else bytes(body)
    received = {name.lower(): value for name, value in headers.items()}
    id, timestamp = _get(received, "webhook-id"), _get(received, "webhook-timestamp")
    signatures = _get(received, "webhook-signature").split()
    _check_age(timestamp, tolerance)
    expected = sign(content, id, timestamp, secret)
    if not any(compare_digest(_encode(signature), expected.encode()) for signature in signatures):
        raise InvalidWebhook("No signature matches. Check the secret, and pass the body as it was received.")
    sent_at = datetime.fromtimestamp(int(timestamp), UTC)
    return _read_event(content, id, _get(received, "x-service-webhook-event"), sent_at)


def sign(body: bytes, id: str, timestamp: str, secret: str) -> str:
    """The signature of a delivery, as Standard Webhooks defines it."""
    signed = _encode(id) + b"." + timestamp.encode() + b"." + body
    return "v1," + b64encode(digest(_read_key(secret), signed, "sha256")).decode()


def _read_key(secret: str) -> bytes:
    encoded = secret.strip().removeprefix(_SECRET_PREFIX).rstrip("=")
    try:
        key = b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)
    except ValueError:
        key = b""
    if not key:  # anybody can sign with an empty one
        raise ValueError("The secret is not a signing secret: pass it whole, whsec_…, as it was shown.")
    return key


def _encode(header: str) -> bytes:
    """Servers decode headers in several ways, and a stranger may send any bytes."""
    return header.encode(errors="surrogatepass")


def _get(headers: Mapping[str, str], name: str) -> str:
    if name not in headers:
        raise InvalidWebhook(f"The header {name} is missing.")
    return headers[name]


def _check_age(timestamp: str, tolerance: float) -> None:
    if not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= LONGEST_TIMESTAMP):
        raise InvalidWebhook("The header webhook-timestamp is not a time.")
    if abs(time.time() - int(timestamp)) > tolerance:
        raise InvalidWebhook(f"The delivery was not sent within the last {tolerance:g} seconds.")


def _read_event(content: bytes, id: str, kind: str, sent_at: datetime) -> AnyEvent:
    try:
        resource: Any = msgspec.json.decode(content)
        if isinstance(resource, dict) and resource.get("truncated") is True:
            data = msgspec.convert(resource, types.TruncatedResource)
            return TruncatedEvent(id=id, kind=kind, sent_at=sent_at, data=data)
        if kind not in BY_KIND:
            return UnknownEvent(id=id, kind=kind, sent_at=sent_at, data=resource)
        event_type = BY_KIND[kind]
        data_type = msgspec.structs.fields(event_type)[-1].type
        event: AnyEvent = event_type(id=id, sent_at=sent_at, data=msgspec.json.decode(content, type=data_type))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidWebhook(f"The body is not an event of this kind: {error}.") from error
    return event
