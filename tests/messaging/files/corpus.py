"""Files of many kinds, made by the libraries that usually make them, and hostile ones."""

import wave
import zipfile
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any

from msgspec import Struct
from PIL import Image

OFFICE = "application/vnd.openxmlformats-officedocument."
WORD, SHEET = f"{OFFICE}wordprocessingml.document", f"{OFFICE}spreadsheetml.sheet"
SLIDES = f"{OFFICE}presentationml.presentation"
UNKNOWN = "application/octet-stream"
SCRIPT = b"<script>alert(document.domain)</script>"
SVG = b'<?xml version="1.0"?><!-- x --><svg xmlns="http://www.w3.org/2000/svg">' + SCRIPT + b"</svg>"
XML = b'<?xml version="1.0"?><x xmlns="http://www.w3.org/1999/xhtml"/>'
PDF = (
    b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n"
    b"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 72 72]>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n"
)


class SampleFile(Struct, frozen=True):
    """A file with what its sender says about it."""

    name: str
    declared: str
    content: bytes
    media_type: str
    """What it really is."""
    is_shown: bool = False
    """Whether a browser may show it in a page; otherwise it is a download."""


def make_image(format: str, size: tuple[int, int] = (40, 30), mode: str = "RGB", **options: Any) -> bytes:
    target = BytesIO()
    Image.new(mode, size, "teal").save(target, format, **options)
    return target.getvalue()


