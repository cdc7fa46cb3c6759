"""Request bodies: JSON read strictly, and refusals that name the field and say how to mend it."""

import re
from typing import Any

import msgspec

from sapa.http.errors import FieldError, Invalid

MOST_BYTES = 1_048_576

_WHERE = re.compile(r"^(?P<what>.*?)(?: - at `(?P<key>key in )?\$?(?P<path>[^`]*)`)?$", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(?P<name>[^`]*)`")
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<name>[^`]*)`")
_EXPECTED = re.compile(
    r"Expected `(?P<wanted>[^`]*)`(?: (?P<bound>of length|matching regex) (?P<rule>.*?))?(?:, got `(?P<got>[^`]*)`)?$"
)
_ESCAPED_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")

_WORDS = {
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


def decode_body(raw: bytes, decoder: "msgspec.json.Decoder[Any]") -> Any:
    """The body as its struct; every fault of it is a 400 that says what to change."""
    try:
        raw.decode()
    except UnicodeDecodeError:
        raise Invalid("The body is not valid UTF-8.") from None
    if b"\0" in raw or (b"\\u0000" in raw and _ESCAPED_NUL.search(raw)):
        raise Invalid("The body holds a NUL character, which cannot be stored; leave it out.")
    try:
        return decoder.decode(raw)
    except msgspec.ValidationError as error:
        raise explain(str(error)) from None
    except RecursionError:
        raise Invalid("The body is nested too deeply.") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        reason = "it is empty" if not raw else str(error)
        raise Invalid(f"The body is not valid JSON: {reason}.") from None


def explain(text: str) -> Invalid:
    """msgspec's words turned into ours: the field's path and what it must be."""
    parts = _WHERE.match(text)
    what, path = (parts["what"], (parts["path"] or "").lstrip(".")) if parts else (text, "")
    if named := _MISSING.match(what):
        return Invalid.field(_join(path, named["name"]), "is required")
    if named := _UNKNOWN.match(what):
        return Invalid.field(_join(path, named["name"]), "is not a known field; check its spelling or leave it out")
    return _invalid(path, _sentence(what))


def _invalid(path: str, message: str) -> Invalid:
    if path:
        return Invalid.field(path, message)
    return Invalid(f"The body {message}.", details=[FieldError("", message)])


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _sentence(what: str) -> str:
    expected = _EXPECTED.match(what)
    if expected is None:
        return what
    wanted = " or ".join(_WORDS.get(word.strip(), word.strip()) for word in expected["wanted"].split("|"))
    if expected["bound"] == "of length":
        return f"must be {wanted} with a length {expected['rule']}"
    if expected["rule"]:
        return f"must be {wanted} matching {expected['rule']}"
    got = f", not {_WORDS.get(expected['got'], expected['got'])}" if expected["got"] else ""
    return f"must be {wanted}{got}"
