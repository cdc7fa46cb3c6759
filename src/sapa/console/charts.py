"""Chart geometry, drawn by `chart.html`. Pure: numbers in, coordinates out."""

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal

from msgspec import Struct

from sapa.console.formats import point_number

WIDTH, HEIGHT = 400.0, 200.0
LEFT, RIGHT, TOP, BOTTOM = 44.0, 6.0, 10.0, 22.0
MAX_LABELS = 5
TOPS = (10, 12, 16, 20, 24, 32, 40, 60, 80, 100, 120)
"""In tenths."""
SHARE = 0.72
"""The share of its slot that a column fills."""

UNITS = {"en": ((10**9, "B"), (10**6, "M"), (10**3, "k")), "id": ((10**9, " M"), (10**6, " jt"), (10**3, " rb"))}

Number = int | float | Decimal


class Mark(Struct, frozen=True):
    """A label of an axis."""

    at: float
    text: str


class Box(Struct, frozen=True):
    x: float
    y: float
    width: float
    height: float
    title: str
    series: int = 1
    text: str = ""
    """The text at its end, if there is room."""


class ChartLine(Struct, frozen=True):
    name: str
    series: int
    points: str
    dots: list[tuple[float, float]]


class Chart(Struct, frozen=True):
    """Everything that a chart draws."""

    height: float
    boxes: list[Box]
    lines: list[ChartLine]
    across: list[Mark]
    """Horizontal grid lines, by height, with their labels."""
    along: list[Mark]
    """Labels along the bottom."""
    names: list[str]
    """The series, in the order of their colours."""


def build_columns(labels: Sequence[str], name: str, values: Sequence[Number], language: str = "en") -> Chart:
    """One column per label."""
    top = choose_top(max(values, default=0))
    place = _width() / max(len(labels), 1)
    boxes = [
        Box(
            x=round(LEFT + place * (number + (1 - SHARE) / 2), 1),
            y=round(_height_of(value, top), 1),
            width=round(place * SHARE, 1),
            height=round(HEIGHT - BOTTOM - _height_of(value, top), 1),
            title=f"{label}: {show_number(value, language)}",
        )
        for number, (label, value) in enumerate(zip(labels, values, strict=True))
    ]
    return Chart(HEIGHT, boxes, [], _build_across(top, language), _build_along(labels), [name])


def build_stacks(labels: Sequence[str], series: Mapping[str, Sequence[Number]], language: str = "en") -> Chart:
    """One column per label, with the series on top of each other."""
    sums = [sum(values) for values in zip(*series.values(), strict=True)]
    top = choose_top(max(sums, default=0))
    place = _width() / max(len(labels), 1)
    boxes, below = [], [Decimal(0)] * len(labels)
    for number, (name, values) in enumerate(series.items(), start=1):
        for column, value in enumerate(values):
            above = below[column] + Decimal(value)
            if value:
                y = _height_of(above, top)
                boxes.append(
                    Box(
                        x=round(LEFT + place * (column + (1 - SHARE) / 2), 1),
                        y=round(y, 1),
                        width=round(place * SHARE, 1),
                        height=round(_height_of(below[column], top) - y, 1),
                        title=f"{labels[column]}, {name}: {show_number(value, language)}",
                        series=number,
                    )
                )
            below[column] = above
    return Chart(HEIGHT, boxes, [], _build_across(top, language), _build_along(labels), list(series))


def build_lines(labels: Sequence[str], series: Mapping[str, Sequence[Number]], language: str = "en") -> Chart:
    """One line per series, over the same labels."""
    top = choose_top(max((value for values in series.values() for value in values), default=0))
    lines = []
    for number, (name, values) in enumerate(series.items(), start=1):
        dots = [(_middle(place, len(labels)), round(_height_of(value, top), 1)) for place, value in enumerate(values)]
        lines.append(ChartLine(name, number, " ".join(f"{x},{y}" for x, y in dots), dots))
    return Chart(HEIGHT, [], lines, _build_across(top, language), _build_along(labels), list(series))


def build_bars(
    rows: Sequence[tuple[str, Sequence[Number | None]]], names: Sequence[str], language: str = "en"
) -> Chart:
    """Horizontal bars: one per row and series, with the labels beside them; a dash for None."""
    top = choose_top(max((value or 0 for _, values in rows for value in values), default=0))
    thick, gap, room = 12.0, 14.0, 150.0
    boxes, along, y = [], [], 4.0
    for label, values in rows:
        along.append(Mark(round(y + thick * len(values) / 2 + 4, 1), label))
        for number, value in enumerate(values, start=1):
            width = float(value or 0) / float(top) * (WIDTH - room - 50)
            full, short = ("–", "–") if value is None else (show_number(value, language), shorten(value, language))
            title = f"{label}, {names[number - 1]}: {full}"
            boxes.append(Box(room, round(y, 1), round(width, 1), thick - 2, title, number, short))
            y += thick
        y += gap
    return Chart(round(max(y - gap + 4, 20.0), 1), boxes, [], [], along, list(names))


def build_curve(values: Sequence[Number]) -> str:
    """The points of a small line without axes, 100 wide and 24 high, the oldest value first."""
    most, apart = max(1.0, *map(float, values)), 100 / max(len(values) - 1, 1)
    return " ".join(f"{number * apart:.1f},{23 - 22 * float(value) / most:.1f}" for number, value in enumerate(values))


def choose_top(most: Number) -> int:
    """A round number at or above the greatest value, divisible by four."""
    size = int(10 ** (len(str(math.ceil(most))) - 1))
    return next(size * part // 10 for part in TOPS if size * part >= 10 * most and size * part % 40 == 0)


def show_number(value: Number, language: str = "en") -> str:
    """With thousands separators, without trailing zeros."""
    text = f"{value:,f}".rstrip("0").rstrip(".") if isinstance(value, float) else f"{value:,}"
    return point_number(language, text)


def shorten(value: Number, language: str = "en") -> str:
    """Short, for an axis: 1.5k, 20M, 3B; in Indonesian 1,5 rb, 20 jt, 3 M."""
    for size, unit in UNITS[language]:
        if value >= size:
            return f"{show_number(round(float(value) / size, 1), language)}{unit}"
    return show_number(value, language)


def _build_across(top: int, language: str) -> list[Mark]:
    steps = [top * part // 4 for part in range(5)]
    return [Mark(round(_height_of(value, top), 1), shorten(value, language)) for value in steps]


def _build_along(labels: Sequence[str]) -> list[Mark]:
    """As many labels as fit, evenly spaced from the first."""
    apart = max(1, math.ceil(len(labels) / MAX_LABELS))
    return [Mark(_middle(number, len(labels)), labels[number]) for number in range(0, len(labels), apart)]


def _middle(number: int, count: int) -> float:
    return round(LEFT + _width() / max(count, 1) * (number + 0.5), 1)


def _width() -> float:
    return WIDTH - LEFT - RIGHT


def _height_of(value: Number, top: Number) -> float:
    return HEIGHT - BOTTOM - float(value) / float(top) * (HEIGHT - TOP - BOTTOM)
