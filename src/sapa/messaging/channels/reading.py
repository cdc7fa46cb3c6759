"""Reads external JSON: any part may be missing, of another type or new, and none of that is an error."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from sapa.values.json import to_storable

Node = Mapping[str, Any]

_EARLIEST, _LATEST = 0, 4_102_444_800  # from 1970 to 2100


def parse_json(body: bytes) -> Any:
    """The value, fractions with the digits they have; None for invalid JSON."""
    try:
        return json.loads(body, parse_float=Decimal, parse_constant=lambda word: None)
    except (ValueError, RecursionError):
        return None


def parse_object(body: bytes) -> Node:
    """A callback's JSON object; raises ValueError for anything else."""
    found = parse_json(body)
    if not isinstance(found, dict):
        raise ValueError("the callback is not a JSON object")
    return found


def get(value: Any, *keys: str) -> Any:
    """The value at this path, or None."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def node(value: Any, *keys: str) -> Node:
    found = get(value, *keys)
    return found if isinstance(found, dict) else {}


def nodes(value: Any, *keys: str) -> Sequence[Node]:
    """The objects of a list; a single object counts as a list of one."""
    found = get(value, *keys)
    if isinstance(found, dict):
        return [found]
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def text(value: Any, *keys: str) -> str | None:
    """A non-empty string or number, as text that can be stored."""
    found = get(value, *keys)
    if isinstance(found, str):
        return to_storable(found) or None
    if isinstance(found, bool) or not isinstance(found, int | float | Decimal):
        return None
    return to_storable(str(found)) or None


def texts(value: Any, *keys: str) -> Sequence[str]:
    found = get(value, *keys)
    listed = found if isinstance(found, list) else []
    return [word for each in listed if (word := text({"": each}, "")) is not None]


def number(value: Any, *keys: str) -> Decimal | None:
    """A finite number, or a string of one."""
    try:
        found = Decimal(text(value, *keys) or "")
    except InvalidOperation:
        return None
    return found if found.is_finite() else None


def seconds(value: Any, *keys: str) -> datetime:
    """A Unix time in seconds, as a number or a string; now if there is none."""
    return find_seconds(value, *keys) or datetime.now(UTC)


def find_seconds(value: Any, *keys: str) -> datetime | None:
    """The same; None if there is none."""
    return _find_instant(text(value, *keys), 1)


def milliseconds(value: Any, *keys: str) -> datetime:
    return find_milliseconds(value, *keys) or datetime.now(UTC)


def find_milliseconds(value: Any, *keys: str) -> datetime | None:
    return _find_instant(text(value, *keys), 1000)


def _find_instant(word: str | None, per_second: int) -> datetime | None:
    try:
        instant = float(word or "") / per_second
    except ValueError:
        return None
    return datetime.fromtimestamp(instant, UTC) if _EARLIEST < instant < _LATEST else None
