"""The one gate through which a carrier's JSON comes in: what is no JSON, has another shape, or holds a value that no
parcel can have is not taken for an answer."""

import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, Raw, Struct

Shape = TypeVar("Shape")

MOST = Decimal(10**12)
"""Rupiah or kilometres: nothing that a carrier counts comes near it."""
MOST_DECIMALS = 20
LONGEST_TEXT = 4_000

Word = Annotated[str, Meta(max_length=200)]
"""A number, a status or an instant as a carrier writes it: short enough for an index."""
Number = Annotated[str, Meta(min_length=1, max_length=200, pattern=r"\S")]
"""What a carrier knows a booking by: without it nobody can say that it has one."""
Code = Annotated[int, Meta(ge=-(2**31), lt=2**31)]
"""A carrier's number for a state, as the database can hold it."""

# Behind an even number of backslashes, that is: an escape and not an escaped backslash.
_NUL = re.compile(rb"(?<!\\)((?:\\\\)*)\\u0000")


class Unreadable(Exception):
    """Something that is not what the carrier's documents promise."""


def decode(body: bytes | Raw, shape: type[Shape]) -> Shape:
    """What a carrier sent; numbers written as texts are numbers. Raises Unreadable.

    Zero characters, which no database text can hold, are left out, and so are amounts that cannot be where none is
    needed: a booking stands, however long its way is said to be. An empty text is none where none is needed.
    """
    try:
        decoded = msgspec.json.decode(_strip(bytes(body)), type=shape, strict=False)
        _check(decoded)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ArithmeticError):
        raise Unreadable("it sent something that cannot be read") from None
    return decoded


def sift(rows: Iterable[Raw], shape: type[Shape]) -> tuple[list[Shape], int]:
    """The rows that can be read, and how many cannot: one that is odd does not hide the others."""
    readable, unreadable = [], 0
    for row in rows:
        try:
            readable.append(decode(row, shape))
        except Unreadable:
            unreadable += 1
    return readable, unreadable


def _strip(body: bytes) -> bytes:
    return _NUL.sub(rb"\1", body) if rb"\u0000" in body else body


def _check(value: Any) -> None:
    if isinstance(value, Struct):
        for name in value.__struct_fields__:
            item = getattr(value, name)
            if isinstance(item, Decimal) and not _is_amount(item):
                if not _reset_field(value, name):
                    raise Unreadable("it named an amount that cannot be")
            elif isinstance(item, str) and not item.strip():
                _reset_field(value, name)
            else:
                _check(item)
    elif isinstance(value, str):
        if len(value) > LONGEST_TEXT or "\0" in value:
            raise Unreadable("it sent a text that cannot be kept")
    elif isinstance(value, list):
        for item in value:
            _check(item)


def _is_amount(amount: Decimal) -> bool:
    """A price or a distance: finite, not below zero, and not beyond everything."""
    exponent = amount.as_tuple().exponent
    return isinstance(exponent, int) and 0 <= amount <= MOST and exponent >= -MOST_DECIMALS


def _reset_field(struct: Struct, name: str) -> bool:
    """As if it had not been said. False where it has to be."""
    field = next(field for field in msgspec.structs.fields(struct) if field.name == name)
    if not field.required:
        msgspec.structs.force_setattr(struct, name, field.default)
    return not field.required
