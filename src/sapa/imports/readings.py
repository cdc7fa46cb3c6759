"""Decides how a file is read: as it is, or converted first."""

import io
from typing import BinaryIO

from msgspec import Struct

from sapa.http.errors import Invalid
from sapa.imports.cells import BadCell
from sapa.imports.conversion import FileReading
from sapa.imports.mappings.types import ImportMapping
from sapa.imports.sources import spreadsheet
from sapa.imports.sources.registry import ALIASES, LABELS
from sapa.imports.tables.encodings import is_plain_utf8
from sapa.imports.types import Format, Resource
from sapa.imports.values.dates import get_zone
from sapa.values.company import Company

_DECLARES_SEPARATOR = (b"sep=", b'"sep=', b"\xef\xbb\xbfsep=", b'\xef\xbb\xbf"sep=')


class ReadingOptions(Struct, frozen=True, kw_only=True):
    """What the caller says about a file."""

    source: str | None = None
    mapping: ImportMapping | None = None
    keep_columns: bool = False
    time_zone: str | None = None
    effects: bool | None = None
    """None for the default: a file from elsewhere brings in history, which has none."""

    @property
    def has_effects(self) -> bool:
        is_foreign = self.source is not None or self.mapping is not None
        return not is_foreign if self.effects is None else self.effects


def choose_reading(
    company: Company, resource: Resource, format: Format, file: BinaryIO, options: ReadingOptions
) -> FileReading | None:
    """None for a file that is read as it is. Raises UnusableFile if it cannot be read at all."""
    source = options.source or (spreadsheet.NAME if options.mapping else None)
    source = ALIASES.get(source or "", source)
    if source is not None and source not in LABELS:
        raise Invalid.field("source", f"must be one of {', '.join([*LABELS, *ALIASES])}")
    if options.mapping is not None and source != spreadsheet.NAME:
        raise Invalid.field("mapping", f"is for the source {spreadsheet.NAME}; {source} has its own columns")
    if options.time_zone is not None:
        _check_time_zone(options.time_zone)
    if format == "ndjson":
        if source is not None:
            raise Invalid.field("source", "is for CSV and .xlsx files; NDJSON has the API's own fields")
        return None
    if source is None and format == "csv" and _is_read_directly(file):
        return None
    return FileReading(
        resource=resource,
        format=format,
        source=source,
        mapping=options.mapping,
        keep_columns=options.keep_columns,
        time_zone=options.time_zone or company.time_zone,
        region=company.region,
        currency=company.currency,
    )


def _check_time_zone(name: str) -> None:
    try:
        get_zone(name)
    except BadCell as error:
        raise Invalid.field("timeZone", str(error)) from None


def choose_reading_of_bytes(
    company: Company, resource: Resource, format: Format, content: bytes, options: ReadingOptions
) -> FileReading | None:
    return choose_reading(company, resource, format, io.BytesIO(content), options)


def _is_read_directly(file: BinaryIO) -> bool:
    if not is_plain_utf8(file):
        return False
    file.seek(0)
    return not file.readline(64).lower().startswith(_DECLARES_SEPARATOR)