def make_archive(members: Mapping[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    target = BytesIO()
    with zipfile.ZipFile(target, "w", compression, compresslevel=1) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return target.getvalue()


def make_open_document(kind: str) -> bytes:
    target = BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("mimetype", f"application/vnd.oasis.opendocument.{kind}")
        archive.writestr("content.xml", "<office/>")
    return target.getvalue()


def make_sound() -> bytes:
    target = BytesIO()
    with wave.open(target, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(8000)
        sound.writeframes(bytes(800))
    return target.getvalue()


def make_bomb() -> bytes:
    """A document that unpacks to 60 MB."""
    members = {"[Content_Types].xml": b"<Types/>", "word/document.xml": bytes(60_000_000)}
    return make_archive(members)


def make_old_office(stream: str) -> bytes:
    """The beginning of a compound file with a directory entry."""
    header = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504)
    return header + stream.encode("utf-16-le").ljust(64, b"\0") + bytes(448)


TYPES = {"[Content_Types].xml": b"<Types/>"}
# Members before the document, so that its name is far from both ends of the file.
LARGE = TYPES | {f"media/{number}.bin": bytes([number]) * 40_000 for number in range(6)}

ORDINARY: Sequence[SampleFile] = (
    SampleFile("foto.jpg", "image/jpeg", make_image("JPEG"), "image/jpeg", is_shown=True),
    SampleFile("foto.png", "image/png", make_image("PNG"), "image/png", is_shown=True),
    SampleFile("foto.webp", "image/webp", make_image("WEBP"), "image/webp", is_shown=True),
    SampleFile("foto.gif", "image/gif", make_image("GIF"), "image/gif", is_shown=True),
    SampleFile("foto.tiff", "image/tiff", make_image("TIFF"), "image/tiff"),
    SampleFile("nota.pdf", "application/pdf", PDF, "application/pdf"),
    SampleFile("catatan.txt", "text/plain", "Halo Ayu, terima kasih ☕\n".encode(), "text/plain"),
    SampleFile("pesanan.csv", "text/csv", b"id;total\n1042;150000\n", "text/csv"),
    SampleFile("surat.docx", UNKNOWN, make_archive(TYPES | {"word/document.xml": b"<w/>"}), WORD),
    SampleFile("besar.docx", UNKNOWN, make_archive(LARGE | {"word/document.xml": b"<w/>"}, zipfile.ZIP_STORED),
               WORD),
    SampleFile("harga.xlsx", UNKNOWN, make_archive(TYPES | {"xl/workbook.xml": b"<x/>"}), SHEET),
    SampleFile("kopi.pptx", UNKNOWN, make_archive(TYPES | {"ppt/presentation.xml": b"<p/>"}), SLIDES),
    SampleFile("surat.odt", UNKNOWN, make_open_document("text"), "application/vnd.oasis.opendocument.text"),
    SampleFile("lama.doc", "application/msword", make_old_office("WordDocument"), "application/msword"),
    SampleFile("lama.xls", "application/vnd.ms-excel", make_old_office("Workbook"), "application/vnd.ms-excel"),
    SampleFile("suara.wav", "audio/wav", make_sound(), "audio/wav"),
    SampleFile("suara.ogg", "audio/ogg", b"OggS\0\x02" + bytes(20) + b"\x01\x13OpusHead", "audio/ogg", is_shown=True),
    SampleFile("suara.mp3", "audio/mpeg", b"ID3\x04\0\0\0\0\0\0" + bytes(64), "audio/mpeg", is_shown=True),
    SampleFile("suara.m4a", "audio/mp4", b"\0\0\0\x18ftypM4A \0\0\0\0M4A mp42", "audio/mp4", is_shown=True),
    SampleFile("film.mp4", "video/mp4", b"\0\0\0\x18ftypmp42\0\0\0\0mp42isom", "video/mp4", is_shown=True),
    SampleFile("film.3gp", "video/3gpp", b"\0\0\0\x18ftyp3gp4\0\0\0\0isom3gp4", "video/3gpp"),
    SampleFile("film.webm", "video/webm", b"\x1aE\xdf\xa3\x9fB\x86\x81\x01B\x82\x84webm", "video/webm"),
    SampleFile("arsip.zip", "application/zip", make_archive({"a.txt": b"a"}), "application/zip"),
)  # fmt: skip

HOSTILE: Sequence[SampleFile] = (
    SampleFile("foto.png", "image/png", b"<!DOCTYPE html><html>" + SCRIPT, "text/html"),
    SampleFile("halaman.html", "text/html", b"\xef\xbb\xbf \n<!-- x -->\n<HTML>" + SCRIPT, "text/html"),
    SampleFile("foto.jpg", "image/jpeg", SCRIPT, "text/html"),
    SampleFile("logo.svg", "image/svg+xml", SVG, "image/svg+xml"),
    SampleFile("logo.png", "image/png", b"<svg onload='alert(1)'/>", "image/svg+xml"),
    SampleFile("berita.xml", "text/xml", XML, "application/xml"),
    SampleFile("kode.js", "text/javascript", b"alert(document.domain)", "text/plain"),
    SampleFile("gif.html", "text/html", b"GIF89a/*" + SCRIPT + b"*/=1;alert(1)", "image/gif", is_shown=True),
    SampleFile("jpeg.html", "text/html", make_image("JPEG", comment=SCRIPT), "image/jpeg", is_shown=True),
    SampleFile("pdf.html", "text/html", b"<html>" + SCRIPT + b"</html>\n" + PDF, "text/html"),
    SampleFile("zip.pdf", "application/pdf", PDF + make_archive({"a.html": SCRIPT}), "application/pdf"),
    SampleFile("bom.docx", UNKNOWN, make_bomb(), WORD),
    SampleFile("bom.png", "image/png", make_image("PNG", (9_000, 9_000), "1"), "image/png", is_shown=True),
    SampleFile("rusak.png", "image/png", b"\x89PNG\r\n\x1a\n" + bytes(100), "image/png", is_shown=True),
    SampleFile("utf7.txt", "text/html", b"+ADw-script+AD4-alert(1)+ADw-/script+AD4-", "text/plain"),
    SampleFile("utf16.png", "image/png", "<script>alert(1)</script>".encode("utf-16"), UNKNOWN),
    SampleFile("virus.jpg", "image/jpeg", b"MZ\x90\0" + bytes(60), UNKNOWN),
    SampleFile("nol.txt", "text/plain", b"\0" * 10, UNKNOWN),
)  # fmt: skip

ALL: Sequence[SampleFile] = (*ORDINARY, *HOSTILE)
