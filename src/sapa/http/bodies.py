"""Request bodies: JSON is read strictly, and errors name the field and say how to fix it."""

import json
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any, Protocol

import msgspec
from msgspec import inspect

from sapa.http.errors import FieldError, Invalid
from sapa.http.integers import rewrite_integers
from sapa.http.schemas import wire_type
from sapa.values.json import encode_document
from sapa.values.web_addresses import WEB_ADDRESS

MAX_BYTES = 1_048_576
MAX_UPLOADED = 32 * 1_048_576
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
UPLOADED_TYPES = ("text/csv", "application/x-ndjson", XLSX)
LONGEST_ECHO = 100
LONGEST_SEARCHED = 65_536
"""Of a longer body the key of a wrong value is not looked for: that takes several readings."""
ANY_KEY = "[...]"

_WHERE = re.compile(r"(?P<what>.*?)(?: - at (?P<key>`key` in )?`\$?\.?(?P<path>[^`]*)`)?", re.DOTALL)
UNKNOWN_FIELD = "is not a known field. Check its spelling or remove it"

_MISSING = re.compile(r"Object missing required field `(?P<name>.*)`", re.DOTALL)
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<name>.*)`", re.DOTALL)
_ENUM = re.compile(r"Invalid enum value (?P<given>.*)", re.DOTALL)
_LENGTH = re.compile(r"Expected `(?P<wanted>[^`]*)` of length (?P<sign>[<>])= (?P<bound>\d+)")
_PATTERN = re.compile(r"Expected `str` matching regex '(?P<pattern>.*)'", re.DOTALL)
_EXPECTED = re.compile(r"Expected `(?P<wanted>[^`]*)`(?P<rule>.*?)(?:, got `(?P<got>[^`]*)`)?")
_STEP = re.compile(r"\[[^\]]*\]|[^.\[\]]+")
_find_small_number = re.compile(rb"[0-9][eE]-[0-9]{3}").search
_find_outermost_day = re.compile(rb'"(?:0001-01-01|9999-12-31)').search
_LAST_INSTANT = datetime(9999, 12, 31, 23, 59, 59, 999_000, UTC)
"""Later ones are in the year 10000 once they are rounded to milliseconds."""
_ESCAPED_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")

_TYPE_NAMES = {
    "str": "a string",
    "int": "a whole number",
    "float": "a number",
    "decimal": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
    "datetime": "an ISO 8601 date-time",
}
_LENGTH_UNITS = {"str": "characters", "array": "items", "object": "keys"}


class Upload(msgspec.Struct, frozen=True):
    """A file as a request's body, in place of JSON."""

    media_type: str
    content: bytes


class BodyDecoder(Protocol):
    @property
    def type(self) -> Any: ...

    def decode(self, raw: bytes, /) -> Any: ...


class AmountsDecoder:
    """For bodies with amounts: msgspec alone would also accept strings."""

    def __init__(self, body: Any) -> None:
        self.type = body
        self._decode = msgspec.json.Decoder(body).decode
        self._check = msgspec.json.Decoder(wire_type(body)).decode

    def decode(self, raw: bytes, /) -> Any:
        value = self._decode(raw)
        self._check(raw)
        return value


def build_decoder(body: Any) -> BodyDecoder:
    has_amounts = b'"format":"decimal"' in msgspec.json.encode(msgspec.json.schema(body))
    return AmountsDecoder(body) if has_amounts else msgspec.json.Decoder(body)


def decode_body(raw: bytes, decoder: BodyDecoder) -> Any:
    """The body as its struct; raises Invalid with what to change."""
    try:
        raw.decode()
    except UnicodeDecodeError:
        raise Invalid("The body is not valid UTF-8. Encode it as UTF-8.") from None
    if b"\0" in raw or (b"\\u0000" in raw and _ESCAPED_NUL.search(raw)):
        raise Invalid("The body contains a NUL character, which cannot be stored. Remove it.")
    try:
        body = _decode(raw, decoder)
        if _find_small_number(raw):
            _refuse_vanishing_numbers(raw)
        if _find_outermost_day(raw):
            _refuse_instants_without_year(body)
    except msgspec.ValidationError as error:
        raise translate_validation_error(str(error), decoder.type, _find_key(str(error), raw, decoder)) from None
    except RecursionError:
        raise Invalid("The body is nested too deeply. Use fewer levels.") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        reason = "it is empty" if not raw else str(error)
        raise Invalid(f"The body is not valid JSON: {reason}.") from None
    return body


def encode_own_data(field: str, data: object, max_bytes: int = MAX_BYTES) -> bytes:
    """JSON of the caller's own, as it is stored and webhooks deliver it; raises Invalid."""
    try:
        encoded = encode_document(msgspec.to_builtins(data))
    except RecursionError:
        raise Invalid.field(field, "is nested too deeply. Use fewer levels") from None
    if len(encoded) > max_bytes:
        raise Invalid.field(field, f"must have at most {max_bytes} bytes")
    return encoded


def _refuse_vanishing_numbers(raw: bytes) -> None:
    """Those so small that they would be stored as 0, such as in additionalData."""
    if field := _find_value(json.loads(raw, parse_float=str.encode), _is_vanishing):
        raise Invalid.field(field, "is too small a number. Use at most 300 decimal places")


def _is_vanishing(value: Any) -> bool:
    """Numbers with a fraction or an exponent are bytes here."""
    return isinstance(value, bytes) and float(value) == 0 and bool(value.lower().partition(b"e")[0].strip(b"-0."))


def _refuse_instants_without_year(body: Any) -> None:
    """Those whose offset leads to the year 0 or 10000 in UTC."""
    if field := _find_value(body, _has_no_year):
        raise Invalid.field(field, "must be within the years 1 to 9999 in UTC")


def _has_no_year(value: Any) -> bool:
    if not isinstance(value, datetime) or value.tzinfo is None:
        return False
    try:
        return value.astimezone(UTC) > _LAST_INSTANT
    except OverflowError:
        return True


def _find_value(value: Any, is_wrong: Callable[[Any], bool], path: str = "") -> str | None:
    """Where such a value is."""
    if is_wrong(value):
        return path
    inner = _list_inner(value)
    steps = ((f"{path}[{key}]" if isinstance(key, int) else f"{path}.{key}".lstrip("."), each) for key, each in inner)
    return next((found for step, each in steps if (found := _find_value(each, is_wrong, step))), None)


def _list_inner(value: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(value, msgspec.Struct):
        return [(field.encode_name, getattr(value, field.name)) for field in msgspec.structs.fields(value)]
    return value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()


def _decode(raw: bytes, decoder: BodyDecoder) -> Any:
    try:
        return decoder.decode(raw)
    except msgspec.ValidationError as error:
        if "got `float`" not in str(error):
            raise
    return decoder.decode(rewrite_integers(raw.strip(), inspect.type_info(decoder.type)))


def _find_key(text: str, raw: bytes, decoder: BodyDecoder) -> str | None:
    """The key that msgspec's message writes as `[...]`. Values are read in order, so the fewest entries of the object
    that are refused end with it."""
    parts = _WHERE.fullmatch(text)
    above, is_keyed, _ = (parts["path"] or "" if parts else "").partition(ANY_KEY)
    if not is_keyed or len(raw) > LONGEST_SEARCHED:
        return None
    try:
        body = found = msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return None  # the part behind the refused value is not JSON
    for step in _STEP.findall(above):
        found = found[int(step[1:-1]) if step[0] == "[" else step]
    entries = list(found.items())

    def is_refused(count: int) -> bool:
        found.clear()
        found.update(entries[:count])
        return _find_refusal(msgspec.json.encode(body), decoder) == text

    count = bisect_left(range(len(entries) + 1), True, key=is_refused)
    return entries[count - 1][0] if is_refused(count) else None


def _find_refusal(raw: bytes, decoder: BodyDecoder) -> str | None:
    try:
        _decode(raw, decoder)
    except msgspec.ValidationError as error:
        return str(error)
    return None


def translate_validation_error(text: str, body: Any, key: str | None = None) -> Invalid:
    """Translates msgspec's message: the field's path, with the key of an object if it is known, and what it must be."""
    parts = _WHERE.fullmatch(text)
    what, path = (parts["what"], parts["path"] or "") if parts else (text, "")
    if named := _MISSING.fullmatch(what):
        return Invalid.field(_join(path, named["name"]), "is required")
    if named := _UNKNOWN.fullmatch(what):
        return Invalid.field(_join(path, named["name"]), UNKNOWN_FIELD)
    message = _build_message(what, path, body)
    if key is not None:
        path = path.replace(ANY_KEY, f".{_shorten(key)}", 1)
    if path:
        return Invalid.field(path, f"has a key that {message}" if parts and parts["key"] else message)
    return Invalid(f"The body {message}.", details=[FieldError("", message)])


def _join(path: str, name: str) -> str:
    return f"{path}.{_shorten(name)}" if path else _shorten(name)


def _shorten(name: str) -> str:
    return name if len(name) <= LONGEST_ECHO else name[:LONGEST_ECHO] + "…"


def _build_message(what: str, path: str, body: Any) -> str:
    if _ENUM.fullmatch(what):
        return f"must be one of {', '.join(_list_allowed(body, path))}"
    if length := _LENGTH.fullmatch(what):
        bound = "at most" if length["sign"] == "<" else "at least"
        return f"must have {bound} {length['bound']} {_LENGTH_UNITS.get(length['wanted'], 'characters')}"
    if WEB_ADDRESS in what:
        return "must be a URL that starts with https:// or http://"
    if (matching := _PATTERN.fullmatch(what)) and (example := _find_example(body, path)):
        return f"must be written like {example}, and match {matching['pattern']}"
    if expected := _EXPECTED.fullmatch(what):
        wanted = " or ".join(_TYPE_NAMES.get(word.strip(), word.strip()) for word in expected["wanted"].split("|"))
        got = f", not {_TYPE_NAMES.get(expected['got'], expected['got'])}" if expected["got"] else ""
        return f"must be {wanted}{expected['rule']}{got}"
    return f"cannot be used: {what}"


def _list_allowed(body: Any, path: str) -> list[str]:
    """The words that the field at the path accepts."""
    words: list[str] = []
    for kind in _list_types(inspect.type_info(body), _STEP.findall(path)):
        if isinstance(kind, inspect.LiteralType):
            words += map(str, kind.values)
        elif isinstance(kind, inspect.EnumType):
            words += [str(member.value) for member in kind.cls]
    return words


def _find_example(body: Any, path: str) -> str | None:
    """How a text with a pattern is written, as its field's description shows it."""
    for kind in _list_types(inspect.type_info(body), _STEP.findall(path)):
        if isinstance(kind, inspect.Metadata) and isinstance(kind.type, inspect.StrType) and kind.type.pattern:
            return next(iter((kind.extra_json_schema or {}).get("examples", ())), None)
    return None


def _list_types(kind: inspect.Type, steps: list[str]) -> list[inspect.Type]:
    """The types of the field at the end of the path, each after its metadata."""
    if isinstance(kind, inspect.Metadata):
        return [*([] if steps else [kind]), *_list_types(kind.type, steps)]
    if isinstance(kind, inspect.UnionType):
        return [found for option in kind.types for found in _list_types(option, steps)]
    if not steps:
        return [kind]
    if isinstance(kind, inspect.StructType):
        named = [field.type for field in kind.fields if field.encode_name == steps[0]]
        return [found for each in named for found in _list_types(each, steps[1:])]
    if isinstance(kind, inspect.ListType):
        return _list_types(kind.item_type, steps[1:])
    return []
