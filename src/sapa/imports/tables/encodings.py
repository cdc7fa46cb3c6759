"""Recognises how a text file is encoded, or refuses it by the name of what it is."""

import codecs
import io
from typing import BinaryIO

from sapa.imports.types import UnusableFile

PIECE = 1_048_576
HEAD = 4_096

# In this order: the BOM of UTF-32-LE begins with that of UTF-16-LE.
_BOMS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
WORKBOOK = b"PK\x03\x04"
_OTHER_KINDS = {
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "an old Excel file (.xls) or one with a password. Save it as .xlsx or CSV",
    b"%PDF": "a PDF. Export the data as CSV or .xlsx",
    b"\x1f\x8b": "compressed with gzip. Unpack it first",
    b"<!DOCTYPE": "a web page (HTML). Open it in a spreadsheet and save it as .xlsx or CSV",
    b"<html": "a web page (HTML). Open it in a spreadsheet and save it as .xlsx or CSV",
    b"<?xml": "XML. Export the data as CSV or .xlsx",
}

_UNUSUAL = frozenset(b"\x81\x8d\x8f\x90\x9d\xfe\xff")
"""Undefined in Windows-1252, or letters of Icelandic and old French names alone."""

LABELS = {
    "utf-8": "UTF-8",
    "utf-8-sig": "UTF-8",
    "utf-16": "UTF-16",
    "utf-16-le": "UTF-16",
    "utf-16-be": "UTF-16",
    "cp1252": "Windows-1252",
}
"""What people call each encoding that is read."""


def detect_encoding(file: BinaryIO) -> str:
    """The codec of a text file; reads all of it. Raises UnusableFile with the name of what cannot be read."""
    file.seek(0)
    head = file.read(HEAD)
    _refuse_other_kinds(head)
    for bom, codec in _BOMS.items():
        if head.startswith(bom):
            if codec == "utf-32":
                raise UnusableFile("The file is encoded as UTF-32. Save it as UTF-8.")
            return codec
    if b"\0" in head:
        return _detect_utf_16(head)
    return _detect_without_bom(file)


def _refuse_other_kinds(head: bytes) -> None:
    if head.startswith(WORKBOOK):
        raise UnusableFile("The file is an Excel workbook or a ZIP archive; a workbook's name must end in .xlsx.")
    for start, kind in _OTHER_KINDS.items():
        if head.lstrip()[: len(start)].lower() == start.lower():
            raise UnusableFile(f"The file is {kind}.")


def is_plain_utf8(file: BinaryIO) -> bool:
    """Whether a file can be read line by line as it is; damaged lines do not count. Raises UnusableFile as above."""
    file.seek(0)
    head = file.read(HEAD)
    _refuse_other_kinds(head)
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or _find_utf_16(head):
        return False
    return _decodes_as(file, "utf-8") or _has_multibyte_characters(file) or not _is_windows_text(file)


def _detect_utf_16(head: bytes) -> str:
    codec = _find_utf_16(head)
    if codec is None:
        raise UnusableFile("The file is binary data, not text. Save it as CSV in UTF-8, or as .xlsx.")
    return codec


def _find_utf_16(head: bytes) -> str | None:
    """Without a BOM: the zero bytes of Latin letters are the second ones in little-endian text, else the first."""
    first, second = head[::2].count(0), head[1::2].count(0)
    if second > len(head) // 4 and not first:
        return "utf-16-le"
    return "utf-16-be" if first > len(head) // 4 and not second else None


def _detect_without_bom(file: BinaryIO) -> str:
    """UTF-8, unless no character in the file beyond ASCII is valid UTF-8 and all are Windows-1252."""
    if _decodes_as(file, "utf-8") or _has_multibyte_characters(file):
        return "utf-8"  # perhaps with damaged lines
    if _is_windows_text(file):
        return "cp1252"
    raise UnusableFile("The file is encoded neither as UTF-8, UTF-16 nor Windows-1252. Save it as UTF-8.")


def _is_windows_text(file: BinaryIO) -> bool:
    """Bytes that no usual text has in Windows-1252 show that it is something else."""
    file.seek(0)
    while piece := file.read(PIECE):
        if not _UNUSUAL.isdisjoint(piece):
            return False
    return True


def _decodes_as(file: BinaryIO, codec: str) -> bool:
    decoder = codecs.getincrementaldecoder(codec)()
    file.seek(0)
    try:
        while piece := file.read(PIECE):
            decoder.decode(piece)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _has_multibyte_characters(file: BinaryIO) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")("ignore")
    file.seek(0)
    while piece := file.read(PIECE):
        if not decoder.decode(piece).isascii():
            return True
    return False


def open_text(file: BinaryIO, codec: str) -> io.TextIOWrapper:
    """The file from its start as text; a damaged character becomes U+FFFD."""
    file.seek(0)
    return io.TextIOWrapper(file, codec, errors="replace", newline="")
