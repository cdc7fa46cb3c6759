"""What JSON.stringify(JSON.parse(text)) prints, worked out from ECMAScript's rules and from nothing of ours."""

import json
from decimal import Decimal
from typing import Any


def print_again(text: str) -> str:
    return _print(json.loads(text, object_pairs_hook=_object, parse_int=float))


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Array indexes come first, in ascending order; a repeated key keeps its place and takes the later value."""
    members = dict(pairs)
    indexes = sorted((key for key in members if _is_index(key)), key=int)
    return {key: members[key] for key in [*indexes, *(key for key in members if not _is_index(key))]}


def _is_index(key: str) -> bool:
    return key.isascii() and key.isdigit() and str(int(key)) == key and int(key) <= 2**32 - 2


def _print(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ",".join(f"{_text(key)}:{_print(member)}" for key, member in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_print, value)) + "]"
    if isinstance(value, float):
        return print_number(value)
    return _text(value) if isinstance(value, str) else json.dumps(value)


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def print_number(number: float) -> str:
    """Number::toString: the shortest digits that read back as the number, placed by its magnitude."""
    if number == 0:
        return "0"
    sign, digits, exponent = Decimal(repr(number)).normalize().as_tuple()
    assert isinstance(exponent, int)
    text, size = "".join(map(str, digits)), len(digits)
    point = size + exponent
    return ("-" if sign else "") + _place(text, size, point)


def _place(digits: str, size: int, point: int) -> str:
    if size <= point <= 21:
        return digits + "0" * (point - size)
    if 0 < point <= 21:
        return f"{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"0.{'0' * -point}{digits}"
    mantissa = digits[0] + (f".{digits[1:]}" if size > 1 else "")
    return f"{mantissa}e{'+' if point > 0 else '-'}{abs(point - 1)}"
