"""Converts form fields into the API's bodies. Fields have the API's names, with dots for nesting."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from decimal import Decimal
from typing import Any

import asyncpg

from sapa.console.amounts import NotAnAmount, parse_typed_amount, parse_typed_measure
from sapa.console.formats import get_zone
from sapa.console.page_request import PageRequest
from sapa.http.errors import ApiError, FieldError, Invalid, translate
from sapa.values.instants import format_instant

LONGEST_LABEL = 100
MINUTE = len("2026-01-31T09:30")
_GROUPED = re.compile(r"-?[1-9][0-9]{0,2}(?P<mark>[.,])[0-9]{3}(?:(?P=mark)[0-9]{3})*").fullmatch


def gather(
    page: PageRequest,
    texts: Iterable[str],
    numbers: Iterable[str] = (),
    values: Mapping[str, str] | None = None,
    amounts: Iterable[str] = (),
    measures: Iterable[str] = (),
    counts: Iterable[str] = (),
) -> dict[str, Any]:
    """The body of the form's fields; empty fields and empty objects are null. `values` take precedence."""
    body: dict[str, Any] = {}
    typed = values or {}
    for name in texts:
        _put(body, name, typed.get(name, page.form_value(name)) or None)
    for name in numbers:
        _put(body, name, parse_number(name, typed.get(name, page.form_value(name))))
    for name in amounts:
        _put(body, name, parse_money(page, name))
    for name in counts:
        _put(body, name, parse_count(name, page.form_value(name)))
    for name in measures:
        _put(body, name, parse_measure(page, name))
    return {name: _prune(value) for name, value in body.items()}


def parse_money(page: PageRequest, name: str, currency: str = "", text: str | None = None) -> int | float | None:
    """An amount of the company's currency or another, as the reader's language writes it. The API checks the rest."""
    typed = page.form_value(name) if text is None else text
    if not typed:
        return None
    try:
        amount = parse_typed_amount(typed, page.language, currency or (page.company.currency if page.company else ""))
    except NotAnAmount:
        raise Invalid.field(name, "must be an amount, such as 10000") from None
    return _simplify(amount)


def parse_measure(page: PageRequest, name: str) -> int | float | None:
    """A weight or a length, as the reader's language writes it."""
    if not (typed := page.form_value(name)):
        return None
    try:
        return _simplify(parse_typed_measure(typed, page.language))
    except NotAnAmount:
        raise Invalid.field(name, "must be a number, such as 1.5") from None


def spread(resource: Any, names: Iterable[str]) -> dict[str, str]:
    """A resource as form fields."""
    return {name: _read(resource, name.split(".")) for name in names}


def split_words(text: str) -> list[str]:
    """Words between commas, each once."""
    return list(dict.fromkeys(word for part in text.split(",") if (word := part.strip())))


def split_labels(page: PageRequest, name: str) -> list[str]:
    labels = split_words(page.form_value(name))
    if any(len(label) > LONGEST_LABEL for label in labels):
        raise Invalid.field(name, f"must have at most {LONGEST_LABEL} characters each")
    return labels


@contextmanager
def show_at(name: str, *kinds: type[ApiError]) -> Iterator[None]:
    """What such an error says about the whole request is said at the field."""
    try:
        yield
    except (ApiError, asyncpg.IntegrityConstraintViolationError) as failure:
        error = translate(failure)
        if not isinstance(error, kinds):
            raise
        error.details = [FieldError(name, error.message)]
        raise error from None


@contextmanager
def rename_fields(names: Mapping[str, str]) -> Iterator[None]:
    """Problems are said at the form's fields, by the API's names of them."""
    try:
        yield
    except Invalid as error:
        details = error.details or []
        error.details = [FieldError(names.get(one.field, one.field), one.message) for one in details]
        raise


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


def parse_count(name: str, text: str) -> int | None:
    """Of things that have no halves: 1.000 and 1,000 are a thousand."""
    try:
        number = parse_number(name, re.sub(r"[.,]", "", text) if _GROUPED(text) else text)
    except Invalid:
        raise Invalid.field(name, "must be a whole number") from None
    if isinstance(number, float):
        raise Invalid.field(name, "must be a whole number")
    return number


def parse_units(name: str, text: str) -> int:
    """How many of an item: one if nothing is said."""
    units = parse_count(name, text)
    return 1 if units is None else units


def parse_instant(page: PageRequest, text: str, is_end: bool = False) -> str:
    """A browser's local date and time to the minute, in the reader's time zone; an end is the end of its minute."""
    if len(text) != MINUTE:
        return text
    try:
        local = datetime.fromisoformat(text)
        if is_end:
            local = local.replace(second=59, microsecond=999_000)
        return format_instant(local.replace(tzinfo=get_zone(page.time_zone)))
    except (ValueError, OverflowError):
        return text


def spread_instant(page: PageRequest, value: str | None) -> str:
    """An instant as a field for a date and time shows it, in the reader's time zone."""
    if value is None:
        return ""
    zone = get_zone(page.time_zone)
    return datetime.fromisoformat(value).astimezone(zone).strftime("%Y-%m-%dT%H:%M")


def _simplify(number: Decimal) -> int | float:
    return int(number) if number == number.to_integral_value() else float(number)


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
