"""Reads a file as records: splits bytes into lines, and joins lines where a quoted cell spans several.

A line that cannot be a record becomes a fault with its line number, and reading continues with the next line.
"""

import re
from collections import deque
from collections.abc import Awaitable, Callable

from msgspec import Struct

from sapa.imports.types import Format

LONGEST_RECORD = 1_048_576
MAX_LINES_OF_A_RECORD = 1_000
# How often a byte may be read again. A file with many stray quotes would otherwise be read a thousand times, once for
# each line that a record might start at.
MAX_READ_AGAIN = 4
BOM = b"\xef\xbb\xbf"

Read = Callable[[int], Awaitable[bytes]]
"""Returns the next chunk of a file from a position on; empty at its end."""

# Possessive, so that an unclosed cell of a megabyte fails at once and a doubled quote is never taken for the end.
_REST_OF_CELL = re.compile(rb'[^"]*+(?:""[^"]*+)*+"')


class FileRecord(Struct, frozen=True):
    """The bytes of one record, or why there are none."""

    line: int
    content: bytes
    fault: str | None = None


class LineReader:
    """Physical lines from a position on, each with its line break; keeps one chunk of the file in memory."""

    def __init__(self, read: Read, position: int) -> None:
        self._read = read
        self._buffer = b""
        self._start = 0
        self._read_to = position
        self._ended = False

    @property
    def position(self) -> int:
        return self._read_to - len(self._buffer) + self._start

    async def next(self) -> bytes:
        """Empty at the end. A line that is too long is truncated."""
        end = self._buffer.find(b"\n", self._start) + 1
        while not end and not self._ended and len(self._buffer) - self._start <= LONGEST_RECORD:
            seen = len(self._buffer) - self._start
            await self._more()
            end = self._buffer.find(b"\n", seen) + 1
        if not end and not self._ended:
            return await self._overlong()
        line = self._buffer[self._start : end or len(self._buffer)]
        self._start += len(line)
        return line

    async def _more(self) -> None:
        chunk = await self._read(self._read_to)
        self._buffer = self._buffer[self._start :] + chunk
        self._start = 0
        self._read_to += len(chunk)
        self._ended = not chunk

    async def _overlong(self) -> bytes:
        head = self._buffer[self._start : self._start + LONGEST_RECORD + 1]
        end = 0
        while not end and not self._ended:
            self._buffer, self._start = b"", 0
            await self._more()
            end = self._buffer.find(b"\n") + 1
        self._start = end or len(self._buffer)
        return head


class ImportLine(Struct, frozen=True):
    content: bytes
    end: int
    """Where the next line starts in the file."""


class RecordReader:
    """Records from a position on. After each, `position` and `line` are those of the next one."""

    def __init__(self, read: Read, format: Format, separator: bytes = b",", position: int = 0, line: int = 0) -> None:
        self._lines = LineReader(read, position)
        self._is_quoted = format == "csv"
        cell = rb'(?:"[^"]*+(?:""[^"]*+)*+"|(?!"))[^%s]*+' % re.escape(separator)
        self._are_closed = re.compile(rb"%s(?:%s%s)*+" % (cell, re.escape(separator), cell)).fullmatch
        self._ahead: deque[ImportLine] = deque()
        # How many of the lines ahead, from the first on, do not close a cell that was opened before them.
        self._unclosing = 0
        self._start = position
        self._reread = 0
        # Lines up to this position are single records.
        self._single_until = 0
        self.position = position
        self.line = line

    async def next(self) -> FileRecord | None:
        first = await self._next_line()
        if not first.content:
            return None
        self._pass([first])
        number = self.line
        if len(first.content) > LONGEST_RECORD:
            return FileRecord(number, first.content, f"is longer than {LONGEST_RECORD:,} bytes")
        if not self._is_quoted or b'"' not in first.content or not self._is_open(first.content):
            return FileRecord(number, first.content)
        return await self._join(first, number)

    def _pass(self, lines: list[ImportLine]) -> None:
        if lines:
            self.position = lines[-1].end
            self.line += len(lines)

    async def _next_line(self) -> ImportLine:
        if not self._ahead:
            return await self._read_line()
        self._unclosing = max(0, self._unclosing - 1)
        return self._ahead.popleft()

    async def _read_line(self) -> ImportLine:
        content = await self._lines.next()
        return ImportLine(content, self._lines.position)

    async def _join(self, first: ImportLine, number: int) -> FileRecord:
        """Joins the lines up to the one that closes the cell. If none does, only the first line is a fault."""
        more = 0 if first.end <= self._single_until else await self._count_to_closing(first)
        if not more:
            return FileRecord(number, b"", "cannot be read as CSV: a quoted cell is not closed")
        following = [await self._next_line() for _ in range(more)]
        self._pass(following)
        return FileRecord(number, b"".join([first.content, *(line.content for line in following)]))

    async def _count_to_closing(self, first: ImportLine) -> int:
        """How many lines ahead close the record; 0 when none does. Checks no line twice."""
        while self._unclosing < MAX_LINES_OF_A_RECORD - 1:
            if self._unclosing == len(self._ahead):
                self._ahead.append(await self._read_line())
            line = self._ahead[self._unclosing]
            if not line.content or line.end - first.end + len(first.content) > LONGEST_RECORD:
                return 0
            if self._closes(line.content):
                return self._unclosing + 1
            self._unclosing += 1
        return 0

    def _closes(self, text: bytes) -> bool:
        """Whether an open cell ends here and no other stays open."""
        closing = _REST_OF_CELL.match(text)
        return closing is not None and not self._is_open(b"x" + text[closing.end() :])

    def unread(self, record: FileRecord) -> None:
        """After a record of several lines proved invalid: reads all but its first line again."""
        end = self.position
        again: list[ImportLine] = []
        for content in reversed(_cut(record.content)[1:]):
            again.append(ImportLine(content, end))
            end -= len(content)
        self._reread += self.position - end
        if self._reread > LONGEST_RECORD + MAX_READ_AGAIN * (self.position - self._start):
            self._single_until = self.position
        self._ahead.extendleft(again)
        self._unclosing = 0
        self.position = end
        self.line -= len(again)

    def _is_open(self, text: bytes) -> bool:
        """Whether a quoted cell starts and does not end."""
        return self._are_closed(text) is None


def _cut(content: bytes) -> list[bytes]:
    return re.findall(rb"[^\n]*\n|[^\n]+\Z", content)
