"""For receivers: checks that a request comes from here. Needs only the standard library, so the file can be copied.

`verify` is the check; `explain` says what is wrong with a request that does not pass it.
"""

import json
import re
import time
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Sequence
from hmac import compare_digest, digest
from typing import Protocol

SIGNATURE_HEADER = "x-service-webhook-signature"
TIMESTAMP_HEADER = "x-service-webhook-timestamp"
ID_HEADER = "x-service-webhook-id"
STANDARD_HEADERS = ("webhook-id", "webhook-timestamp", "webhook-signature")
TOLERANCE_SECONDS = 300

_MAX_CHARACTERS = 4096
_is_field = re.compile(r"[a-z][a-z0-9]*=[!-+\--~]+", re.ASCII).fullmatch
_is_seconds = re.compile(r"[0-9]{1,15}", re.ASCII).fullmatch
_is_hex_digest = re.compile(r"[0-9a-f]{64}", re.ASCII).fullmatch
_is_base64_digest = re.compile(r"[A-Za-z0-9+/]{43}=", re.ASCII).fullmatch

Text = str | bytes
Body = bytes | bytearray | memoryview | str
Secrets = Text | Sequence[Text]


class HasItems(Protocol):
    """A mapping, or what some frameworks have instead."""

    def items(self) -> Iterable[tuple[str, str]]: ...


Headers = HasItems | Iterable[tuple[Text, Text]]


class VerificationError(ValueError):
    """A request that cannot be trusted; the text says why."""


def verify(headers: Headers, body: Body, secret: Secrets, tolerance: float | None = TOLERANCE_SECONDS) -> str | None:
    """Raises VerificationError unless the request was signed with the secret (or one of several) just now.

    `body` is the raw request body, never a re-serialised one. Returns the event's id, for telling a
    repeated delivery from a new one, when the request proves that too: it does with its `webhook-signature`.
    """
    now = time.time()
    found = _read_headers(headers)
    secrets = _check_secrets(secret)
    raw = _check_body(body)
    timestamp, signatures = _parse_signature(_get(found, SIGNATURE_HEADER))
    if found.get(TIMESTAMP_HEADER, timestamp) != timestamp:
        raise VerificationError(f"{TIMESTAMP_HEADER} is not the t of {SIGNATURE_HEADER}")
    _check_age(timestamp, now, tolerance)
    if not _matches(signatures, [_sign(secret, timestamp, raw) for secret in secrets]):
        raise VerificationError("no signature matches: the secret is wrong, or the body is not the one that was sent")
    return _verify_id(found, raw, secrets, now, tolerance)


def _verify_id(
    found: dict[str, str], body: bytes, secrets: Sequence[str], now: float, tolerance: float | None
) -> str | None:
    if not any(name in found for name in STANDARD_HEADERS):
        return None
    id, timestamp, signature = (_get(found, name) for name in STANDARD_HEADERS)
    if not _is_seconds(timestamp):
        raise VerificationError("webhook-timestamp is not a whole number of seconds")
    _check_age(timestamp, now, tolerance)
    signatures = [field[3:] for field in signature.split(" ") if field.startswith("v1,")]
    if not _matches(signatures, [_sign_standard(secret, id, timestamp, body) for secret in secrets]):
        raise VerificationError("webhook-signature does not match")
    if found.get(ID_HEADER, id) != id:
        raise VerificationError(f"{ID_HEADER} is not the webhook-id that was signed")
    return id


def _read_headers(headers: Headers) -> dict[str, str]:
    """Names in lower case; what the check looks at must be there once and in plain ASCII."""
    found: dict[str, str] = {}
    for raw_name, value in _list_pairs(headers):
        name = raw_name.lower()
        if name not in _CHECKED_HEADERS:
            continue
        if name in found:
            raise VerificationError(f"{name} was sent more than once")
        if not value.isascii() or len(value) > _MAX_CHARACTERS:
            raise VerificationError(f"{name} is not a short text in ASCII")
        found[name] = value
    return found


