"""Integers that were written with a fraction of zero or an exponent: for JSON, 24.0 and 24 are the same number."""

import re
from decimal import Decimal

import msgspec
from msgspec import inspect
from msgspec.json import decode, encode

_MAX_DIGITS = 20
_is_number = re.compile(rb"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,4})?").fullmatch


def rewrite_integers(raw: bytes, kind: inspect.Type) -> bytes:
    """The JSON with its whole numbers written as integers where the type wants integers, and otherwise unchanged."""
    if isinstance(kind, inspect.Metadata):
        return rewrite_integers(raw, kind.type)
    if isinstance(kind, inspect.UnionType):
        for option in kind.types:
            raw = rewrite_integers(raw, option)
        return raw
    if isinstance(kind, inspect.IntType):
        return _rewrite_integer(raw)
    if isinstance(kind, inspect.StructType) and raw.startswith(b"{"):
        fields = {field.encode_name: field.type for field in kind.fields}
        return _rewrite_values(raw, fields, inspect.AnyType())
    if isinstance(kind, inspect.DictType) and raw.startswith(b"{"):
        return _rewrite_values(raw, {}, kind.value_type)
    if isinstance(kind, inspect.CollectionType) and raw.startswith(b"["):
        items = decode(raw, type=list[msgspec.Raw])
        return encode([msgspec.Raw(rewrite_integers(bytes(item), kind.item_type)) for item in items])
    return raw


def _rewrite_values(raw: bytes, kinds: dict[str, inspect.Type], other: inspect.Type) -> bytes:
    values = decode(raw, type=dict[str, msgspec.Raw])
    return encode(
        {name: msgspec.Raw(rewrite_integers(bytes(value), kinds.get(name, other))) for name, value in values.items()}
    )


def _rewrite_integer(raw: bytes) -> bytes:
    if not _is_number(raw):
        return raw
    number = Decimal(raw.decode())
    is_whole = number.adjusted() < _MAX_DIGITS and number == number.to_integral_value()
    return b"%d" % int(number) if is_whole else raw
