"""Deliveries as the server and others sign them, verified by the SDKs."""

import time
from base64 import b64encode
from collections.abc import Callable
from datetime import UTC, datetime
from hmac import digest
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies
from standardwebhooks import Webhook

from sapa.events import CATALOGUE
from sapa.webhooks.signing import build_headers, new_secret
from sapa_client import events, types, webhooks
from sapa_client.testing import sign_delivery
from tests.sdk.node import run_module
from tests.sdk.sample_calls import get_surface

SECRET = new_secret()
CUSTOMER = {
    "id": "cust_01jc9y3q5me8w92v7x4t6r0n1k",
    "email": "ayu@example.com",
    "tags": ["vip"],
    "additionalData": {"card": "A-17", "visits": 12},
    "subscriptionStatus": [{"app": "CRM", "status": "subscribe"}],
    "createdAt": "2026-01-31T09:30:00.000Z",
    "updatedAt": "2026-01-31T09:30:00.000Z",
}
BODY = msgspec.json.encode(CUSTOMER)
KINDS = sorted(events.BY_KIND)

KEYS = (b"", b"whsec_")

pytestmark = pytest.mark.processes


def sign(body: bytes = BODY, kind: str = "customer.created", *secrets: str, age: int = 0) -> dict[str, str]:
    """The headers that the server sends."""
    return build_headers(secrets or (SECRET,), "evt_1", kind, body, int(time.time()) - age)


def test_an_event_is_read() -> None:
    event = webhooks.verify(BODY, sign(), SECRET)
    assert isinstance(event, events.CustomerCreated)
    assert (event.id, event.kind, event.data.id) == ("evt_1", "customer.created", CUSTOMER["id"])
    assert abs(event.sent_at - datetime.now(UTC)).total_seconds() < 60


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_a_class(kind: str) -> None:
    example = next(event.example for event in get_surface().events if event.kind == kind)
    body = msgspec.json.encode(example)
    event = webhooks.verify(body, sign(body, kind), SECRET)
    assert type(event).__name__ == "".join(word.title() for word in kind.split("."))
    assert not isinstance(event, events.UnknownEvent | events.TruncatedEvent)


def test_the_kinds_are_those_of_the_server() -> None:
    assert {kind for kind, event in CATALOGUE.items() if event.__module__.startswith("sapa.")} == set(events.BY_KIND)


@pytest.mark.parametrize("upper", [False, True])
def test_the_names_of_headers_may_have_any_case(upper: bool) -> None:
    headers = {name.upper() if upper else name.lower(): value for name, value in sign().items()}
    assert webhooks.verify(BODY.decode(), headers, SECRET).id == "evt_1"


def test_either_secret_is_enough_while_one_is_rotated() -> None:
    other = new_secret()
    headers = sign(BODY, "customer.created", other, SECRET)
    assert webhooks.verify(BODY, headers, SECRET) == webhooks.verify(BODY, headers, other)


def changed(**headers: str) -> dict[str, str]:
    return {**sign(), **{name.replace("_", "-"): value for name, value in headers.items()}}


