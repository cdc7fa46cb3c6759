"""For receivers: is this request really from here? Needs Python's standard library only, so the file can be copied.

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

_MOST_CHARACTERS = 4096
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

    `body` is the request's body as it came, never a parsed and printed one. Returns the event's id, for telling a
    repeated delivery from a new one, when the request proves that too: it does with its `webhook-signature`.
    """
    now = time.time()
    found = _gather(headers)
    secrets = _check_secrets(secret)
    raw = _check_body(body)
    moment, signatures = _parse_signature(_get(found, SIGNATURE_HEADER))
    if found.get(TIMESTAMP_HEADER, moment) != moment:
        raise VerificationError(f"{TIMESTAMP_HEADER} is not the t of {SIGNATURE_HEADER}")
    _check_age(moment, now, tolerance)
    if not _matches(signatures, [_sign(known, moment, raw) for known in secrets]):
        raise VerificationError("no signature matches: another secret, or the body is not the one that was sent")
    return _verify_id(found, raw, secrets, now, tolerance)


def _verify_id(
    found: dict[str, str], body: bytes, secrets: Sequence[str], now: float, tolerance: float | None
) -> str | None:
    if not any(name in found for name in STANDARD_HEADERS):
        return None
    id, moment, given = (_get(found, name) for name in STANDARD_HEADERS)
    if not _is_seconds(moment):
        raise VerificationError("webhook-timestamp is not a whole number of seconds")
    _check_age(moment, now, tolerance)
    signatures = [field[3:] for field in given.split(" ") if field.startswith("v1,")]
    if not _matches(signatures, [_sign_standard(known, id, moment, body) for known in secrets]):
        raise VerificationError("webhook-signature does not match")
    if found.get(ID_HEADER, id) != id:
        raise VerificationError(f"{ID_HEADER} is not the webhook-id that was signed")
    return id


def _gather(headers: Headers) -> dict[str, str]:
    """Names in lower case; what the check looks at must be there once and in plain ASCII."""
    found: dict[str, str] = {}
    for given, value in _list_pairs(headers):
        name = given.lower()
        if name not in _LOOKED_AT:
            continue
        if name in found:
            raise VerificationError(f"{name} was sent more than once")
        if not value.isascii() or len(value) > _MOST_CHARACTERS:
            raise VerificationError(f"{name} is not a short text in ASCII")
        found[name] = value
    return found


def _list_pairs(headers: Headers) -> list[tuple[str, str]]:
    """Of a mapping, a framework's own headers, or a list of pairs, be they text or bytes."""
    items = getattr(headers, "items", None)
    try:
        pairs = [(name, value) for name, value in (items() if callable(items) else headers)]  # type: ignore[union-attr]
    except (TypeError, ValueError):
        raise VerificationError("give the headers as a mapping or as pairs of name and value") from None
    return [(_text(name, "a header's name"), _text(value, f"the header {name!r}")) for name, value in pairs]


def _text(given: Text, what: str) -> str:
    if isinstance(given, bytes):
        return given.decode("latin-1")
    if not isinstance(given, str):
        raise VerificationError(f"{what} is not text")
    return given


_LOOKED_AT = {SIGNATURE_HEADER, TIMESTAMP_HEADER, ID_HEADER, *STANDARD_HEADERS}


def _get(found: dict[str, str], name: str) -> str:
    if not found.get(name):
        raise VerificationError(f"{name} is missing")
    return found[name]


def _check_secrets(secret: Secrets) -> list[str]:
    secrets = _list_secrets(secret)
    if not secrets or not all(secrets):
        raise VerificationError("the secret is empty")
    return secrets


def _list_secrets(secret: Secrets) -> list[str]:
    if secret is None:
        raise VerificationError("there is no secret; is its variable set?")
    try:
        secrets: list[Text] = [secret] if isinstance(secret, str | bytes) else list(secret)
    except TypeError:
        raise VerificationError("give the secret as text, or several in a list") from None
    return [_text(one, "the secret") for one in secrets]


def _check_body(body: Body) -> bytes:
    if isinstance(body, str):
        return body.encode("utf-8", "surrogateescape")
    if not isinstance(body, bytes | bytearray | memoryview):
        raise VerificationError("give the body as the bytes that came, not parsed")
    return bytes(body)


