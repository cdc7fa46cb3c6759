"""Draws packing slips: what is in the parcel, without prices, for the person who packs and the one who unpacks."""

from collections.abc import Iterator, Sequence

from reportlab.lib.units import mm
from reportlab.pdfgen.canvas import Canvas

from sapa.shipping.labels.content import PackedItem, ParcelContent, PrintRequest
from sapa.shipping.labels.drawing import (
    BOLD,
    PLAIN,
    Block,
    build_gap,
    build_row,
    build_rule,
    build_stack,
    build_text,
    open_canvas,
)
from sapa.shipping.labels.label_pages import A6, MARGINS, build_reference, draw_roll, roll_width

QUANTITY_WIDTH = 12 * mm
SIZE = 8.5


def draw_slips(request: PrintRequest) -> bytes:
    canvas, buffer = open_canvas(*A6, f"{request.shop}: packing slip")
    for parcel in request.parcels:
        if request.format == "a6":
            _draw_a6(canvas, parcel, request)
        else:
            draw_roll(canvas, [*_build_head(parcel, request, roll_width()), *_build_lines(parcel, roll_width())])
            canvas.showPage()
    canvas.save()
    return buffer.getvalue()


def _draw_a6(canvas: Canvas, parcel: ParcelContent, request: PrintRequest) -> None:
    """As many pages as the lines need, each with the head."""
    margin = MARGINS["a6"]
    width = A6[0] - 2 * margin
    head = build_stack(_build_head(parcel, request, width))
    for lines in _split_pages(_build_lines(parcel, width), A6[1] - 2 * margin - head.height):
        canvas.setPageSize(A6)
        head.paint(canvas, margin, A6[1] - margin)
        build_stack(lines).paint(canvas, margin, A6[1] - margin - head.height)
        canvas.showPage()


def _split_pages(lines: Sequence[Block], room: float) -> Iterator[list[Block]]:
    page: list[Block] = []
    used = 0.0
    for line in lines:
        if page and used + line.height > room:
            yield page
            page, used = [], 0.0
        page.append(line)
        used += line.height
    yield page


def _build_head(parcel: ParcelContent, request: PrintRequest, width: float) -> list[Block]:
    return [
        build_text(request.shop, width, size=13, font=BOLD),
        build_text("Daftar isi paket", width, size=8),
        build_gap(2 * mm),
        build_row(
            [
                (width * 0.7, build_text(build_reference(parcel) or parcel.number, width * 0.7, size=9, font=BOLD)),
                (width * 0.3, build_text(request.date, width * 0.3, size=8, align="right")),
            ]
        ),
        build_text(f"{parcel.receiver.name} · {parcel.receiver.city}", width, size=8.5),
        build_text(f"{_name_service(parcel)} · {parcel.number}", width, size=7.5),
        build_rule(width),
    ]


def _build_lines(parcel: ParcelContent, width: float) -> list[Block]:
    units = sum(item.quantity for item in parcel.items)
    total = _build_line(str(units), "barang", None, width, font=BOLD)
    return [*(_build_item(item, width) for item in parcel.items), build_rule(width), total]


def _build_item(item: PackedItem, width: float) -> Block:
    return _build_line(f"{item.quantity} ×", item.title, item.sku, width)


def _build_line(quantity: str, title: str, sku: str | None, width: float, font: str = PLAIN) -> Block:
    title_width = width - QUANTITY_WIDTH
    words = [build_text(title, title_width, size=SIZE, font=font)]
    if sku:
        words.append(build_text(f"SKU {sku}", title_width, size=6.5))
    row = build_row(
        [
            (QUANTITY_WIDTH, build_text(quantity, QUANTITY_WIDTH - 1 * mm, size=SIZE, font=BOLD)),
            (title_width, build_stack(words)),
        ]
    )
    return build_stack([row, build_gap(1 * mm)])


def _name_service(parcel: ParcelContent) -> str:
    """Many services have their courier's name in front."""
    is_named = parcel.service.casefold().startswith(parcel.courier.casefold())
    return parcel.service if is_named else f"{parcel.courier} {parcel.service}"
