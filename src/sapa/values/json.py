"""JSON as JavaScript serialises it: receivers that re-serialise a body get the same bytes."""

from collections.abc import Mapping
from decimal import Decimal
from math import isfinite

import msgspec

MAX_EXACT = 2**53 - 1
"""Number.MAX_SAFE_INTEGER of JavaScript."""

encode = msgspec.json.Encoder(decimal_format="number").encode
"""The product's only JSON encoder; amounts are numbers with the digits they have."""


def encode_values(values: Mapping[str, str | int | float]) -> bytes:
    """An object of strings and numbers, its keys in the order in which JavaScript keeps them."""
    return encode({key: _encode_value(values[key]) for key in sorted(values, key=_sort_key)})


def encode_document(value: object) -> bytes:
    """Any JSON value. A number that JavaScript cannot hold becomes a string of its digits."""
    return encode(_canonicalise(value))


def to_storable(text: str) -> str:
    """Without NUL and halves of surrogate pairs, which the database cannot store."""
    if text.isascii():
        return text.replace("\x00", "")
    return text.replace("\x00", "").encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def is_exact(number: int | float) -> bool:
    return -MAX_EXACT <= number <= MAX_EXACT


def _sort_key(key: str) -> tuple[int, int]:
    """Array-like keys come first and by number; sorting is stable, so the others keep their order."""
    is_index = key.isascii() and key.isdigit() and (key == "0" or key[0] != "0") and int(key) < 2**32 - 1
    return (0, int(key)) if is_index else (1, 0)


def _encode_value(value: str | int | float) -> str | int | msgspec.Raw:
    if not isinstance(value, float):
        return value
    if value.is_integer():
        return int(value)
    return msgspec.Raw(_format_fraction(value).encode())


def _format_fraction(value: float) -> str:
    if abs(value) >= 1e-6:
        return format(Decimal(repr(value)), "f")
    return repr(value).replace("e-0", "e-")


def _canonicalise(value: object) -> object:
    match value:
        case dict():
            return {to_storable(str(key)): _canonicalise(value[key]) for key in sorted(value, key=_sort_key)}
        case list() | tuple():
            return [_canonicalise(each) for each in value]
        case str():
            return to_storable(value)
        case bool() | None:
            return value
        case int():
            return value if is_exact(value) else str(value)
        case float() | Decimal():
            return _canonicalise_fraction(value)
    raise TypeError(f"not a JSON value: {type(value).__name__}")


def _canonicalise_fraction(value: float | Decimal) -> object:
    if not (value.is_finite() if isinstance(value, Decimal) else isfinite(value)):
        return None
    nearest = float(value)
    if isinstance(value, Decimal) and Decimal(repr(nearest)) != value:
        return str(value)
    return _encode_value(nearest) if is_exact(nearest) else str(value)