def _parse_signature(text: str) -> tuple[str, list[str]]:
    """`t=1700000000,v1=…` with one t and at least one v1; schemes to come may stand beside them."""
    fields = text.split(",")
    if not all(map(_is_field, fields)):
        raise VerificationError(f"{SIGNATURE_HEADER} is not of the form t=…,v1=…")
    moments = [field[2:] for field in fields if field.startswith("t=")]
    signatures = [field[3:] for field in fields if field.startswith("v1=")]
    if len(moments) != 1 or not _is_seconds(moments[0]):
        raise VerificationError(f"{SIGNATURE_HEADER} must have one t, in whole seconds")
    if not signatures or not all(map(_is_hex_digest, signatures)):
        raise VerificationError(f"{SIGNATURE_HEADER} must have a v1 of 64 hexadecimal digits")
    return moments[0], signatures


def _check_age(moment: str, now: float, tolerance: float | None) -> None:
    if tolerance is not None and abs(now - int(moment)) > tolerance:
        direction = "old" if int(moment) < now else "far in the future"
        raise VerificationError(f"the timestamp is too {direction}: it differs by {abs(now - int(moment)):.0f} s")


def _matches(given: Iterable[str], expected: Sequence[str]) -> bool:
    """Every pair is compared, and each in constant time."""
    return any([compare_digest(one.encode(), other.encode()) for one in given for other in expected])  # noqa: C419


def _sign(secret: str, moment: str, body: bytes) -> str:
    return digest(secret.encode(), moment.encode() + b"." + body, "sha256").hex()


def _sign_standard(secret: str, id: str, moment: str, body: bytes) -> str:
    try:
        key = b64decode(secret.removeprefix("whsec_") + "==")
    except ValueError:
        key = b""
    if not key:
        raise VerificationError("the secret is not whsec_ and base64, as it was shown")
    return b64encode(digest(key, f"{id}.{moment}.".encode() + body, "sha256")).decode()


def explain(headers: Headers, body: Body, secret: Secrets, now: float | None = None) -> list[str]:
    """What is wrong with a request, in sentences; none when all is well."""
    now = time.time() if now is None else now
    try:
        pairs, secrets = _list_pairs(headers), _list_secrets(secret)
        raw = _check_body(body)
    except VerificationError as error:
        return [str(error)]
    given = next((value for name, value in pairs if name.lower() == SIGNATURE_HEADER), None)
    if given is None:
        return [*_doubt_secrets(secrets), _miss_header([name for name, _ in pairs])]
    found = [*_doubt_secrets(secrets), *_doubt_form(given)]
    try:
        gathered = _gather(pairs)
        moment, signatures = _parse_signature(given)
    except VerificationError as error:
        return found or [str(error)]
    return [*found, *_doubt_time(moment, gathered, now), *_doubt_match(gathered, raw, secrets, moment, signatures)]


def _doubt_secrets(secrets: list[str]) -> Iterator[str]:
    for secret in secrets or [""]:
        if not secret:
            yield "the secret is empty; is its variable set?"
        elif secret != secret.strip():
            yield "the secret has blanks or a line break around it; strip them"
        elif secret[0] in "\"'" or secret[-1] in "\"'":
            yield "the secret has quotation marks around it; remove them"
        elif not secret.startswith("whsec_"):
            yield "the secret does not start with whsec_; use it whole, as it was shown"


def _miss_header(names: list[str]) -> str:
    plain = {re.sub(r"[^a-z]", "", name.lower().removeprefix("http_")): name for name in names}
    renamed = plain.get(SIGNATURE_HEADER.replace("-", ""))
    if renamed:
        return f"{SIGNATURE_HEADER} arrived as {renamed}: a proxy or framework renamed it; look it up by that name"
    kin = sorted(name for key, name in plain.items() if "webhook" in key)
    others = f"; of its kind only {', '.join(kin)} arrived" if kin else "; none of its kind arrived"
    return f"{SIGNATURE_HEADER} is missing{others}: does a proxy in front drop headers?"


def _doubt_form(given: str) -> Iterator[str]:
    fields = [field.strip() for field in given.split(",")]
    moment = next((field[2:] for field in fields if field.startswith("t=")), None)
    if not given.isascii():
        yield "the signature contains characters that are not ASCII; copy it again"
    elif re.search(r"\s", given):
        yield "the signature has blanks in it; it is one word, t=…,v1=…"
    if moment is None:
        yield "the signature has no t=…; use the whole header, not only the part after v1="
    elif not _is_seconds(moment):
        yield "the t of the signature is not a whole number of seconds"
    for field in fields:
        if field.startswith("v1="):
            yield from _doubt_digest(field[3:])


