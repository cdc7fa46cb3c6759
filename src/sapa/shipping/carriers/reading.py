"""Decodes carriers' JSON: rejects what is not JSON, has another shape, or holds an implausible value."""

import re
from collections.abc import Iterable
from decimal import Decimal
from functools import cache
from typing import Annotated, Any, TypeVar, cast

import msgspec
from msgspec import Meta, Raw, Struct

Shape = TypeVar("Shape")

MOST = Decimal(10**12)
"""Rupiah or kilometres: above any plausible amount."""
MOST_DECIMALS = 20
LONGEST_TEXT = 4_000

Word = Annotated[str, Meta(max_length=200)]
"""A number, a status or a timestamp as a carrier writes it: short enough for an index."""
Number = Annotated[str, Meta(min_length=1, max_length=200, pattern=r"\S")]
"""A carrier's number of a booking; without it there is no booking."""
Code = Annotated[int, Meta(ge=-(2**31), lt=2**31)]
"""A carrier's status code, within the database's integer range."""

_ALWAYS_PLAUSIBLE = frozenset({type(None), bool, int, float, Raw})

# After an even number of backslashes: an escape, not an escaped backslash.
_NUL = re.compile(rb"(?<!\\)((?:\\\\)*)\\u0000")


class Unreadable(Exception):
    """A response that does not match the carrier's documentation."""


def decode(body: bytes | Raw, shape: type[Shape]) -> Shape:
    """Decodes a carrier's JSON; numbers may be written as text. Raises Unreadable.

    NUL characters are removed, because database text cannot hold them. Implausible amounts and blank texts are reset in
    optional fields, so that a wrong distance does not void a booking.
    """
    try:
        decoded: Shape = _get_decoder(cast(Any, shape)).decode(_strip(bytes(body)))
        _check(decoded)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ArithmeticError):
        raise Unreadable("it sent something that cannot be read") from None
    return decoded


def sift(rows: Iterable[Raw], shape: type[Shape]) -> tuple[list[Shape], int]:
    """The readable rows, and the number of unreadable ones."""
    readable, unreadable = [], 0
    for row in rows:
        try:
            readable.append(decode(row, shape))
        except Unreadable:
            unreadable += 1
    return readable, unreadable


@cache
def _get_decoder(shape: Any) -> Any:
    return msgspec.json.Decoder(shape, strict=False)


def _strip(body: bytes) -> bytes:
    return _NUL.sub(rb"\1", body) if rb"\u0000" in body else body


def _check(value: Any) -> None:
    """One loop, because prices have hundreds of fields."""
    if isinstance(value, list):
        for item in value:
            _check(item)
    elif isinstance(value, str):
        _check_text(value)
    elif isinstance(value, Struct):
        for name in value.__struct_fields__:
            item = getattr(value, name)
            kind = type(item)
            if kind in _ALWAYS_PLAUSIBLE:
                continue
            if (kind is str and not item.strip()) or (kind is Decimal and not _is_amount(item)):
                _reset_field(value, name, is_text=kind is str)
            elif kind is not Decimal:
                _check(item)


def _check_text(text: str) -> None:
    if len(text) > LONGEST_TEXT or "\0" in text:
        raise Unreadable("it sent a text that cannot be stored")


def _is_amount(amount: Decimal) -> bool:
    """A price or a distance: finite, not negative, below the limits."""
    exponent = amount.as_tuple().exponent
    return isinstance(exponent, int) and 0 <= amount <= MOST and exponent >= -MOST_DECIMALS


def _reset_field(struct: Struct, name: str, *, is_text: bool) -> None:
    """Of a required field, a blank text stays, and an amount makes the response unreadable."""
    field = next(field for field in msgspec.structs.fields(struct) if field.name == name)
    if not field.required:
        msgspec.structs.force_setattr(struct, name, field.default)
    elif not is_text:
        raise Unreadable("it sent an implausible amount")
