"""Reads printed files with libraries that did not make them: pages as pictures, their text, and their barcodes."""

import pypdfium2  # type: ignore[import-untyped]
import zxingcpp
from PIL.Image import Image

DPI = 203
"""The dots of a label printer."""


def render(content: bytes, dpi: int = DPI) -> list[Image]:
    return [page.render(scale=dpi / 72).to_pil() for page in pypdfium2.PdfDocument(content)]


def read_texts(content: bytes) -> list[str]:
    """One text for each page."""
    return [page.get_textpage().get_text_bounded() for page in pypdfium2.PdfDocument(content)]


def read_sizes(content: bytes) -> list[tuple[int, int]]:
    """In millimetres."""
    pages = [page.get_size() for page in pypdfium2.PdfDocument(content)]
    return [(round(width / 72 * 25.4), round(height / 72 * 25.4)) for width, height in pages]


def read_barcodes(content: bytes, dpi: int = DPI) -> list[str]:
    """The one Code 128 of each page, at the dots of the printer: a reader that also tries a third of them may find a
    second number in the blur, whose checksum happens to fit."""
    numbers: list[str] = []
    for picture in render(content, dpi):
        found = zxingcpp.read_barcodes(picture, try_downscale=False)
        assert [str(code.format) for code in found] == ["Code 128"], f"page {len(numbers) + 1}: {found}"
        numbers.append(found[0].text)
    return numbers