def _list_pairs(headers: Headers) -> list[tuple[str, str]]:
    """Of a mapping, a framework's own headers, or a list of pairs, be they text or bytes."""
    items = getattr(headers, "items", None)
    try:
        pairs = [(name, value) for name, value in (items() if callable(items) else headers)]  # type: ignore[union-attr]
    except (TypeError, ValueError):
        raise VerificationError("pass the headers as a mapping or as pairs of name and value") from None
    return [(_text(name, "a header's name"), _text(value, f"the header {name!r}")) for name, value in pairs]


def _text(value: Text, what: str) -> str:
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if not isinstance(value, str):
        raise VerificationError(f"{what} is not text")
    return value


_CHECKED_HEADERS = {SIGNATURE_HEADER, TIMESTAMP_HEADER, ID_HEADER, *STANDARD_HEADERS}


def _get(found: dict[str, str], name: str) -> str:
    if not found.get(name):
        raise VerificationError(f"{name} is missing")
    return found[name]


def _check_secrets(secret: Secrets) -> list[str]:
    secrets = _list_secrets(secret)
    if not secrets or not all(one.strip().removeprefix("whsec_") for one in secrets):
        raise VerificationError("the secret is empty")
    return secrets


def _list_secrets(secret: Secrets) -> list[str]:
    if secret is None:
        raise VerificationError("the secret is missing; is its variable set?")
    try:
        secrets: list[Text] = [secret] if isinstance(secret, str | bytes) else list(secret)
    except TypeError:
        raise VerificationError("pass the secret as text, or several in a list") from None
    return [_text(item, "the secret") for item in secrets]


def _check_body(body: Body) -> bytes:
    if isinstance(body, str):
        return body.encode("utf-8", "surrogateescape")
    if not isinstance(body, bytes | bytearray | memoryview):
        raise VerificationError("pass the body as the bytes that were received, not parsed")
    return bytes(body)


def _parse_signature(text: str) -> tuple[str, list[str]]:
    """`t=1700000000,v1=…` with one t and at least one v1; schemes to come may stand beside them."""
    fields = text.split(",")
    if not all(map(_is_field, fields)):
        raise VerificationError(f"{SIGNATURE_HEADER} is not of the form t=…,v1=…")
    timestamps = [field[2:] for field in fields if field.startswith("t=")]
    signatures = [field[3:] for field in fields if field.startswith("v1=")]
    if len(timestamps) != 1 or not _is_seconds(timestamps[0]):
        raise VerificationError(f"{SIGNATURE_HEADER} must have one t, in whole seconds")
    if not signatures or not all(map(_is_hex_digest, signatures)):
        raise VerificationError(f"{SIGNATURE_HEADER} must have a v1 of 64 hexadecimal digits")
    return timestamps[0], signatures


def _check_age(timestamp: str, now: float, tolerance: float | None) -> None:
    if tolerance is not None and abs(now - int(timestamp)) > tolerance:
        direction = "old" if int(timestamp) < now else "far in the future"
        raise VerificationError(f"the timestamp is too {direction}: it differs by {abs(now - int(timestamp)):.0f} s")


def _matches(received: Iterable[str], expected: Sequence[str]) -> bool:
    """Every pair is compared, and each in constant time."""
    return any([compare_digest(item.encode(), other.encode()) for item in received for other in expected])  # noqa: C419


def _sign(secret: str, timestamp: str, body: bytes) -> str:
    return digest(secret.encode(), timestamp.encode() + b"." + body, "sha256").hex()


def _sign_standard(secret: str, id: str, timestamp: str, body: bytes) -> str:
    try:
        key = b64decode(secret.removeprefix("whsec_") + "==")
    except ValueError:
        key = b""
    if not key:
        raise VerificationError("the secret must be whsec_ followed by base64, as it was shown")
    return b64encode(digest(key, f"{id}.{timestamp}.".encode() + body, "sha256")).decode()


