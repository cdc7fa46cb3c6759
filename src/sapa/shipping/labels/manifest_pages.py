"""Draws pickup manifests: the parcels that a courier takes over, on A4, signed by both."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import groupby

from reportlab.lib.pagesizes import A4
from reportlab.lib.units import mm
from reportlab.pdfgen.canvas import Canvas

from sapa.shipping.labels.content import ParcelContent, PrintRequest, show_number
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

MARGIN = 15 * mm
WIDTH = A4[0] - 2 * MARGIN
SHARES = (0.05, 0.27, 0.28, 0.2, 0.07, 0.13)
TITLES = ("No.", "Resi", "Penerima", "Kota tujuan", "Kg", "COD")
SIZE = 8.5
SIGNATURES = 32 * mm


def draw_manifests(request: PrintRequest) -> bytes:
    """Each courier has its own, with its own totals."""
    canvas, buffer = open_canvas(*A4, f"{request.shop}: manifest")
    parcels = sorted(request.parcels, key=lambda parcel: (parcel.courier, parcel.pickup_number or "", parcel.number))
    for courier, group in groupby(parcels, key=lambda parcel: parcel.courier):
        _draw_courier(canvas, request, courier, list(group))
    canvas.save()
    return buffer.getvalue()


def _draw_courier(canvas: Canvas, request: PrintRequest, courier: str, parcels: Sequence[ParcelContent]) -> None:
    head = build_stack(_build_head(request, courier, parcels))
    rows = [_build_row(_cells(number, parcel)) for number, parcel in enumerate(parcels, 1)]
    foot = build_stack(_build_totals(parcels))
    room = A4[1] - 2 * MARGIN - head.height - foot.height - SIGNATURES
    pages = list(_split_pages(rows, room))
    for number, page in enumerate(pages, 1):
        head.paint(canvas, MARGIN, A4[1] - MARGIN)
        y = A4[1] - MARGIN - head.height
        stack = build_stack(page)
        stack.paint(canvas, MARGIN, y)
        if number == len(pages):
            foot.paint(canvas, MARGIN, y - stack.height)
            _sign(canvas)
        canvas.setFont(PLAIN, 7)
        canvas.drawRightString(A4[0] - MARGIN, MARGIN / 2, f"{number} / {len(pages)}")
        canvas.showPage()


def _split_pages(rows: Sequence[Block], room: float) -> Iterator[list[Block]]:
    page: list[Block] = []
    for row in rows:
        if page and sum(block.height for block in page) + row.height > room:
            yield page
            page = []
        page.append(row)
    yield page


def _build_head(request: PrintRequest, courier: str, parcels: Sequence[ParcelContent]) -> list[Block]:
    pickups = ", ".join(dict.fromkeys(parcel.pickup_number for parcel in parcels if parcel.pickup_number))
    senders = ", ".join(dict.fromkeys(parcel.sender.name for parcel in parcels if parcel.sender.name))
    facts = [f"Tanggal {request.date}", *([f"Nomor pickup {pickups}"] if pickups else [])]
    return [
        build_text(f"Manifest penyerahan paket – {courier}", WIDTH, size=15, font=BOLD),
        build_text(" · ".join(dict.fromkeys(filter(None, (request.shop, senders)))), WIDTH, size=9),
        build_text(" · ".join(facts), WIDTH, size=9),
        build_gap(3 * mm),
        _build_row(TITLES, BOLD),
    ]


def _cells(number: int, parcel: ParcelContent) -> tuple[str, ...]:
    weight = "–" if parcel.weight is None else show_number(parcel.weight)
    cod = "–" if parcel.cod_amount is None else show_number(parcel.cod_amount)
    return str(number), parcel.number, parcel.receiver.name, parcel.destination, weight, cod


def _build_row(cells: Sequence[str], font: str = PLAIN) -> Block:
    widths = [WIDTH * share for share in SHARES]
    row = build_row(
        [
            (width, build_text(cell, width - 2 * mm, size=SIZE, font=font, align="right" if n > 3 else "left"))
            for n, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
    )
    return build_stack([row, build_rule(WIDTH, 0.8 * mm)])


def _build_totals(parcels: Sequence[ParcelContent]) -> list[Block]:
    weight = sum((parcel.weight or Decimal(0) for parcel in parcels), Decimal(0))
    cod = sum((parcel.cod_amount or Decimal(0) for parcel in parcels), Decimal(0))
    totals = [f"{len(parcels)} paket", f"{show_number(weight)} kg", f"COD {show_number(cod)}"]
    return [build_gap(2 * mm), build_text(" · ".join(totals), WIDTH, size=11, font=BOLD)]


def _sign(canvas: Canvas) -> None:
    canvas.setFont(PLAIN, 9)
    for x, title in ((MARGIN, "Diserahkan oleh"), (A4[0] / 2 + 5 * mm, "Diterima oleh kurir")):
        canvas.drawString(x, MARGIN + 24 * mm, title)
        canvas.line(x, MARGIN + 4 * mm, x + 70 * mm, MARGIN + 4 * mm)
        canvas.drawString(x, MARGIN, "Nama, tanggal, jam")
