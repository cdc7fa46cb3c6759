"""Decodes carriers' JSON: rejects what is not JSON, has another shape, or holds an implausible value."""

import re
from collections.abc import Iterable
from contextlib import suppress
from decimal import Decimal
from functools import cache
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, cast, get_args, get_origin

import msgspec
from msgspec import Meta, Raw, Struct

Shape = TypeVar("Shape")

MAX_DIGITS = 13
MOST = Decimal(10 ** (MAX_DIGITS - 1))
"""Rupiah or kilometres: above any plausible amount."""
MAX_DECIMALS = 20
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
    body = bytes(body)
    has_nul = rb"\u0000" in body
    try:
        decoded: Shape = _get_decoder(cast(Any, shape)).decode(_NUL.sub(rb"\1", body) if has_nul else body)
        _check(decoded, has_long_texts=has_nul or len(body) > LONGEST_TEXT)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ArithmeticError):
        raise Unreadable("it sent something that cannot be read") from None
    return decoded


def decode_rows(rows: Iterable[Raw], shape: type[Shape]) -> tuple[list[Shape], int]:
    """The readable rows, and the number of unreadable ones."""
    rows = list(rows)
    with suppress(Unreadable):
        return decode(b"[" + b",".join(rows) + b"]", list[shape]), 0  # type: ignore[valid-type]
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


def _check(value: Any, has_long_texts: bool) -> None:
    """A short body without NUL characters has no text to check."""
    if isinstance(value, list):
        for item in value:
            if type(item) not in _ALWAYS_PLAUSIBLE:
                _check(item, has_long_texts)
    elif isinstance(value, Struct):
        _check_fields(value, has_long_texts)
    elif isinstance(value, str) and has_long_texts:
        _check_text(value)


def _check_fields(struct: Struct, has_long_texts: bool) -> None:
    """One loop, because prices have hundreds of fields."""
    for name in _list_checked_fields(type(struct)):
        item = getattr(struct, name)
        kind = type(item)
        if kind is str and item.strip():
            if has_long_texts:
                _check_text(item)
        elif kind is str or (kind is Decimal and not _is_amount(item)):
            _reset_field(struct, name, is_text=kind is str)
        elif kind is not Decimal and kind not in _ALWAYS_PLAUSIBLE:
            _check(item, has_long_texts)


@cache
def _list_checked_fields(kind: type[Struct]) -> tuple[str, ...]:
    """Without those that hold nothing implausible, by their types."""
    return tuple(field.name for field in msgspec.structs.fields(kind) if not _is_always_plausible(field.type))


def _is_always_plausible(annotation: Any) -> bool:
    if get_origin(annotation) is Annotated:
        return _is_always_plausible(get_args(annotation)[0])
    if isinstance(annotation, UnionType) or get_origin(annotation) is Union:
        return all(map(_is_always_plausible, get_args(annotation)))
    return annotation in _ALWAYS_PLAUSIBLE


def _check_text(text: str) -> None:
    if len(text) > LONGEST_TEXT or "\0" in text:
        raise Unreadable("it sent a text that cannot be stored")


def _is_amount(amount: Decimal) -> bool:
    """A price or a distance: finite, not negative, below the limits."""
    written = str(amount)
    if written.isdigit() and len(written) < MAX_DIGITS:
        return True
    exponent = amount.as_tuple().exponent
    return isinstance(exponent, int) and 0 <= amount <= MOST and exponent >= -MAX_DECIMALS


def _reset_field(struct: Struct, name: str, *, is_text: bool) -> None:
    """Of a required field, a blank text stays, and an amount makes the response unreadable."""
    field = next(field for field in msgspec.structs.fields(struct) if field.name == name)
    if not field.required:
        msgspec.structs.force_setattr(struct, name, field.default)
    elif not is_text:
        raise Unreadable("it sent an implausible amount")