def explain(headers: Headers, body: Body, secret: Secrets, now: float | None = None) -> list[str]:
    """What is wrong with a request, in sentences; none if it is valid."""
    now = time.time() if now is None else now
    try:
        pairs, secrets = _list_pairs(headers), _list_secrets(secret)
        raw = _check_body(body)
    except VerificationError as error:
        return [str(error)]
    signature = next((value for name, value in pairs if name.lower() == SIGNATURE_HEADER), None)
    if signature is None:
        return [*_explain_secrets(secrets), _explain_missing([name for name, _ in pairs])]
    found = [*_explain_secrets(secrets), *_explain_form(signature)]
    try:
        checked = _read_headers(pairs)
        timestamp, signatures = _parse_signature(signature)
    except VerificationError as error:
        return found or [str(error)]
    return [
        *found,
        *_explain_time(timestamp, checked, now),
        *_explain_match(checked, raw, secrets, timestamp, signatures),
    ]


def _explain_secrets(secrets: list[str]) -> Iterator[str]:
    for secret in secrets or [""]:
        if not secret:
            yield "the secret is empty; is its variable set?"
        elif secret != secret.strip():
            yield "the secret has spaces or a line break around it; strip them"
        elif secret[0] in "\"'" or secret[-1] in "\"'":
            yield "the secret has quotation marks around it; remove them"
        elif not secret.startswith("whsec_"):
            yield "the secret does not start with whsec_; use it whole, as it was shown"


def _explain_missing(names: list[str]) -> str:
    plain = {re.sub(r"[^a-z]", "", name.lower().removeprefix("http_")): name for name in names}
    renamed = plain.get(SIGNATURE_HEADER.replace("-", ""))
    if renamed:
        return f"{SIGNATURE_HEADER} arrived as {renamed}: a proxy or framework renamed it; look it up by that name"
    kin = sorted(name for key, name in plain.items() if "webhook" in key)
    others = f"; of the similar headers only {', '.join(kin)} arrived" if kin else "; no similar header arrived"
    return f"{SIGNATURE_HEADER} is missing{others}: does a proxy in front drop headers?"


def _explain_form(value: str) -> Iterator[str]:
    fields = [field.strip() for field in value.split(",")]
    timestamp = next((field[2:] for field in fields if field.startswith("t=")), None)
    if not value.isascii():
        yield "the signature contains characters that are not ASCII; copy it again"
    elif re.search(r"\s", value):
        yield "the signature contains spaces; it must be t=…,v1=… without spaces"
    if timestamp is None:
        yield "the signature has no t=…; use the whole header, not only the part after v1="
    elif not _is_seconds(timestamp):
        yield "the t of the signature is not a whole number of seconds"
    for field in fields:
        if field.startswith("v1="):
            yield from _explain_digest(field[3:])


def _explain_digest(text: str) -> Iterator[str]:
    if _is_hex_digest(text):
        return
    if _is_base64_digest(text):
        yield "v1 is in base64, but must be 64 hexadecimal digits (webhook-signature has base64)"
    elif _is_hex_digest(text.lower()):
        yield "v1 is in capital letters; compare it in lower case, as it is sent"
    else:
        yield f"v1 has {len(text)} characters instead of 64 hexadecimal digits; was it cut off?"


