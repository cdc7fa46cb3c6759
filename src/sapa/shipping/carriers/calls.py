"""How adapters call their carriers: JSON, time limits, and secrets removed from messages."""

import random
import re
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec
from msgspec import Struct

from sapa.db.retry import retry
from sapa.outbound.client import NotSent, ProviderResponse, Unclear
from sapa.shipping.carriers import circuit
from sapa.shipping.carriers.interface import CarrierAccount, CarrierAway
from sapa.shipping.carriers.reading import Unreadable, decode
from sapa.values.provider_accounts import mask_secrets

Shape = TypeVar("Shape")

MAX_WORDS = 300
BOOK_SECONDS = 30.0
BOOK_CONNECT_SECONDS = 3.0
FILE_SECONDS = 20.0
MAX_FILE_BYTES = 16 * 1_048_576
PDF_START = b"%PDF-"
_BEARER = re.compile(r"bearer\s+\S+", re.IGNORECASE)
_BUSY = frozenset({429, 502, 503, 504})


class Timeouts(Struct, frozen=True):
    """Limits of a call that may be repeated, for all its tries together."""

    seconds: float
    tries: int
    connect_seconds: float = 2.0


QUOTING = Timeouts(seconds=4.0, tries=2)
ASKING = Timeouts(seconds=8.0, tries=3)


class Request(Struct, frozen=True):
    """A request to a carrier."""

    method: str
    path: str
    headers: Mapping[str, str] = {}
    params: Mapping[str, str] | None = None
    body: Any = None


async def ask(connection: CarrierAccount, request: Request, timeouts: Timeouts = ASKING) -> ProviderResponse:
    """A call that is safe to repeat: retried if the carrier was not reached or is busy.

    Raises CarrierAway without a usable response.
    """
    if reason := circuit.enter(connection):
        raise CarrierAway(reason)
    try:
        response = await _ask(connection, request, timeouts)
    except CarrierAway:
        circuit.record_failure(connection)
        raise
    circuit.reset(connection)
    return response


class _TryLater(Exception):
    """The carrier was not reached, or is busy."""

    def __init__(self, reason: str, pause: float | None = None) -> None:
        super().__init__(reason)
        self.pause = random.uniform(0.1, 0.6) if pause is None else pause  # noqa: S311


async def _ask(connection: CarrierAccount, request: Request, timeouts: Timeouts) -> ProviderResponse:
    ask_once = partial(_ask_once, connection, request, timeouts, time.monotonic() + timeouts.seconds)
    try:
        return await retry(
            ask_once, _TryLater, tries=timeouts.tries, seconds=timeouts.seconds, pause=lambda failure: failure.pause
        )
    except _TryLater as failure:
        raise CarrierAway(str(failure)) from None


async def _ask_once(connection: CarrierAccount, request: Request, timeouts: Timeouts, ends: float) -> ProviderResponse:
    try:
        response = await _call(connection, request, max(0.1, ends - time.monotonic()), timeouts.connect_seconds)
    except Unclear as error:
        raise CarrierAway(scrub(connection, str(error))) from None
    except NotSent as error:
        raise _TryLater(scrub(connection, str(error))) from None
    if response.status in _BUSY:
        raise _TryLater(f"it answered {response.status}", _parse_pause(response))
    if not (response.status < 300 or 400 <= response.status < 500):
        raise CarrierAway(f"it answered {response.status}")
    return response


async def send_once(connection: CarrierAccount, request: Request) -> ProviderResponse:
    """A call that must not happen twice: raises NotSent or Unclear; a server error is Unclear.

    A busy carrier (429) has certainly not accepted it.
    """
    if reason := circuit.enter(connection):
        raise NotSent(reason)
    try:
        response = await _call(connection, request, BOOK_SECONDS, BOOK_CONNECT_SECONDS)
    except (NotSent, Unclear) as error:
        circuit.record_failure(connection)
        raise type(error)(scrub(connection, str(error))) from None
    if response.status >= 500 or response.status == 408 or 300 <= response.status < 400:
        circuit.record_failure(connection)
        raise Unclear(f"it answered {response.status}")
    circuit.reset(connection)
    if response.status == 429:
        raise NotSent("it accepts no more bookings for now")
    return response


