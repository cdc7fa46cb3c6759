"""Which type a file has, read from its bytes. Its name and what its sender says are not evidence."""

import re
import struct
import unicodedata
from collections.abc import Iterator, Mapping
from posixpath import splitext

from sapa.messaging.channels.interface import MEDIA_TYPES, MediaType
from sapa.messaging.files.types import UNKNOWN_TYPE

EDGE_BYTES = 65_536
"""How much of the beginning and of the end is looked at."""
MAX_NAME_LENGTH = 200

SAFE_TYPES = frozenset(
    {"image/png", "image/jpeg", "image/webp", "image/gif", "video/mp4", "audio/ogg", "audio/mpeg", "audio/mp4"}
)
"""Types that a browser shows or plays and cannot run. Files of all other types are downloads."""

IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/webp", "image/gif"})
"""Types that get a thumbnail."""

WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
EXCEL = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
POWERPOINT = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
OLD_WORD = "application/msword"
OLD_EXCEL = "application/vnd.ms-excel"
OLD_POWERPOINT = "application/vnd.ms-powerpoint"
OPEN_DOCUMENT = "application/vnd.oasis.opendocument."

_SIGNATURES: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"ID3", "audio/mpeg"),
    (b"\xff\xfb", "audio/mpeg"),
    (b"\xff\xf3", "audio/mpeg"),
    (b"\xff\xf2", "audio/mpeg"),
    (b"\xff\xf1", "audio/aac"),
    (b"\xff\xf9", "audio/aac"),
    (b"#!AMR", "audio/amr"),
    (b"fLaC", "audio/flac"),
    (b"{\\rtf", "application/rtf"),
    (b"\x1f\x8b\x08", "application/gzip"),
    (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (b"Rar!\x1a\x07", "application/vnd.rar"),
    (b"II*\0", "image/tiff"),
    (b"MM\0*", "image/tiff"),
)

_RIFF_KINDS = {b"WEBP": "image/webp", b"WAVE": "audio/wav", b"AVI ": "video/x-msvideo"}

# By the first letters of the major brand; all other brands are MP4 video.
_BRANDS: tuple[tuple[bytes, str], ...] = (
    (b"M4A", "audio/mp4"),
    (b"M4B", "audio/mp4"),
    (b"3g", "video/3gpp"),
    (b"qt", "video/quicktime"),
    (b"avif", "image/avif"),
    (b"hei", "image/heic"),
    (b"mif1", "image/heic"),
)

_OFFICE_FOLDERS = {"word/": WORD, "xl/": EXCEL, "ppt/": POWERPOINT}

_OLD_OFFICE_STREAMS = {
    "WordDocument": OLD_WORD,
    "Workbook": OLD_EXCEL,
    "Book": OLD_EXCEL,
    "PowerPoint Document": OLD_POWERPOINT,
}

_TEXT_ENDINGS = {".csv": "text/csv", ".vcf": "text/vcard", ".ics": "text/calendar", ".json": "application/json"}

_ENDINGS: Mapping[str, str] = {
    "image/png": ".png", "image/jpeg": ".jpg", "image/webp": ".webp", "image/gif": ".gif", "video/mp4": ".mp4",
    "video/3gpp": ".3gp", "audio/ogg": ".ogg", "audio/mpeg": ".mp3", "audio/mp4": ".m4a", "audio/aac": ".aac",
    "audio/amr": ".amr", "application/pdf": ".pdf", "text/plain": ".txt", "text/csv": ".csv", WORD: ".docx",
    EXCEL: ".xlsx", POWERPOINT: ".pptx", OLD_WORD: ".doc", OLD_EXCEL: ".xls", OLD_POWERPOINT: ".ppt",
    "application/zip": ".zip",
}  # fmt: skip

# Possessive and atomic, so that a file of many comments takes no longer than any other.
_starts_html = re.compile(
    rb"\s*+(?:(?><!--.*?-->)\s*+)*+"
    rb"<(?:!doctype\s+html|html|head|body|script|iframe|meta|title|style|h1|div|p|a|img|table)\b",
    re.IGNORECASE | re.DOTALL,
).match
_starts_svg = re.compile(
    rb"\s*+(?><\?xml.*?\?>\s*+)?+(?:(?><!--.*?-->)\s*+|<!doctype[^>\[]*+(?:\[[^\]]*+\])?+\s*+>\s*+)*+<svg\b",
    re.IGNORECASE | re.DOTALL,
).match
_starts_xml = re.compile(rb"\s*<\?xml\b", re.IGNORECASE).match


