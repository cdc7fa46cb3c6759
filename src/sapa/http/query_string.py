"""Query strings, read strictly: unknown, repeated and malformed parameters are refused by name."""

import re
from collections.abc import Callable
from datetime import UTC, date, datetime
from enum import EnumType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints
from urllib.parse import unquote_to_bytes

import msgspec
from msgspec import Meta

from sapa.http.errors import Invalid
from sapa.values.instants import format_instant

_is_integer = re.compile(r"-?[0-9]{1,16}").fullmatch
_is_date_time = re.compile(
    r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:[0-5]\d)", re.ASCII
).fullmatch
_is_date = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII).fullmatch
_FRACTION = re.compile(r"\.(\d+)")

DATE_ADVICE = "must be a date, such as 2026-01-31"
DATE_TIME_ADVICE = "must be an ISO 8601 date-time with an offset, such as 2026-01-31T09:30:00Z"


class ListPosition:
    """Marks a parameter that says which part of a list to read: a page, its size or a cursor."""


POSITION = ListPosition()
PageNumber = Annotated[int, Meta(ge=1, le=1_000_000, description="The page to read, from 1."), POSITION]
PageLimit = Annotated[int, Meta(ge=1, le=100, description="How many items a page holds."), POSITION]
NOT_BLANK = r"\S"
SearchText = Annotated[str, Meta(min_length=1, max_length=200, pattern=NOT_BLANK)]


