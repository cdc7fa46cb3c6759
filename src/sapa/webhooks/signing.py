"""The headers that authenticate a delivery: our own signature, and that of Standard Webhooks."""

import os
from base64 import b64decode, b64encode
from collections.abc import Sequence
from hmac import digest

SECRET_PREFIX = "whsec_"  # noqa: S105
_SECRET_BYTES = 32

USER_AGENT = "Service-Webhooks/1.0"


def new_secret() -> str:
    return SECRET_PREFIX + b64encode(os.urandom(_SECRET_BYTES)).decode()


def build_headers(secrets: Sequence[str], event_id: str, kind: str, body: bytes, t: int) -> dict[str, str]:
    """The headers of one attempt at the time `t`, signed with each secret, the current one first."""
    timestamp = str(t)
    signed = timestamp.encode() + b"." + body
    signed_with_id = event_id.encode() + b"." + signed
    own = [f"v1={digest(secret.encode(), signed, 'sha256').hex()}" for secret in secrets]
    standard = ["v1," + b64encode(digest(_decode(secret), signed_with_id, "sha256")).decode() for secret in secrets]
    return {
        "Content-Type": "application/json",
        "User-Agent": USER_AGENT,
        "X-Service-Webhook-Id": event_id,
        "X-Service-Webhook-Event": kind,
        "X-Service-Webhook-Timestamp": timestamp,
        "X-Service-Webhook-Signature": ",".join([f"t={timestamp}", *own]),
        "webhook-id": event_id,
        "webhook-timestamp": timestamp,
        "webhook-signature": " ".join(standard),
    }


def _decode(secret: str) -> bytes:
    """Standard Webhooks signs with the bytes behind the base64, padded or not."""
    return b64decode(secret.removeprefix(SECRET_PREFIX) + "==")