class FileScan:
    """Collects what is needed to recognise a file that passes by."""

    def __init__(self) -> None:
        self.size = 0
        self._head = bytearray()
        self._tail = bytearray()

    def feed(self, chunk: bytes) -> None:
        self.size += len(chunk)
        if (missing := EDGE_BYTES - len(self._head)) > 0:
            self._head += chunk[:missing]
        self._tail += chunk[-EDGE_BYTES:]
        del self._tail[:-EDGE_BYTES]

    def get_type(self, filename: str | None) -> str:
        """The name distinguishes only between kinds of plain text."""
        return get_media_type(bytes(self._head), bytes(self._tail), filename or "")


def get_media_type(head: bytes, tail: bytes, filename: str) -> str:
    """The type of a file by its first and its last bytes."""
    if head.startswith(b"RIFF"):
        return _RIFF_KINDS.get(head[8:12], UNKNOWN_TYPE)
    if head[4:8] == b"ftyp":
        return next((type for brand, type in _BRANDS if head.startswith(brand, 8)), "video/mp4")
    if head.startswith(b"OggS"):
        return "video/ogg" if b"theora" in head[:512] else "audio/ogg"
    if head.startswith(b"\x1aE\xdf\xa3"):
        return "video/webm" if b"webm" in head[:64] else "video/x-matroska"
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _get_archive_type(head, tail)
    if head.startswith(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"):
        return _get_old_office_type(head + tail)
    for signature, type in _SIGNATURES:
        if head.startswith(signature):
            return type
    return _get_text_type(head, tail, filename)


def _get_archive_type(head: bytes, tail: bytes) -> str:
    """By the names of its members; nothing is unpacked."""
    names = [*_list_names(head, b"PK\x03\x04", 26, 30), *_list_names(tail, b"PK\x01\x02", 28, 46)]
    if names and names[0] == "mimetype" and head[38:].startswith(OPEN_DOCUMENT.encode()):
        kind = re.match(rb"[a-z-]{1,40}", head[38 + len(OPEN_DOCUMENT) :])
        return OPEN_DOCUMENT + kind[0].decode() if kind else "application/zip"
    if "[Content_Types].xml" in names:
        for folder, type in _OFFICE_FOLDERS.items():
            if any(name.startswith(folder) for name in names):
                return type
    return "application/zip"


def _list_names(data: bytes, signature: bytes, length_at: int, name_at: int) -> Iterator[str]:
    """The member names after each of an archive's headers of one kind."""
    position = data.find(signature)
    while position >= 0 and position + name_at <= len(data):
        (length,) = struct.unpack_from("<H", data, position + length_at)
        yield data[position + name_at : position + name_at + length].decode("utf-8", "replace")
        position = data.find(signature, position + name_at)


def _get_old_office_type(data: bytes) -> str:
    for name, type in _OLD_OFFICE_STREAMS.items():
        if name.encode("utf-16-le") + b"\0\0" in data:
            return type
    return "application/x-ole-storage"


def _get_text_type(head: bytes, tail: bytes, filename: str) -> str:
    if not (head and _is_text(head) and _is_text(tail)):
        return UNKNOWN_TYPE
    text = head.removeprefix(b"\xef\xbb\xbf")
    if _starts_svg(text):
        return "image/svg+xml"
    if _starts_html(text):
        return "text/html"
    if _starts_xml(text):
        return "application/xml"
    return _TEXT_ENDINGS.get(splitext(filename.lower())[1], "text/plain")


def _is_text(data: bytes) -> bool:
    """UTF-8 without control characters; the first and the last character may be cut."""
    start = next((place for place, byte in enumerate(data[:4]) if byte & 0xC0 != 0x80), 0)
    try:
        text = data[start:].decode()
    except UnicodeDecodeError as error:
        if error.reason != "unexpected end of data":
            return False
        text = data[start : start + error.start].decode()
    return not any(character < " " and character not in "\t\n\r\f\x1b" for character in text)


def get_family(media_type: str) -> MediaType:
    """As what a file is usually sent."""
    family = media_type.partition("/")[0]
    return next((type for type in MEDIA_TYPES if type == family), "document")


def clean_filename(name: str | None, media_type: str) -> str:
    """Without folders, and without characters that are invisible or reverse the text; with a name by its type if
    nothing is left."""
    last = re.split(r"[/\\]", name or "")[-1]
    visible = "".join(" " if unicodedata.category(character)[0] in "CZ" else character for character in last)
    clean = " ".join(visible.split()).strip(". ")
    if not clean:
        return f"file{_ENDINGS.get(media_type, '')}"
    stem, ending = splitext(clean)
    ending = ending[:20]
    return stem[: MAX_NAME_LENGTH - len(ending)] + ending