class PageQuery(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The parameters that every paged list takes."""

    page: PageNumber = 1
    limit: PageLimit = 20

    @property
    def offset(self) -> int:
        return (self.page - 1) * self.limit


class BadValue(ValueError):
    """A parameter's value that cannot be read; the text says what is accepted."""


def parse_integer(text: str) -> int:
    if not _is_integer(text):
        raise BadValue("must be a whole number")
    return int(text)


def parse_date_time(text: str) -> datetime:
    """Any RFC 3339 offset. A plus sign that was not percent-encoded arrives as a blank and is restored."""
    text = text.replace(" ", "+")
    if not _is_date_time(text):
        raise BadValue(DATE_TIME_ADVICE)
    text = _FRACTION.sub(lambda match: "." + match[1][:6].ljust(6, "0"), text.upper())
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        raise BadValue(DATE_TIME_ADVICE) from None


def parse_date(text: str) -> date:
    """Only this one of the forms that ISO 8601 has."""
    try:
        found = date.fromisoformat(text) if _is_date(text) else None
    except ValueError:
        found = None
    if found is None:
        raise BadValue(DATE_ADVICE)
    return found


def parse_words(text: str) -> list[str]:
    """Comma-separated values, blanks around them ignored."""
    words = [word for part in text.split(",") if (word := part.strip())]
    if not words:
        raise BadValue("must have at least one value")
    return words


def check_period(start_name: str, start: datetime | None, end_name: str, end: datetime | None) -> None:
    """Raises Invalid if a period begins after its end."""
    if start is not None and end is not None and start > end:
        raise Invalid.field(start_name, f"must not be after {end_name}, which is {format_instant(end)}")


def list_filters(struct: type[msgspec.Struct]) -> frozenset[str]:
    """The optional parameters that do not mark a position in a list. Forms send them empty, which means absent."""
    hints = get_type_hints(struct, include_extras=True)
    return frozenset(
        field.encode_name
        for field in msgspec.structs.fields(struct)
        if not field.required and POSITION not in getattr(_without_none(hints[field.name]), "__metadata__", ())
    )


class QueryReader:
    """Reads one query struct: built once from its fields, used for every request."""

    def __init__(self, struct: type[msgspec.Struct]) -> None:
        self.struct = struct
        hints = get_type_hints(struct, include_extras=True)
        self._fields = {
            field.encode_name: (field.name, get_parser(hints[field.name])) for field in msgspec.structs.fields(struct)
        }
        self._filters = list_filters(struct)
        self._required = {field.name: field.encode_name for field in msgspec.structs.fields(struct) if field.required}
        self._default = None if self._required else struct()

    def read(self, query: bytes) -> Any:
        if not query and self._default is not None:
            return self._default
        values: dict[str, Any] = {}
        seen: set[str] = set()
        for name, text in parse_pairs(query):
            if name not in self._fields:
                known = ", ".join(self._fields) or "none"
                raise Invalid.field(name, f"is not a parameter of this endpoint. Its parameters: {known}")
            if name in seen:
                raise Invalid.field(name, "is repeated. Send it once")
            seen.add(name)
            if not text and name in self._filters:
                continue
            field, parse = self._fields[name]
            try:
                values[field] = parse(text)
            except BadValue as error:
                raise Invalid.field(name, str(error)) from None
        for field, name in self._required.items():
            if field not in values:
                raise Invalid.field(name, "is required")
        return self.struct(**values)


def parse_pairs(query: bytes) -> list[tuple[str, str]]:
    """The names and values of a query string, in order."""
    pairs = []
    for part in query.split(b"&"):
        if part:
            name, _, value = part.partition(b"=")
            pairs.append((_decode(name), _decode(value)))
    return pairs


def _decode(encoded: bytes) -> str:
    try:
        text = unquote_to_bytes(encoded.replace(b"+", b" ")).decode()
    except UnicodeDecodeError:
        raise Invalid("The query string is not valid UTF-8. Encode it as UTF-8.") from None
    if "\0" in text:
        raise Invalid("The query string contains a NUL character. Remove it.")
    return text


_PLAIN: dict[Any, Callable[[str], Any]] = {
    int: parse_integer,
    str: str,
    datetime: parse_date_time,
    date: parse_date,
    list[str]: parse_words,
}


def get_parser(hint: Any) -> Callable[[str], Any]:
    """The parser of a parameter's type; an unsupported type fails when the endpoint is declared."""
    kind = _without_none(hint)
    if get_origin(kind) is Annotated:
        base, *marks = get_args(kind)
        metas = [mark for mark in marks if isinstance(mark, Meta)]
        return _build_bounded(get_parser(base), metas) if metas else get_parser(base)
    if get_origin(kind) is Literal:
        return _build_choice(get_args(kind))
    if isinstance(kind, EnumType):
        find: Callable[[str], str] = _build_choice(tuple(kind))
        return lambda text: kind(find(text))
    return _PLAIN[kind]


def _without_none(hint: Any) -> Any:
    options = [option for option in get_args(hint) if option is not type(None)]
    return options[0] if type(None) in get_args(hint) and len(options) == 1 else hint


def _build_choice(allowed: tuple[str, ...]) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in allowed:
            raise BadValue(f"must be one of {', '.join(allowed)}")
        return text

    return parse


def _build_bounded(parse: Callable[[str], Any], metas: list[Meta]) -> Callable[[str], Any]:
    def parse_bounded(text: str) -> Any:
        value = parse(text)
        for meta in metas:
            _check_bounds(value, meta)
        return value

    return parse_bounded


def _check_bounds(value: Any, meta: Meta) -> None:
    if (meta.ge is not None and value < meta.ge) or (meta.le is not None and value > meta.le):
        raise BadValue(f"must be from {meta.ge} to {meta.le}")
    if meta.min_length is not None and len(value) < meta.min_length:
        raise BadValue("must not be empty")
    if meta.max_length is not None and len(value) > meta.max_length:
        raise BadValue(f"must have at most {meta.max_length} characters")
    if meta.pattern is not None and not re.search(meta.pattern, value):
        if meta.pattern == NOT_BLANK:
            raise BadValue("must not be blank")
        likeness = f"must be written like {meta.examples[0]}, and match" if meta.examples else "must match"
        raise BadValue(f"{likeness} {meta.pattern}")