NO_MATCH = "No signature matches"
# Signed when they are needed: a test may run long after it was collected.
REFUSED: dict[str, tuple[bytes, Callable[[], dict[str, str]], str]] = {
    "body": (BODY + b" ", sign, NO_MATCH),
    "id": (BODY, lambda: changed(webhook_id="evt_2"), NO_MATCH),
    "time": (BODY, lambda: changed(webhook_timestamp=str(int(time.time()) - 9)), NO_MATCH),
    "signature": (BODY, lambda: changed(webhook_signature="v1,AAAA"), NO_MATCH),
    "no signature": (BODY, lambda: changed(webhook_signature=""), NO_MATCH),
    "version": (BODY, lambda: changed(webhook_signature="v2," + sign()["webhook-signature"][3:]), NO_MATCH),
    "secret": (BODY, lambda: sign(BODY, "customer.created", new_secret()), NO_MATCH),
    "old": (BODY, lambda: sign(age=301), "within the last 300 seconds"),
    "future": (BODY, lambda: sign(age=-400), "within the last 300 seconds"),
    "words": (BODY, lambda: changed(webhook_timestamp="soon"), "not a time"),
    "too many digits": (BODY, lambda: changed(webhook_timestamp="9" * 5000), "not a time"),
    "stray bytes": (BODY, lambda: changed(webhook_signature="v1,\udcff", webhook_id="\udcff"), NO_MATCH),
    "digits": (BODY, lambda: changed(webhook_timestamp="²"), "not a time"),
    "bare": (BODY, dict, "webhook-id is missing"),
    "list": (b"[]", lambda: sign(b"[]"), "not an event of this kind"),
    "no json": (b"{", lambda: sign(b"{"), "not an event of this kind"),
    "no text": (b"\xff", lambda: sign(b"\xff"), "not an event of this kind"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_from_the_server_is_refused(case: str) -> None:
    body, build, reason = REFUSED[case]
    with pytest.raises(webhooks.InvalidWebhook, match=reason):
        webhooks.verify(body, build(), SECRET)


def test_the_age_may_be_chosen() -> None:
    assert webhooks.verify(BODY, sign(age=3000), SECRET, tolerance=3600).id == "evt_1"


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_a", "whsec_" + "%" * 44, "'whsec_c2VjcmV0'"])
def test_a_wrong_secret_is_the_programs_mistake(secret: str) -> None:
    """Also when a variable is not set: anybody can sign with an empty key."""
    forged = {"v1," + b64encode(digest(key, b"evt_1.%d." % int(time.time()) + BODY, "sha256")).decode() for key in KEYS}
    with pytest.raises(ValueError, match="whsec_"):
        webhooks.verify(BODY, changed(webhook_signature=" ".join(forged)), secret)


def test_blanks_around_the_secret_do_no_harm() -> None:
    assert webhooks.verify(BODY, sign(), f" {SECRET}\n").id == "evt_1"


def test_a_large_resource_is_told_apart() -> None:
    body = b'{"id":"cust_1","truncated":true,"url":"https://sapa.example.com/customer/v1/customers/cust_1"}'
    event = webhooks.verify(body, sign(body), SECRET)
    assert isinstance(event, events.TruncatedEvent)
    assert (event.kind, event.data.id) == ("customer.created", "cust_1")


def test_a_new_kind_is_no_error() -> None:
    event = webhooks.verify(b'{"id":"x"}', sign(b'{"id":"x"}', "moon.landed"), SECRET)
    assert isinstance(event, events.UnknownEvent)
    assert (event.kind, event.data) == ("moon.landed", {"id": "x"})


def test_an_event_of_another_version_is_read() -> None:
    """Events are stored when they occur: a repeated one may lack newer fields. A newer server adds fields and words."""
    order = next(event.example for event in get_surface().events if event.kind == "order.created")
    required = [field.encode_name for field in msgspec.structs.fields(types.Order) if field.required]
    assert len(required) < len(order)
    older: dict[str, Any] = {name: order[name] for name in required}
    body = msgspec.json.encode({**older, "status": "lost_at_sea", "newField": [1]})
    event = webhooks.verify(body, sign(body, "order.created"), SECRET)
    assert isinstance(event, events.OrderCreated)
    assert (event.data.status, event.data.line_items, event.data.notes) == ("lost_at_sea", [], None)


@given(strategies.binary(max_size=200), strategies.text(max_size=30))
def test_the_signature_is_that_of_standard_webhooks(body: bytes, id: str) -> None:
    now = datetime.now(UTC).replace(microsecond=0)
    signed = webhooks.sign(body, id, str(int(now.timestamp())), SECRET)
    assert signed == build_headers([SECRET], id, "x", body, int(now.timestamp()))["webhook-signature"]


def test_another_library_accepts_what_the_test_helper_signs() -> None:
    delivery = sign_delivery("customer.created", types.TruncatedResource(id="x", truncated=True), secret=SECRET)
    assert Webhook(SECRET).verify(delivery.body, delivery.headers) == {"id": "x", "truncated": True, "url": None}


VERIFY = """
import { InvalidWebhook, verifyWebhook } from "@sapa/client";

for (const { body, headers, secret } of JSON.parse(process.argv[2])) {
  const bytes = Uint8Array.from(atob(body), (character) => character.charCodeAt(0));
  try {
    const { id, kind, truncated, data } = await verifyWebhook(bytes, headers, secret);
    console.log(JSON.stringify({ id, kind, truncated, data }));
  } catch (error) {
    console.log(JSON.stringify({ name: error.name, message: error.message, isOurs: error instanceof InvalidWebhook }));
  }
}
"""


def test_typescript_accepts_and_refuses_the_same() -> None:
    other = new_secret()
    large = b'{"id":"cust_1","truncated":true,"url":null}'
    deliveries: list[tuple[bytes, dict[str, str], str]] = [
        (BODY, sign(), SECRET),
        (BODY, sign(BODY, "customer.created", other, SECRET), SECRET),
        (large, sign(large), SECRET),
        (b'{"id":"x"}', sign(b'{"id":"x"}', "moon.landed"), SECRET),
        (BODY + b" ", sign(), SECRET),
        (BODY, sign(age=301), SECRET),
        (BODY, sign(BODY, "customer.created", other), SECRET),
        (BODY, changed(webhook_timestamp="soon"), SECRET),
        (BODY, changed(webhook_signature="v1,%%%"), SECRET),
        (BODY, {}, SECRET),
        (b"\xff", sign(b"\xff"), SECRET),
        (BODY, sign(), "whsec_%"),
        (BODY, sign(), ""),
        (BODY, sign(), "whsec_"),
        (BODY, sign(), "whsec_"),
    ]
    given = [
        {"body": msgspec.to_builtins(body), "headers": headers, "secret": secret}
        for body, headers, secret in deliveries
    ]
    seen = [msgspec.json.decode(line) for line in run_module(VERIFY, msgspec.json.encode(given).decode()).splitlines()]
    accepted, refused = seen[:4], seen[4:]
    assert (
        accepted[0] == accepted[1] == {"id": "evt_1", "kind": "customer.created", "truncated": False, "data": CUSTOMER}
    )
    assert (accepted[2]["truncated"], accepted[3]["kind"]) == (True, "moon.landed")
    assert [one.get("isOurs") for one in refused] == [True] * 7 + [False] * 4
    assert "No signature matches" in refused[0]["message"]
    assert "within the last 300 seconds" in refused[1]["message"]
    assert "webhook-id is missing" in refused[5]["message"]
    assert {one["name"] for one in refused[7:]} == {"TypeError"}
