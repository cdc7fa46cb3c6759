"""Splits a mail into its parts.

A mail comes from anybody, so each step takes time in proportion to the mail's size, and headers, parts and nesting have
limits. What is beyond a limit is left out, or stays in the part around it.
"""

import binascii
import codecs
import re
from collections.abc import Iterator, Sequence
from email.message import Message as Fields

from msgspec import Struct

MAX_HEAD_BYTES = 65_536
"""Of a mail or a part."""
MAX_HEADERS = 500
MAX_HEADER_LENGTH = 8_192
MAX_FIELD_LENGTH = 2_048
"""Of a header with parameters, such as Content-Type."""
MAX_PARTS = 200
MAX_NESTING = 20
MAX_BOUNDARY_LENGTH = 200
MAX_BOUNDARY_LINES = 10_000

_find_blank_line = re.compile(rb"\r?\n\r?\n").search
_split_headers = re.compile(r"\r?\n(?![ \t])").split
_ENCODED_WORD = re.compile(r"=\?([^?\s]{1,60})\?([bBqQ])\?([^?]*)\?=")
_SLOW_CODECS = {"idna", "punycode", "undefined", "unicode-escape", "raw-unicode-escape", "unicode_escape"}
"""Decoders that are slow, or not meant for text."""


class MailPart(Struct, frozen=True):
    """A mail, or a part of one. Its content is a slice of the mail, which is not copied."""

    headers: Sequence[tuple[str, str]]
    """Names in lower case, with their raw values on one line."""
    fields: Fields
    """Content-Type and Content-Disposition."""
    mail: bytes
    start: int
    end: int
    parts: Sequence["MailPart"] = ()

    @property
    def type(self) -> str:
        return self.fields.get_content_type()

    @property
    def disposition(self) -> str | None:
        return self.fields.get_content_disposition()

    @property
    def filename(self) -> str | None:
        try:
            name = self.fields.get_filename()
        except (ValueError, TypeError, LookupError):
            return None
        return "".join(char for char in decode_words(clean(str(name))) if char.isprintable()) or None if name else None

    def list_raw(self, name: str) -> list[str]:
        """The values of every header of this name, from the top."""
        wanted = name.lower()
        return [value for key, value in self.headers if key == wanted]

    def header(self, name: str) -> str:
        """The first header of this name, decoded; empty if there is none."""
        return next((decode_words(value) for value in self.list_raw(name)), "")

    def has_header(self, name: str) -> bool:
        return bool(self.list_raw(name))

    def content(self, max_bytes: int | None = None) -> bytes:
        """The content without its transfer encoding; at most about `max_bytes` of it."""
        encoding = self.header("Content-Transfer-Encoding").lower()
        longest = None if max_bytes is None else self.start + 3 * max_bytes
        raw = self.mail[self.start : self.end if longest is None else min(self.end, longest)]
        if encoding == "quoted-printable":
            raw = binascii.a2b_qp(raw)
        elif encoding == "base64":
            raw = _decode_base64(raw)
        return raw if max_bytes is None else raw[:max_bytes]

    def text(self, max_bytes: int) -> str:
        charset = self.fields.get_content_charset()
        return decode_text(self.content(max_bytes), charset)

    def walk(self) -> Iterator["MailPart"]:
        """This part and all inside it, in their order."""
        yield self
        for part in self.parts:
            yield from part.walk()


def parse_mail(mail: bytes) -> MailPart:
    return _Splitter(mail).split(0, len(mail), MAX_NESTING)


