"""Draws documents as blocks, one below the other. Sizes are in points unless they say millimetres."""

from collections.abc import Callable, Sequence
from functools import cache
from importlib.resources import as_file, files
from io import BytesIO
from typing import NamedTuple

from reportlab.lib.units import mm
from reportlab.lib.utils import simpleSplit
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas

PLAIN, BOLD = "SapaSans", "SapaSans-Bold"
_FILES = {PLAIN: "SapaSans.ttf", BOLD: "SapaSans-Bold.ttf"}
LEADING = 1.22
HAIRLINE = 0.6

MISSING = "\N{WHITE SQUARE}"
"""In place of a character that the font lacks."""


class Block(NamedTuple):
    """A part of a page that knows its height."""

    height: float
    paint: Callable[[Canvas, float, float], None]
    """Paints with its upper left corner at x and y."""


@cache
def load_fonts() -> dict[str, TTFont]:
    """Once for each process."""
    fonts = {}
    for name, file in _FILES.items():
        with as_file(files("sapa.shipping.labels") / "fonts" / file) as path:
            fonts[name] = TTFont(name, str(path))
        pdfmetrics.registerFont(fonts[name])
    return fonts


def open_canvas(width: float, height: float, title: str) -> tuple[Canvas, BytesIO]:
    """The same content gives the same bytes."""
    load_fonts()
    buffer = BytesIO()
    canvas = Canvas(buffer, pagesize=(width, height), pageCompression=1, invariant=1)
    canvas.setTitle(title)
    canvas.setCreator("Sapa")
    return canvas, buffer


def show(text: str) -> str:
    """The text with printable characters only."""
    known = _read_characters()
    return "".join(char if ord(char) in known else MISSING for char in " ".join(text.split()))


@cache
def _read_characters() -> frozenset[int]:
    return frozenset(load_fonts()[PLAIN].face.charToGlyph)


def split_lines(text: str, font: str, size: float, width: float) -> list[str]:
    """Wrapped at words; a word that is too long is broken."""
    lines: list[str] = []
    for line in simpleSplit(show(text), font, size, width):
        while pdfmetrics.stringWidth(line, font, size) > width:
            end = len(line)
            while end > 1 and pdfmetrics.stringWidth(line[:end], font, size) > width:
                end -= 1
            lines.append(line[:end])
            line = line[end:]
        lines.append(line)
    return lines


def fit_size(text: str, font: str, sizes: Sequence[float], width: float) -> float:
    """The largest of the sizes, largest first, at which the text fits on one line; else the smallest."""
    shown = show(text)
    return next((size for size in sizes if pdfmetrics.stringWidth(shown, font, size) <= width), sizes[-1])


def build_text(
    text: str, width: float, *, size: float, font: str = PLAIN, align: str = "left", max_lines: int | None = None
) -> Block:
    """Wrapped; the lines after `max_lines` are cut off, with a mark."""
    lines = split_lines(text, font, size, width)
    if max_lines is not None and len(lines) > max_lines:
        lines = [*lines[: max_lines - 1], lines[max_lines - 1][:-1] + "…"]

    def paint(canvas: Canvas, x: float, y: float) -> None:
        canvas.setFont(font, size)
        for number, line in enumerate(lines):
            baseline = y - size * 0.95 - number * size * LEADING
            if align == "right":
                canvas.drawRightString(x + width, baseline, line)
            elif align == "center":
                canvas.drawCentredString(x + width / 2, baseline, line)
            else:
                canvas.drawString(x, baseline, line)

    return Block(len(lines) * size * LEADING, paint)


def build_gap(height: float) -> Block:
    return Block(height, lambda canvas, x, y: None)


def build_rule(width: float, gap: float = 1.2 * mm) -> Block:
    def paint(canvas: Canvas, x: float, y: float) -> None:
        canvas.setLineWidth(HAIRLINE)
        canvas.line(x, y - gap, x + width, y - gap)

    return Block(2 * gap, paint)


def build_row(cells: Sequence[tuple[float, Block]]) -> Block:
    """Blocks beside each other, each with its width."""

    def paint(canvas: Canvas, x: float, y: float) -> None:
        for width, block in cells:
            block.paint(canvas, x, y)
            x += width

    return Block(max(block.height for _, block in cells), paint)


def build_stack(blocks: Sequence[Block]) -> Block:
    def paint(canvas: Canvas, x: float, y: float) -> None:
        for block in blocks:
            block.paint(canvas, x, y)
            y -= block.height

    return Block(sum(block.height for block in blocks), paint)


def build_box(inner: Block, width: float, *, padding: float = 1.2 * mm, is_filled: bool = False) -> Block:
    """A frame, or a black field with white text."""
    height = inner.height + 2 * padding

    def paint(canvas: Canvas, x: float, y: float) -> None:
        canvas.setLineWidth(HAIRLINE)
        canvas.rect(x, y - height, width, height, stroke=1, fill=int(is_filled))
        canvas.saveState()
        if is_filled:
            canvas.setFillGray(1)
        inner.paint(canvas, x + padding, y - padding)
        canvas.restoreState()

    return Block(height, paint)
