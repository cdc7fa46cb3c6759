"""Requests as they come over the wire, held against what others made to check such signatures."""

import base64
import hashlib
import hmac
import json

import pytest
import standardwebhooks
import stripe
from hypothesis import given
from hypothesis import strategies as st

from sapa.webhooks.sender import Target, WebhookMessage
from sapa.webhooks.signing import build_headers, new_secret
from tests.webhooks.zoo import OK, Request, answering, sending, serve

BODIES = [
    b'{"id":"cust_1","firstName":"Ayu","tags":["vip"],"total":150000}',
    '{"id":"cust_2","firstName":"Ayu Lestari 🌸","note":"\u2028é"}'.encode(),
    b"{}",
    b'{"id":"' + b"x" * 60_000 + b'"}',
]


async def deliver(body: bytes, *secrets: str) -> Request:
    """One request, as the receiver sees it."""
    async with serve(answering(OK)) as receiver, sending() as sender:
        outcome = await sender.send(
            Target(receiver.url(), {}, list(secrets)), WebhookMessage("evt_9", "customer.updated", body)
        )
    assert outcome.delivered
    return receiver.requests[0]


def test_a_known_signature() -> None:
    body = b'{"id":"cust_1","firstName":"Ayu","tags":["vip"],"total":150000}'
    headers = build_headers(["whsec_0123456789abcdef"], "evt_1", "customer.created", body, 1_700_000_000)
    assert headers["X-Service-Webhook-Signature"] == (
        "t=1700000000,v1=7cac9ba3c75c31e8d047211d4e1075fa6c069893fb9bea4df473910c2c43cecc"
    )
    assert headers["X-Service-Webhook-Timestamp"] == headers["webhook-timestamp"] == "1700000000"


@given(key=st.binary(max_size=150), body=st.binary(max_size=200))
def test_a_secret_of_any_length_signs_as_the_standard_library_does(key: bytes, body: bytes) -> None:
    secret = f"whsec_{base64.b64encode(key).decode()}"
    own = hmac.digest(secret.encode(), b"1700000000." + body, "sha256").hex()
    standard = base64.b64encode(hmac.digest(key, b"evt_1.1700000000." + body, "sha256")).decode()
    for _ in range(2):  # what is remembered of a secret does not change with its use
        headers = build_headers([secret], "evt_1", "customer.created", body, 1_700_000_000)
        assert headers["X-Service-Webhook-Signature"] == f"t=1700000000,v1={own}"
        assert headers["webhook-signature"] == f"v1,{standard}"


def test_a_secret_is_256_random_bits_in_base64() -> None:
    secrets = {new_secret() for _ in range(50)}
    assert len(secrets) == 50
    for secret in secrets:
        assert secret.startswith("whsec_")
        assert len(base64.b64decode(secret.removeprefix("whsec_"), validate=True)) == 32


@pytest.mark.parametrize("body", BODIES)
async def test_the_library_of_standard_webhooks_takes_it_unchanged(body: bytes) -> None:
    secret = new_secret()
    request = await deliver(body, secret)
    assert standardwebhooks.Webhook(secret).verify(request.body, dict(request.headers)) == json.loads(body)
    with pytest.raises(standardwebhooks.WebhookVerificationError):
        standardwebhooks.Webhook(new_secret()).verify(request.body, dict(request.headers))
    with pytest.raises(standardwebhooks.WebhookVerificationError):
        standardwebhooks.Webhook(secret).verify(request.body, dict(request.headers) | {"webhook-id": "evt_8"})


@pytest.mark.parametrize("body", BODIES)
async def test_a_payment_providers_library_takes_it_unchanged(body: bytes) -> None:
    secret = new_secret()
    request = await deliver(body, secret)
    signature = dict(request.headers)["X-Service-Webhook-Signature"]
    text = request.body.decode()
    assert stripe.WebhookSignature.verify_header(text, signature, secret, tolerance=300)
    with pytest.raises(stripe.SignatureVerificationError):
        stripe.WebhookSignature.verify_header(text + " ", signature, secret, tolerance=300)


async def test_during_rotation_either_secret_is_enough() -> None:
    secrets = [new_secret(), new_secret()]
    request = await deliver(BODIES[0], *secrets)
    headers = dict(request.headers)
    for secret in secrets:
        standardwebhooks.Webhook(secret).verify(request.body, headers)
        stripe.WebhookSignature.verify_header(
            request.body.decode(), headers["X-Service-Webhook-Signature"], secret, 300
        )


@given(
    st.binary(max_size=200), st.integers(0, 2**33), st.lists(st.binary(min_size=1, max_size=40), min_size=1, max_size=2)
)
def test_the_formulas_over_any_bytes(body: bytes, instant: int, keys: list[bytes]) -> None:
    secrets = ["whsec_" + base64.b64encode(key).decode() for key in keys]
    headers = build_headers(secrets, "evt_1", "order.created", body, instant)
    signed = str(instant).encode() + b"." + body
    own = [hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest() for secret in secrets]
    standard = [hmac.new(key, b"evt_1." + signed, hashlib.sha256).digest() for key in keys]
    assert headers["X-Service-Webhook-Signature"] == ",".join([f"t={instant}", *(f"v1={one}" for one in own)])
    assert headers["webhook-signature"] == " ".join(f"v1,{base64.b64encode(one).decode()}" for one in standard)