class _Splitter:
    def __init__(self, mail: bytes) -> None:
        self._mail = mail
        self._parts_left = MAX_PARTS
        self._lines_left = MAX_BOUNDARY_LINES

    def split(self, start: int, end: int, nesting: int) -> MailPart:
        head_end, body = self._locate_body(start, end)
        headers = parse_headers(self._mail[start : min(head_end, start + MAX_HEAD_BYTES)])
        fields = _parse_fields(headers)
        parts: list[MailPart] = []
        if nesting and fields.get_content_maintype() == "multipart":
            boundary = str(fields.get_boundary() or "").encode("utf-8", "replace")
            if 0 < len(boundary) <= MAX_BOUNDARY_LENGTH:
                parts = [self.split(*bounds, nesting - 1) for bounds in self._list_bounds(body, end, boundary)]
        return MailPart(headers, fields, self._mail, body, end, parts)

    def _locate_body(self, start: int, end: int) -> tuple[int, int]:
        """Where the head ends and where the body begins."""
        for line_end in (b"\n", b"\r\n"):
            if self._mail.startswith(line_end, start, end):
                return start, start + len(line_end)
        found = _find_blank_line(self._mail, start, end)
        return found.span() if found else (end, end)

    def _list_bounds(self, start: int, end: int, boundary: bytes) -> list[tuple[int, int]]:
        delimiter = b"\n--" + boundary
        found, opened, position = list[tuple[int, int]](), None, max(0, start - 1)
        while self._lines_left and self._parts_left:
            line = self._mail.find(delimiter, position, end)
            if line < 0:
                break
            self._lines_left -= 1
            position = line + len(delimiter)
            rest = self._mail[position : min(position + 2, end)]
            if rest not in {b"--", b"\r\n", b""} and rest[:1] not in {b"\n", b" ", b"\t"}:
                continue
            if opened is not None:
                found.append((opened, max(opened, line - self._mail.startswith(b"\r", line - 1))))
                self._parts_left -= 1
            next_line = self._mail.find(b"\n", position, end)
            opened = None if next_line < 0 or rest == b"--" else next_line + 1
            position = max(position, next_line)
            if opened is None:
                return found
        return found if opened is None or not self._parts_left else [*found, (opened, end)]


def parse_headers(head: bytes) -> list[tuple[str, str]]:
    lines = _split_headers(head.decode("utf-8", "replace"), MAX_HEADERS)[:MAX_HEADERS]
    pairs = (line.partition(":") for line in lines)
    return [
        (name.strip().lower(), clean(" ".join(value[:MAX_HEADER_LENGTH].split())))
        for name, colon, value in pairs
        if colon and " " not in name.strip()
    ]


def _parse_fields(headers: Sequence[tuple[str, str]]) -> Fields:
    fields = Fields()
    for name, value in headers:
        if name in {"content-type", "content-disposition"} and name not in fields:
            fields[name] = value[:MAX_FIELD_LENGTH]
    return fields


def decode_words(value: str) -> str:
    """The header with its encoded words decoded. A character may be split between two adjacent words."""
    found, position, pending, charset = list[str](), 0, b"", ""
    for word in _ENCODED_WORD.finditer(value):
        between = value[position : word.start()]
        is_adjacent = bool(pending) and not between.strip()
        if pending and not (is_adjacent and word[1].lower() == charset):
            found.append(decode_text(pending, charset))
            pending = b""
        if not is_adjacent:
            found.append(between)
        pending, charset = pending + _decode_word(word[2], word[3]), word[1].lower()
        position = word.end()
    return "".join([*found, decode_text(pending, charset), value[position:]])


def _decode_word(encoding: str, word: str) -> bytes:
    raw = word.encode("utf-8", "replace")
    return _decode_base64(raw) if encoding in "bB" else binascii.a2b_qp(raw, header=True)


def _decode_base64(raw: bytes) -> bytes:
    """Characters of no meaning are skipped; what is left over at the end is dropped."""
    for padding in (b"", b"=", b"=="):
        try:
            return binascii.a2b_base64(raw + padding)
        except binascii.Error:
            continue
    return b""


def decode_text(raw: bytes, charset: str | None) -> str:
    """Text in this character set, or in UTF-8 if the set is unknown or unusable."""
    name = (charset or "utf-8").partition("*")[0]
    try:
        known = codecs.lookup(name).name
        text = raw.decode("utf-8" if known in _SLOW_CODECS else known, "replace")
    except (LookupError, ValueError):
        text = raw.decode("utf-8", "replace")
    return clean(text)


def clean(text: str) -> str:
    """Drops NUL characters and lone surrogates, which the database cannot store."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode()
