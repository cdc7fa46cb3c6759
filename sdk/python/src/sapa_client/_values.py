"""Values that calls take: what was left out, files, and how both travel."""

import mimetypes
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import IO, Any, Final, TypeAlias
from urllib.parse import quote, urlencode

import msgspec

NotGiven: TypeAlias = msgspec.UnsetType
NOT_GIVEN: Final = msgspec.UNSET
"""The default of optional fields: the field is not sent. `None` is sent as null, which clears a value."""

Amount: TypeAlias = Decimal | float
"""An exact number to send. Responses have `Decimal`."""

FileSource: TypeAlias = bytes | Path | IO[bytes]
"""A file to upload: its content, its path, or a file that is open for reading in binary mode."""

QueryValue: TypeAlias = str | int | bool | datetime | date | Sequence[str] | None
Query: TypeAlias = Mapping[str, QueryValue]

encode_json = msgspec.json.Encoder(decimal_format="number").encode


class File(msgspec.Struct, frozen=True):
    """A file that was downloaded."""

    content: bytes
    content_type: str
    filename: str | None


def build_path(template: str, *ids: str | int) -> str:
    """Fills the ids into the braces of a path."""
    for id in ids:
        if not isinstance(id, str | int):
            raise TypeError(f"An id is a string or a number, not {id!r}.")
        if id in {"", ".", ".."}:  # a path with these leads elsewhere
            raise ValueError(f"{id!r} is not an id.")
    return template.format(*(quote(str(id), safe="") for id in ids))


def encode_query(query: Query) -> str:
    """The query string: lists are separated by commas, and parameters without a value are left out."""
    return urlencode(
        [(name, _encode(name, value)) for name, value in query.items() if value is not None], quote_via=quote
    )


def _encode(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, str | int):
        return str(value)
    if any("," in item for item in value):
        raise ValueError(f"A value of {name} contains a comma, which separates the values.")
    return ",".join(value)


class Upload(msgspec.Struct, frozen=True):
    """A file as the body of a request."""

    content: bytes
    content_type: str


def read_upload(source: FileSource, content_type: str | None, accepted: Sequence[str]) -> Upload:
    """The file in memory, so that it can be sent again. Its type is that of its name unless it is given."""
    content_type = content_type or _guess_type(source, accepted)
    if isinstance(source, Path):
        return Upload(source.read_bytes(), content_type)
    content = source if isinstance(source, bytes) else source.read()
    if not isinstance(content, bytes):
        raise TypeError("Open the file in binary mode: its content has to be bytes.")
    return Upload(content, content_type)


_NDJSON = {".ndjson": "application/x-ndjson", ".jsonl": "application/x-ndjson"}


def _guess_type(source: FileSource, accepted: Sequence[str]) -> str:
    if ANY_FILE in accepted:
        return ANY_FILE
    name = getattr(source, "name", None)
    suffix = Path(name).suffix.lower() if isinstance(name, str) else ""
    guessed = _NDJSON.get(suffix) or mimetypes.guess_type(f"file{suffix}")[0]
    if guessed is None or guessed not in accepted:
        raise ValueError(f"Pass content_type: one of {', '.join(accepted)}.")
    return guessed


ANY_FILE = "application/octet-stream"
