"""Converts form fields into the API's bodies. Fields have the API's names, with dots for nesting."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from sapa.console.routes import PageRequest
from sapa.http.errors import Invalid

MINUTE = len("2026-01-31T09:30")


def gather(
    page: PageRequest, texts: Iterable[str], numbers: Iterable[str] = (), values: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The body of the form's fields; empty fields and empty objects are null. `values` take precedence."""
    body: dict[str, Any] = {}
    typed = values or {}
    for name in texts:
        _put(body, name, typed.get(name, page.form_value(name)) or None)
    for name in numbers:
        _put(body, name, parse_number(name, typed.get(name, page.form_value(name))))
    return {name: _prune(value) for name, value in body.items()}


def spread(resource: Any, names: Iterable[str]) -> dict[str, str]:
    """A resource as form fields."""
    return {name: _read(resource, name.split(".")) for name in names}


def parse_number(name: str, text: str) -> int | float | None:
    if not text:
        return None
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise Invalid.field(name, "must be a number, such as 1.5")
    return int(number) if number.is_integer() else number


def parse_instant(text: str, is_end: bool = False) -> str:
    """A browser's local date and time to the minute, taken as UTC; an end is the end of its minute."""
    if len(text) != MINUTE:
        return text
    return f"{text}:59.999Z" if is_end else f"{text}:00Z"


def _put(body: dict[str, Any], name: str, value: Any) -> None:
    *path, last = name.split(".")
    for step in path:
        body = body.setdefault(step, {})
    body[last] = value


def _prune(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    pruned = {name: _prune(inner) for name, inner in value.items()}
    return None if all(inner is None for inner in pruned.values()) else pruned


def _read(value: Any, path: list[str]) -> str:
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return "" if value is None else str(value)