def _explain_time(timestamp: str, found: dict[str, str], now: float) -> Iterator[str]:
    apart = int(timestamp) - now
    if abs(int(timestamp) / 1000 - now) < 10 * 365 * 86_400:
        yield "the timestamp is in milliseconds, but must be in seconds"
    elif apart < -TOLERANCE_SECONDS:
        yield f"the timestamp is too old by {_span(-apart - TOLERANCE_SECONDS)}: a stored request, or a clock is wrong"
    elif apart > TOLERANCE_SECONDS:
        yield f"the timestamp is {_span(apart)} in the future: this machine's clock is behind"
    if found.get(TIMESTAMP_HEADER, timestamp) != timestamp:
        yield f"{TIMESTAMP_HEADER} says {found[TIMESTAMP_HEADER]}, but {timestamp} is what was signed"
    other = found.get("webhook-timestamp", timestamp)
    if other != timestamp and _is_seconds(other) and abs(int(other) - now) > TOLERANCE_SECONDS:
        yield f"webhook-timestamp is {_span(abs(int(other) - now))} away from now, unlike the t of {SIGNATURE_HEADER}"


def _span(seconds: float) -> str:
    for unit, size in (("days", 86_400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} seconds"


def _explain_match(
    found: dict[str, str], body: bytes, secrets: list[str], timestamp: str, signatures: list[str]
) -> Iterator[str]:
    if not all(secrets) or not secrets:
        return
    if not _matches(signatures, [_sign(secret, timestamp, body) for secret in secrets]):
        yield next(_list_reasons(found, body, secrets, timestamp, signatures), _NO_REASON)
        return
    try:
        _verify_id(found, body, secrets, 0, None)
    except VerificationError as error:
        yield f"the body is as it was signed, but the id is not: {error}"


_NO_REASON = (
    "no signature matches: the secret is another endpoint's or an older one, or the body was changed in transit"
)


def _list_reasons(
    found: dict[str, str], body: bytes, secrets: list[str], timestamp: str, signatures: list[str]
) -> Iterator[str]:
    """Tries what receivers commonly get wrong, and yields what would have matched."""
    for meant, other in _other_secrets(secrets):
        if _matches(signatures, [digest(other, f"{timestamp}.".encode() + body, "sha256").hex()]):
            yield f"the secret is not used as it was shown: it matches {meant}"
    for secret in secrets:
        for meant, signed in _other_texts(found, body, timestamp):
            if _matches(signatures, [digest(secret.strip().encode(), signed, "sha256").hex()]):
                yield meant
    if not body:
        yield "the body is empty: something has already read it; keep the received bytes"


def _other_secrets(secrets: list[str]) -> Iterator[tuple[str, bytes]]:
    for secret in secrets:
        trimmed = secret.strip().strip("\"'")
        yield "without the spaces or quotation marks around it", trimmed.encode()
        yield "with whsec_ in front", f"whsec_{trimmed}".encode()
        yield "without whsec_", trimmed.removeprefix("whsec_").encode()
        try:
            yield "as the bytes that its base64 encodes", b64decode(trimmed.removeprefix("whsec_") + "==")
        except ValueError:
            continue


def _other_texts(found: dict[str, str], body: bytes, timestamp: str) -> Iterator[tuple[str, bytes]]:
    stamp = f"{timestamp}.".encode()
    yield "only the body was signed; sign the timestamp, a dot and the body", body
    yield "the timestamp and the body are joined without a dot", timestamp.encode() + body
    for meant, other in _other_bodies(body):
        yield meant, stamp + other
    if id := found.get("webhook-id") or found.get(ID_HEADER):
        yield (
            "the id was signed, too; that is the other signature, webhook-signature",
            f"{id}.".encode() + stamp + body,
        )


def _other_bodies(body: bytes) -> Iterator[tuple[str, bytes]]:
    yield "the body has a line break or space at its end that was not sent", body.rstrip()
    yield "the body has a byte order mark in front that was not sent", body.removeprefix(b"\xef\xbb\xbf")
    yield "the body's line breaks were changed", body.replace(b"\r\n", b"\n")
    try:
        parsed = json.loads(body)
    except (ValueError, RecursionError):
        return
    compact = json.dumps(parsed, separators=(",", ":"), ensure_ascii=False)
    yield (
        "the body was parsed and serialised again; it would match if compact; keep the received bytes",
        compact.encode("utf-8", "surrogatepass"),
    )
