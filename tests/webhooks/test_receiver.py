"""The receiver's kit: takes what is genuine and fresh, refuses all else, and says why."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from http.client import HTTPMessage
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapa.webhooks import VerificationError, verify
from sapa.webhooks.receiver import explain
from sapa.webhooks.signing import build_headers, new_secret

SECRET = "whsec_" + "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVowMTIzNDU="
BODY = b'{"id":"cust_1","firstName":"Ay\xc3\xba","total":150000}'

Headers = dict[str, str]
OWN = "X-Service-Webhook-Signature"


def signed(age: float = 0, *secrets: str, body: bytes = BODY) -> Headers:
    return build_headers(secrets or [SECRET], "evt_1", "customer.created", body, int(time.time() - age))


def own_only(headers: Headers) -> Headers:
    return {name: value for name, value in headers.items() if not name.startswith("webhook-")}


def test_the_receiver_needs_nothing_but_the_standard_library() -> None:
    """A receiver imports it without the product's settings, database or event loop."""
    script = (
        "import sys; from sapa.webhooks import verify; "
        "print(sorted(name for name in sys.modules if name.split('.')[0] in "
        "{'sapa', 'aiohttp', 'msgspec', 'asyncpg', 'structlog', 'cryptography', 'asyncio'}))"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "['sapa', 'sapa.webhooks', 'sapa.webhooks.receiver']"


def test_a_genuine_request_passes_and_gives_its_id() -> None:
    assert verify(signed(), BODY, SECRET) == "evt_1"
    assert verify(list(signed().items()), BODY, SECRET) == "evt_1"
    assert verify(signed(), BODY.decode(), SECRET) == "evt_1"
    assert verify({name.upper(): value for name, value in signed().items()}, bytearray(BODY), SECRET) == "evt_1"


def test_the_id_is_given_only_when_it_was_signed() -> None:
    assert verify(own_only(signed()), BODY, SECRET) is None


def test_one_of_several_secrets_or_signatures_is_enough() -> None:
    old, new = new_secret(), new_secret()
    assert verify(signed(0, new, old), BODY, old)
    assert verify(signed(0, new, old), BODY, new)
    assert verify(signed(0, new), BODY, [old, new])
    with pytest.raises(VerificationError):
        verify(signed(0, new, old), BODY, new_secret())


@pytest.mark.parametrize("age", [-290, 0, 290])
def test_a_clock_may_differ_by_five_minutes(age: float) -> None:
    verify(signed(age), BODY, SECRET)


@pytest.mark.parametrize("age", [-100_000, -320, 320, 100_000])
def test_no_more_than_that_in_either_direction(age: float) -> None:
    for headers in (signed(age), own_only(signed(age))):
        with pytest.raises(VerificationError, match="timestamp"):
            verify(headers, BODY, SECRET)
    verify(signed(age), BODY, SECRET, tolerance=None)
    verify(signed(age), BODY, SECRET, tolerance=200_000)


def test_a_stale_request_is_not_freshened_by_its_unsigned_headers() -> None:
    stale, fresh = signed(1000), signed()
    with pytest.raises(VerificationError):
        verify(stale | {"X-Service-Webhook-Timestamp": fresh["X-Service-Webhook-Timestamp"]}, BODY, SECRET)
    with pytest.raises(VerificationError):
        verify(stale | {"webhook-timestamp": fresh["webhook-timestamp"]}, BODY, SECRET)
    with pytest.raises(VerificationError):
        verify(fresh | {"X-Service-Webhook-Timestamp": "1"}, BODY, SECRET)


def change(name: str, edit: Callable[[str], str]) -> Headers:
    headers = signed()
    return headers | {name: edit(headers[name])}


FORGED: dict[str, Callable[[], Headers]] = {
    "another id": lambda: signed() | {"webhook-id": "evt_2", "X-Service-Webhook-Id": "evt_2"},
    "another id in one of two": lambda: signed() | {"X-Service-Webhook-Id": "evt_2"},
    "no signature": lambda: {name: value for name, value in signed().items() if name != OWN},
    "an empty signature": lambda: signed() | {OWN: ""},
    "half of the standard headers": lambda: {name: value for name, value in signed().items() if name != "webhook-id"},
    "a standard signature of another scheme": lambda: change(
        "webhook-signature", lambda text: text.replace("v1,", "v2,")
    ),
    "the plain standard signature": lambda: change("webhook-signature", lambda text: text.removeprefix("v1,")),
    "another scheme": lambda: change(OWN, lambda text: text.replace("v1=", "v2=")),
    "two times": lambda: change(OWN, lambda text: f"t=1,{text}"),
    "the same time twice": lambda: change(OWN, lambda text: f"{text.split(',')[0]},{text}"),
    "no time": lambda: change(OWN, lambda text: text.split(",")[1]),
    "a negative time": lambda: change(OWN, lambda text: text.replace("t=", "t=-")),
    "a time with a sign": lambda: change(OWN, lambda text: text.replace("t=", "t=+")),
    "a time with a fraction": lambda: change(OWN, lambda text: text.replace(",v1", ".0,v1")),
    "digits that are not ASCII": lambda: change(OWN, lambda text: text.replace("1", "１")),
    "a signature that is not ASCII": lambda: change(OWN, lambda text: f"{text[:-1]}é"),
    "blanks": lambda: change(OWN, lambda text: text.replace(",", ", ")),
    "a field without a name": lambda: change(OWN, lambda text: f"{text},abc"),
    "an empty field": lambda: change(OWN, lambda text: f"{text},"),
    "capitals": lambda: change(OWN, lambda text: text.upper().replace("T=", "t=").replace("V1=", "v1=")),
    "a part of the signature": lambda: change(OWN, lambda text: text[:-2]),
    "a longer signature": lambda: change(OWN, lambda text: f"{text}00"),
    "base64": lambda: change(OWN, lambda text: text.split(",")[0] + ",v1=" + "A" * 43 + "="),
    "an endless header": lambda: change(OWN, lambda text: text + ",v1=" + ",v1=".join(["0" * 64] * 100)),
}


@pytest.mark.parametrize("name", FORGED)
def test_what_is_malformed_or_forged_is_refused(name: str) -> None:
    with pytest.raises(VerificationError) as refusal:
        verify(FORGED[name](), BODY, SECRET)
    assert isinstance(refusal.value, ValueError)
    assert str(refusal.value)
    assert SECRET not in str(refusal.value)


def test_a_header_that_was_sent_twice_is_refused() -> None:
    for name in signed():
        pairs = [*signed().items(), (name.lower(), signed()[name])]
        if name.lower().startswith(("x-service-webhook-id", "x-service-webhook-ti", "x-service-webhook-s", "webhook")):
            with pytest.raises(VerificationError, match="more than once"):
                verify(pairs, BODY, SECRET)


@pytest.mark.parametrize("secret", ["", [], [""], [SECRET, ""], "whsec_", " " * 40])
def test_an_empty_secret_never_passes(secret: str | list[str]) -> None:
    headers = build_headers([""], "evt_1", "customer.created", BODY, int(time.time()))
    with pytest.raises(VerificationError, match="empty"):
        verify(headers, BODY, secret)


def test_a_parsed_body_is_refused() -> None:
    with pytest.raises(VerificationError, match="bytes that were received"):
        verify(signed(), json.loads(BODY), SECRET)


class Bag:
    """A framework's headers: no mapping, but with items."""

    def __init__(self, headers: Headers) -> None:
        self._headers = headers

    def items(self) -> list[tuple[str, str]]:
        return list(self._headers.items())


def as_message(headers: Headers) -> HTTPMessage:
    """What `http.server` has in `self.headers`."""
    message = HTTPMessage()
    for name, value in headers.items():
        message.add_header(name, value)
    return message


def as_scope(headers: Headers) -> list[tuple[bytes, bytes]]:
    """What ASGI servers hand over."""
    return [(name.lower().encode(), value.encode()) for name, value in headers.items()]


@pytest.mark.parametrize("shape", [as_message, as_scope, Bag, lambda headers: list(headers.items())])
def test_headers_are_accepted_in_the_shapes_of_frameworks(shape: Callable[[Headers], Any]) -> None:
    several: list[str | bytes] = [new_secret().encode(), SECRET]
    for secret in (SECRET, SECRET.encode(), several):
        assert verify(shape(signed()), BODY, secret) == "evt_1"
        assert explain(shape(signed()), BODY, secret) == []
    with pytest.raises(VerificationError):
        verify(shape(signed(0, new_secret())), BODY, SECRET)


@pytest.mark.parametrize(
    ("headers", "body", "secret"),
    [
        (None, BODY, SECRET),
        (5, BODY, SECRET),
        ("x-service-webhook-signature", BODY, SECRET),
        ([("a", "b", "c")], BODY, SECRET),
        ([(None, "b")], BODY, SECRET),
        ({OWN: None}, BODY, SECRET),
        ({OWN: ["t=1"]}, BODY, SECRET),
        (signed(), None, SECRET),
        (signed(), 5, SECRET),
        (signed(), BODY, None),
        (signed(), BODY, 5),
        (signed(), BODY, [None]),
        (signed(), BODY, "é"),
    ],
)
def test_what_is_of_the_wrong_type_is_refused_with_a_sentence(headers: Any, body: Any, secret: Any) -> None:
    with pytest.raises(VerificationError) as refusal:
        verify(headers, body, secret)
    assert str(refusal.value)
    assert explain(headers, body, secret)


def test_explanation_and_check_agree_on_a_stale_time_beside_a_fresh_one() -> None:
    mixed = signed() | {name: value for name, value in signed(1000).items() if name.startswith("webhook-")}
    with pytest.raises(VerificationError):
        verify(mixed, BODY, SECRET)
    assert any("webhook-timestamp" in sentence for sentence in explain(mixed, BODY, SECRET))


def test_schemes_to_come_may_stand_beside_ours() -> None:
    verify(change(OWN, lambda text: f"{text},v2=abc=,v0=x"), BODY, SECRET)


@given(st.binary(max_size=100), st.integers(0, 99), st.integers(1, 255))
def test_one_changed_byte_is_refused(body: bytes, place: int, difference: int) -> None:
    headers = signed(body=body)
    assert verify(headers, body, SECRET) == "evt_1"
    if body:
        changed = bytearray(body)
        changed[place % len(body)] ^= difference
        with pytest.raises(VerificationError):
            verify(headers, bytes(changed), SECRET)


@given(st.text(max_size=120))
def test_any_header_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(VerificationError):
        verify(signed() | {OWN: text}, BODY, SECRET)
    assert explain(signed() | {OWN: text}, BODY, SECRET)


def test_a_genuine_request_has_no_explanation() -> None:
    assert explain(signed(), BODY, SECRET) == []
    assert explain(own_only(signed()), BODY, SECRET) == []
    assert explain(signed(0, new_secret(), SECRET), BODY, [SECRET]) == []


PRINTED = json.dumps(json.loads(BODY)).encode()
PRETTY = json.dumps(json.loads(BODY), indent=2, ensure_ascii=False).encode()
BARE = SECRET.removeprefix("whsec_")

COLLECTED = time.time()
"""When the requests below were signed; the tests may run much later."""

SAID: dict[str, tuple[Headers, bytes, str, str]] = {
    "old": (signed(3000), BODY, SECRET, "too old by 45 minutes"),
    "very old": (signed(864_000), BODY, SECRET, "too old by 10 days"),
    "future": (signed(-7300), BODY, SECRET, "2 hours in the future"),
    "milliseconds": (
        build_headers([SECRET], "evt_1", "x", BODY, int(time.time() * 1000)), BODY, SECRET, "milliseconds"
    ),
    "printed again": (signed(), PRINTED, SECRET, "parsed and serialised again"),
    "pretty": (signed(), PRETTY, SECRET, "parsed and serialised again"),
    "a line break": (signed(), BODY + b"\n", SECRET, "line break or space at its end"),
    "a mark": (signed(), b"\xef\xbb\xbf" + BODY, SECRET, "byte order mark"),
    "empty body": (signed(), b"", SECRET, "body is empty"),
    "another body": (signed(), b'{"id":"cust_2"}', SECRET, "no signature matches"),
    "wrong secret": (signed(), BODY, new_secret(), "no signature matches"),
    "blanks": (signed(), BODY, f" {SECRET}\n", "spaces or a line break around it"),
    "quotation marks": (signed(), BODY, f'"{SECRET}"', "quotation marks"),
    "no prefix": (signed(), BODY, BARE, "does not start with whsec_"),
    "empty secret": (signed(), BODY, "", "secret is empty"),
    "signed without the prefix": (signed(0, BARE), BODY, SECRET, "it matches without whsec_"),
    "base64": (FORGED["base64"](), BODY, SECRET, "base64"),
    "capitals": (FORGED["capitals"](), BODY, SECRET, "capital letters"),
    "cut off": (FORGED["a part of the signature"](), BODY, SECRET, "62 characters instead of 64"),
    "only the digest": (signed() | {OWN: signed()[OWN].partition("v1=")[2]}, BODY, SECRET, "no t=…"),
    "with a blank": (FORGED["blanks"](), BODY, SECRET, "contains spaces"),
    "another time": (signed() | {"X-Service-Webhook-Timestamp": "5"}, BODY, SECRET, "says 5, but"),
    "another id": (FORGED["another id"](), BODY, SECRET, "but the id is not"),
    "missing": ({"Host": "a"}, BODY, SECRET, "is missing; no similar header arrived"),
    "only the others": (
        {name: value for name, value in signed().items() if name != OWN},
        BODY,
        SECRET,
        "of the similar headers only X-Service-Webhook-Event",
    ),
    "renamed": ({"HTTP_X_SERVICE_WEBHOOK_SIGNATURE": signed()[OWN]}, BODY, SECRET, "arrived as HTTP_X_SERVICE"),
    "underscores": ({"x_service_webhook_signature": signed()[OWN]}, BODY, SECRET, "arrived as x_service"),
}  # fmt: skip


@pytest.mark.parametrize("name", SAID)
def test_a_refused_request_is_explained(name: str) -> None:
    headers, body, secret, said = SAID[name]
    found = explain(headers, body, secret, COLLECTED)
    assert any(said in sentence for sentence in found), found
    assert not any(SECRET in sentence for sentence in found)


def test_the_explanation_holds_at_a_given_time() -> None:
    then = int(time.time()) - 86_400
    headers = build_headers([SECRET], "evt_1", "x", BODY, then)
    assert explain(headers, BODY, SECRET, now=then + 10) == []
    assert explain(headers, BODY, SECRET)


@given(st.sampled_from(sorted(FORGED)), st.binary(max_size=50))
def test_whatever_is_refused_is_explained(name: str, body: bytes) -> None:
    assert explain(FORGED[name](), body, SECRET)
