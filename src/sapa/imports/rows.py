"""Turns records into rows of a resource, each with its line; a bad record becomes a problem."""

import asyncio
import time
from collections.abc import Callable, Container
from typing import Any

import msgspec
from msgspec import Struct

from sapa.http.bodies import build_decoder, decode_body
from sapa.http.errors import Invalid
from sapa.imports.cells import BadCell, Column, ObjectBuilder, build_columns, detect_separator, parse_cells
from sapa.imports.converted import decode_record
from sapa.imports.lines import (
    BOM,
    FileRecord,
    Read,
    RecordReader,
)
from sapa.imports.types import (
    Format,
    ImportJob,
    Problem,
    UnusableFile,
    build_problem,
)

MAX_COLUMNS = 1_000
# Yields to other tasks of the event loop: above all to the one that stores the rows before, whose next statement must
# not wait for the reader.
BYTES_BETWEEN_YIELDS = 1_024
BUSY_SECONDS, AWAY_SECONDS = 0.0001, 0.002

Prepare = Callable[[Any], msgspec.Struct]
"""Computes what a row's resource needs later; it runs while the database stores the rows before. Raises Invalid."""


class FileRow(Struct, frozen=True):
    line: int
    value: msgspec.Struct
    """As the file has it, or as its resource prepared it."""


class Part(Struct, frozen=True):
    """One record, and the position after it."""

    found: FileRow | Problem
    position: int
    line: int


class Batch(Struct, frozen=True):
    """Consecutive records, and the position after them."""

    parts: list[Part]
    position: int
    line: int
    is_last: bool

    @property
    def size(self) -> int:
        return len(self.parts)

    @property
    def rows(self) -> list[FileRow]:
        return [part.found for part in self.parts if isinstance(part.found, FileRow)]

    @property
    def problems(self) -> list[Problem]:
        return [part.found for part in self.parts if isinstance(part.found, Problem)]

    def split(self, alone: Container[int] | None = None) -> list["Batch"]:
        """A batch for each record, or only for those at the lines `alone`; the last keeps the end of this one."""
        if self.size <= 1:
            return [self]
        groups: list[list[Part]] = []
        was_alone = True
        for part in self.parts:
            is_alone = alone is None or part.found.line in alone
            if is_alone or was_alone:
                groups.append([part])
            else:
                groups[-1].append(part)
            was_alone = is_alone
        batches = [Batch(parts, parts[-1].position, parts[-1].line, is_last=False) for parts in groups[:-1]]
        return [*batches, Batch(groups[-1], self.position, self.line, self.is_last)]


class FileHeader(Struct, frozen=True):
    """The header of a file."""

    separator: str
    columns: list[Column]
    position: int
    line: int


async def read_header(read: Read, format: Format, row: type[msgspec.Struct]) -> FileHeader:
    """Raises UnusableFile when the file is empty or has columns that the resource lacks."""
    start = await _after_bom(read)
    records = RecordReader(read, format, position=start)
    record = await records.next()
    if record is None:
        raise UnusableFile("The file is empty.")
    if format == "ndjson":
        return FileHeader("", [], start, 0)
    text = _header_text(record)
    separator = detect_separator(text)
    try:
        names = [name.strip() for name in parse_cells(text, separator)]
    except BadCell as error:
        raise UnusableFile(f"The header {error}.") from None
    if len(names) > MAX_COLUMNS:
        raise UnusableFile(f"The header has {len(names):,} columns; at most {MAX_COLUMNS:,} are allowed.")
    return FileHeader(separator, build_columns(names, row), records.position, records.line)


async def _after_bom(read: Read) -> int:
    return len(BOM) if (await read(0)).startswith(BOM) else 0


def _header_text(record: FileRecord) -> str:
    line = record.content.rstrip(b"\r\n")
    if b"\r" in line and b"\n" not in line:
        raise UnusableFile("The file's lines end with CR only; save it with LF or CRLF line endings.")
    if record.fault:
        raise UnusableFile(f"The header {record.fault}.")
    try:
        text = record.content.decode()
    except UnicodeDecodeError:
        raise UnusableFile("The header is not valid UTF-8.") from None
    if not text.strip():
        raise UnusableFile("The first line is empty; it must be the header with the fields' names.")
    return text


CONVERTED = FileHeader("", [], 0, 0)
"""Of a converted file, which has no header."""


async def _yield_to_others() -> None:
    """Lets other tasks run first. While they have something to do the reader stays away for longer, so that it works
    during the long statements of the batch before, not between the short ones."""
    before = time.perf_counter()
    await asyncio.sleep(0)
    if time.perf_counter() - before > BUSY_SECONDS:
        await asyncio.sleep(AWAY_SECONDS)


class RowReader:
    """Batches of rows, from the job's position on."""

    def __init__(
        self,
        read: Read,
        job: ImportJob,
        header: FileHeader,
        row: type[msgspec.Struct],
        prepare: Prepare = lambda value: value,
    ) -> None:
        is_new = job.position < header.position
        self._prepare = prepare
        self._is_converted = job.is_converted
        self._records = RecordReader(
            read,
            "ndjson" if job.is_converted else job.format,
            header.separator.encode() or b",",
            header.position if is_new else job.position,
            header.line if is_new else job.line,
        )
        self._header = header
        self._objects = ObjectBuilder(header.columns)
        self._is_csv = job.format == "csv" and not job.is_converted
        self._decoder = build_decoder(row)
        self._yielded_at = self._records.position

    async def next_batch(self, max_rows: int, max_bytes: int) -> Batch:
        parts: list[Part] = []
        records, start = self._records, self._records.position
        record = None
        while len(parts) < max_rows and records.position - start < max_bytes:
            record = await records.next()
            if record is None:
                break
            found = self._converted_row(record) if self._is_converted else self._row(record)
            if found is not None:
                parts.append(Part(found, records.position, records.line))
            if records.position - self._yielded_at > BYTES_BETWEEN_YIELDS:
                self._yielded_at = records.position
                await _yield_to_others()
        return Batch(parts, records.position, records.line, is_last=record is None)

    def _converted_row(self, record: FileRecord) -> FileRow | Problem:
        """The lines of a converted file are those of the original."""
        converted = decode_record(record.content)
        if problem := converted.problem:
            return problem
        try:
            return FileRow(converted.line, self._prepare(decode_body(bytes(converted.row), self._decoder)))
        except Invalid as error:
            return build_problem(converted.line, error)

    def _row(self, record: FileRecord) -> FileRow | Problem | None:
        """None for an empty line."""
        if record.fault:
            return Problem(record.line, "", record.fault)
        if record.content.isspace():
            return None
        try:
            content = self._object(record) if self._is_csv else record.content
            if content is None:
                return None
            return FileRow(record.line, self._prepare(decode_body(content, self._decoder)))
        except BadCell as error:
            return Problem(record.line, error.field, str(error))
        except Invalid as error:
            return build_problem(record.line, error)

    def _object(self, record: FileRecord) -> bytes | None:
        try:
            text = record.content.decode()
        except UnicodeDecodeError:
            raise BadCell("is not valid UTF-8") from None
        if "\0" in text:
            raise BadCell("contains a NUL character, which cannot be stored")
        try:
            return self._objects.build(parse_cells(text, self._header.separator))
        except BadCell as error:
            if not error.field and b"\n" in record.content[:-1]:
                self._records.unread(record)
            raise
