"""The type of a file is read from its bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapa.messaging.files.file_types import SAFE_TYPES, FileScan, clean_filename
from tests.messaging.files.corpus import ALL, SampleFile


def scan(content: bytes, piece: int) -> FileScan:
    found = FileScan()
    for start in range(0, len(content), piece):
        found.feed(content[start : start + piece])
    return found


@pytest.mark.parametrize("file", ALL, ids=lambda file: f"{file.name} is {file.media_type}")
def test_bytes_decide_whatever_the_name_says(file: SampleFile) -> None:
    found = scan(file.content, 4096)
    assert (found.get_type(file.name), found.size) == (file.media_type, len(file.content))
    if not file.media_type.startswith(("text/", "application/json")):
        assert found.get_type("x.html") == found.get_type(None) == file.media_type


@pytest.mark.parametrize("piece", [b"<!---->", b"<!-- ", b"<!doctype[]>", b"<!doctype ", b"<?xml ?>", b"<?xml ", b" "])
@pytest.mark.parametrize("end", [b"x", b"<svg>", b"<html>"])
def test_a_file_that_repeats_itself_is_read_like_any_other(piece: bytes, end: bytes) -> None:
    """A pattern that tries all ways to divide the comments would not end."""
    expected = {b"<!---->": {b"<svg>": "image/svg+xml", b"<html>": "text/html"}, b" ": {b"<html>": "text/html"}}
    found = scan(piece * 4000 + end, 4096).get_type("a.txt")
    assert found not in SAFE_TYPES
    if wanted := expected.get(piece, {}).get(end):
        assert found == wanted


@given(content=st.binary(max_size=300), piece=st.integers(1, 300), name=st.text(max_size=10))
def test_any_bytes_have_a_type_however_they_arrive(content: bytes, piece: int, name: str) -> None:
    whole, parts = scan(content, 1000), scan(content, piece)
    assert whole.get_type(name) == parts.get_type(name)


@given(text=st.text(), name=st.text(max_size=10))
def test_no_text_is_shown_by_a_browser(text: str, name: str) -> None:
    """An image or a sound of a few letters is possible: their signatures are letters."""
    signatures = ("GIF87a", "GIF89a", "ID3", "OggS", "#!AMR")
    found = scan(text.encode(), 1000).get_type(name)
    assert found not in SAFE_TYPES or text.startswith(signatures) or text[4:8] == "ftyp" or text.startswith("RIFF")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("nota.pdf", "nota.pdf"),
        ("../../etc/passwd", "passwd"),
        ("C:\\Users\\ayu\\foto.jpg", "foto.jpg"),
        ("gambar\u202egnp.exe", "gambar gnp.exe"),
        ("a\r\nset-cookie: x=1.png", "a set-cookie: x=1.png"),
        ("\0\0", "file.png"),
        ("...", "file.png"),
        ("", "file.png"),
        (None, "file.png"),
        ("kopi ☕.png", "kopi ☕.png"),
        ("a" * 300 + ".png", "a" * 196 + ".png"),
        ("a." + "b" * 300, "a." + "b" * 19),
    ],
)
def test_a_name_is_one_visible_line(name: str | None, expected: str) -> None:
    assert clean_filename(name, "image/png") == expected


@given(st.text())
def test_any_name_becomes_one_that_can_be_stored(name: str) -> None:
    clean = clean_filename(name, "")
    assert 1 <= len(clean) <= 200
    assert clean.isprintable()
    assert not set(clean) & set("/\\\0\r\n")