async def _call(
    connection: CarrierAccount, request: Request, seconds: float, connect_seconds: float
) -> ProviderResponse:
    headers = {"accept": "application/json", **request.headers}
    content = None
    if request.body is not None:
        headers["content-type"] = "application/json"
        content = msgspec.json.encode(request.body)
    return await connection.client.call(
        request.method,
        connection.address + request.path,
        headers=headers,
        params=request.params,
        content=content,
        seconds=seconds,
        connect_seconds=min(seconds, connect_seconds),
    )


async def fetch_pdf(connection: CarrierAccount, address: str) -> bytes:
    """A file that the carrier named. Only an address of its own API is trusted; any other goes through the guard."""
    is_own = address.startswith(connection.address + "/")
    if not (is_own or address.startswith("https://")):
        raise CarrierAway("its file could not be fetched: the address is not https")
    try:
        if is_own:
            response = await connection.client.call("GET", address, seconds=FILE_SECONDS, max_bytes=MAX_FILE_BYTES)
        else:
            response = await connection.client.fetch(address, MAX_FILE_BYTES, seconds=FILE_SECONDS)
    except (NotSent, Unclear) as error:
        raise CarrierAway(f"its file could not be fetched: {scrub(connection, str(error))}") from None
    if response.status != 200 or not response.body.startswith(PDF_START):
        raise CarrierAway(f"it answered {response.status} without a PDF file")
    return response.body


def parse(response: ProviderResponse, shape: type[Shape]) -> Shape:
    """Decodes the body. Raises Unreadable."""
    try:
        return decode(response.body, shape)
    except Unreadable:
        raise Unreadable(f"it answered {response.status} with something that cannot be read") from None


def read(response: ProviderResponse, shape: type[Shape]) -> Shape:
    """Like parse, for a call that may be repeated: raises CarrierAway."""
    try:
        return parse(response, shape)
    except Unreadable as error:
        raise CarrierAway(str(error)) from None


def read_booking(response: ProviderResponse, shape: type[Shape]) -> Shape:
    """Like parse, for a booking: an unreadable response may still be a booking, so it raises Unclear."""
    try:
        return parse(response, shape)
    except Unreadable as error:
        raise Unclear(str(error)) from None


class _RefusalFields(Struct, frozen=True):
    """The fields in which carriers refuse with a successful HTTP status."""

    success: bool | None = None
    status: Any = None
    errors: Any = None
    error: Any = None
    statusCode: int | None = None  # noqa: N815 - a carrier's spelling


def is_granted(response: ProviderResponse) -> bool:
    """Whether the carrier did what was requested. Raises CarrierAway if the response says neither."""
    if response.status >= 400 or response.status == 204:
        return response.status == 204
    consent = read(response, _RefusalFields)
    is_no = consent.success is False or consent.status is False or consent.errors or consent.error
    return not is_no and (consent.statusCode or 0) < 400


def build_segment(number: str) -> str:
    """Quotes a number as one path segment, so that it cannot lead to another path."""
    if not number.strip("."):
        raise CarrierAway(f"{number} is not a usable number")
    return quote(number, safe="")


def scrub(connection: CarrierAccount, text: str) -> str:
    """Removes the account's secrets from a carrier's or a library's message, and shortens it."""
    return scrub_text(connection.credentials, text)


def scrub_text(credentials: Mapping[str, str], text: str) -> str:
    text = text.encode(errors="replace").decode()  # a header may hold bytes that cannot be stored as text
    text = _BEARER.sub("Bearer …", mask_secrets(text, credentials))
    return shorten(" ".join(text.split()), MAX_WORDS)


def shorten(text: str, most: int) -> str:
    """Cuts at a word boundary if possible."""
    if len(text) <= most:
        return text
    cut = text[: most - 1]
    at_word = cut if text[most - 1].isspace() else cut.rpartition(" ")[0]
    return (at_word or cut).rstrip() + "…"


def join_notes(notes: Sequence[str | None]) -> str:
    return " / ".join(" ".join(note.split()) for note in notes if note and note.strip())


def _parse_pause(response: ProviderResponse) -> float | None:
    text = response.headers.get("retry-after", "")
    return float(text) if text.isascii() and text.isdigit() else None