def _doubt_digest(text: str) -> Iterator[str]:
    if _is_hex_digest(text):
        return
    if _is_base64_digest(text):
        yield "v1 is in base64; here it is 64 hexadecimal digits (base64 stands in webhook-signature)"
    elif _is_hex_digest(text.lower()):
        yield "v1 is in capital letters; compare it in lower case, as it is sent"
    else:
        yield f"v1 has {len(text)} characters instead of 64 hexadecimal digits; was it cut off?"


def _doubt_time(moment: str, found: dict[str, str], now: float) -> Iterator[str]:
    apart = int(moment) - now
    if abs(int(moment) / 1000 - now) < 10 * 365 * 86_400:
        yield "the timestamp is in milliseconds; here it is in seconds"
    elif apart < -TOLERANCE_SECONDS:
        yield f"the timestamp is too old by {_span(-apart - TOLERANCE_SECONDS)}: a stored request, or a clock is wrong"
    elif apart > TOLERANCE_SECONDS:
        yield f"the timestamp is {_span(apart)} in the future: this machine's clock is behind"
    if found.get(TIMESTAMP_HEADER, moment) != moment:
        yield f"{TIMESTAMP_HEADER} says {found[TIMESTAMP_HEADER]}, but {moment} is what was signed"
    other = found.get("webhook-timestamp", moment)
    if other != moment and _is_seconds(other) and abs(int(other) - now) > TOLERANCE_SECONDS:
        yield f"webhook-timestamp is {_span(abs(int(other) - now))} away from now, unlike the t of {SIGNATURE_HEADER}"


def _span(seconds: float) -> str:
    for unit, size in (("days", 86_400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} seconds"


def _doubt_match(
    found: dict[str, str], body: bytes, secrets: list[str], moment: str, signatures: list[str]
) -> Iterator[str]:
    if not all(secrets) or not secrets:
        return
    if not _matches(signatures, [_sign(secret, moment, body) for secret in secrets]):
        yield next(_find_reasons(found, body, secrets, moment, signatures), _NO_REASON)
        return
    try:
        _verify_id(found, body, secrets, 0, None)
    except VerificationError as error:
        yield f"the body is as it was signed, but the id is not: {error}"


_NO_REASON = (
    "no signature matches: the secret is another endpoint's or an older one, or the body was changed on its way"
)


def _find_reasons(
    found: dict[str, str], body: bytes, secrets: list[str], moment: str, signatures: list[str]
) -> Iterator[str]:
    """Tries what receivers commonly get wrong, and yields what would have matched."""
    for meant, other in _other_secrets(secrets):
        if _matches(signatures, [digest(other, f"{moment}.".encode() + body, "sha256").hex()]):
            yield f"the secret is not used as it was shown: it matches {meant}"
    for secret in secrets:
        for meant, signed in _other_texts(found, body, moment):
            if _matches(signatures, [digest(secret.strip().encode(), signed, "sha256").hex()]):
                yield meant
    if not body:
        yield "the body is empty: something read it before; keep the bytes that came"


def _other_secrets(secrets: list[str]) -> Iterator[tuple[str, bytes]]:
    for secret in secrets:
        trimmed = secret.strip().strip("\"'")
        yield "without the blanks or quotation marks around it", trimmed.encode()
        yield "with whsec_ in front", f"whsec_{trimmed}".encode()
        yield "without whsec_", trimmed.removeprefix("whsec_").encode()
        try:
            yield "as the bytes behind its base64", b64decode(trimmed.removeprefix("whsec_") + "==")
        except ValueError:
            continue


def _other_texts(found: dict[str, str], body: bytes, moment: str) -> Iterator[tuple[str, bytes]]:
    stamp = f"{moment}.".encode()
    yield "the body alone is signed here; sign the timestamp, a dot and the body", body
    yield "the timestamp and the body are joined without a dot", moment.encode() + body
    for meant, other in _other_bodies(body):
        yield meant, stamp + other
    if id := found.get("webhook-id") or found.get(ID_HEADER):
        yield (
            "the id is signed here too; that is the other signature, webhook-signature",
            f"{id}.".encode() + stamp + body,
        )


def _other_bodies(body: bytes) -> Iterator[tuple[str, bytes]]:
    yield "the body has a line break or blank at its end that was not sent", body.rstrip()
    yield "the body has a byte order mark in front that was not sent", body.removeprefix(b"\xef\xbb\xbf")
    yield "the body's line breaks were changed", body.replace(b"\r\n", b"\n")
    try:
        parsed = json.loads(body)
    except (ValueError, RecursionError):
        return
    compact = json.dumps(parsed, separators=(",", ":"), ensure_ascii=False)
    yield (
        "the body was parsed and printed again, it would match if compact; keep the bytes that came",
        compact.encode("utf-8", "surrogatepass"),
    )
