"""Resources as lines of a file that can be imported again. Pure: no database."""

import csv
from collections.abc import Callable
from io import StringIO
from typing import Any, Literal

import msgspec
from msgspec import Raw, Struct

from sapa.values.json import encode
from sapa.values.spreadsheet_cells import escape_formula

Format = Literal["csv", "ndjson"]
Write = Callable[[list[Any]], bytes]


def write_header(row: type[Struct], format: Format) -> bytes:
    if format == "ndjson":
        return b""
    return _csv([[field.encode_name for field in msgspec.structs.fields(row)]])


def write_rows(rows: list[Any], format: Format) -> bytes:
    if format == "ndjson":
        return b"".join(encode(row) + b"\n" for row in rows)
    return _csv([[escape_formula(_cell(getattr(row, name))) for name in row.__struct_fields__] for row in rows])


def _csv(lines: list[list[str]]) -> bytes:
    text = StringIO()
    csv.writer(text).writerows(lines)
    return text.getvalue().encode()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, Raw):
        return bytes(value).decode()
    if isinstance(value, list):
        return _words(value)
    return str(value)


def _words(words: list[str]) -> str:
    """Comma-separated, unless that would be read as something else."""
    text = ",".join(words)
    is_plain = not text.startswith("[") and all(words) and not any("," in word for word in words)
    return text if is_plain and all(word == word.strip() for word in words) else encode(words).decode()
