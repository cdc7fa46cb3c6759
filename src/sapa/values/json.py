"""JSON as JavaScript would print it again: receivers that re-serialise a body must arrive at the same bytes."""

from collections.abc import Mapping
from decimal import Decimal

import msgspec

MOST_EXACT = 2**53 - 1
"""Beyond this JavaScript no longer tells whole numbers apart."""

encode = msgspec.json.Encoder(decimal_format="number").encode
"""The product's one way to JSON; amounts are numbers, printed with the digits they have."""


def encode_values(values: Mapping[str, str | int | float]) -> bytes:
    """An object of strings and numbers, its keys in the order in which JavaScript keeps them."""
    return encode({key: _value(values[key]) for key in sorted(values, key=_place)})


def is_exact(number: int | float) -> bool:
    return -MOST_EXACT <= number <= MOST_EXACT


def _place(key: str) -> tuple[int, int]:
    """Array-like keys come first and by number; sorting is stable, so the others keep their order."""
    is_index = key.isascii() and key.isdigit() and (key == "0" or key[0] != "0") and int(key) < 2**32 - 1
    return (0, int(key)) if is_index else (1, 0)


def _value(value: str | int | float) -> str | int | msgspec.Raw:
    if not isinstance(value, float):
        return value
    if value.is_integer():
        return int(value)
    return msgspec.Raw(_fraction(value).encode())


def _fraction(value: float) -> str:
    if abs(value) >= 1e-6:
        return format(Decimal(repr(value)), "f")
    return repr(value).replace("e-0", "e-")
