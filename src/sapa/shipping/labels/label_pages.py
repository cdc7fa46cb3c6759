"""Draws shipping labels: A6 for sheets, and rolls of 80 mm whose length follows the content."""

from collections.abc import Iterator, Sequence
from decimal import Decimal

from reportlab.lib.units import mm
from reportlab.pdfgen.canvas import Canvas

from sapa.shipping.labels.barcodes import align_to_dots, build_barcode
from sapa.shipping.labels.content import Format, LabelParty, PackedItem, ParcelContent, PrintRequest, show_number
from sapa.shipping.labels.drawing import (
    BOLD,
    PLAIN,
    Block,
    build_box,
    build_gap,
    build_row,
    build_rule,
    build_stack,
    build_text,
    fit_size,
    open_canvas,
)

A6 = (105 * mm, 148 * mm)
ROLL_WIDTH = 80 * mm
MARGINS: dict[Format, float] = {"a6": 4 * mm, "roll80": 4 * mm}
ADDRESS_SIZES = (12.0, 11.0, 10.0, 9.0, 8.0, 7.0, 6.0, 5.2)
"""Smaller for a long address: it is never cut."""
ROLL_SIZE, MIN_SIZE = 9.0, 8.0
"""On a roll, and on a page as long as contents can be left out instead."""
ITEM_SIZE = 7.0
MAX_ITEMS = 20
HAIR = 0.001
"""Keeps a renderer from rounding a page of whole dots up to one more, and stretching it."""
TEST = "TEST - JANGAN DIKIRIM"


def draw_labels(request: PrintRequest) -> bytes:
    """One page for each parcel."""
    canvas, buffer = open_canvas(*A6, f"{request.shop}: label")
    for parcel in request.parcels:
        if request.format == "a6":
            _draw_a6(canvas, parcel, request)
        else:
            width = roll_width()
            head = _build_head(parcel, width, ROLL_SIZE, may_turn=True)
            draw_roll(canvas, [*head, *_build_foot(parcel, request, width, MAX_ITEMS)])
        canvas.showPage()
    canvas.save()
    return buffer.getvalue()


def roll_width() -> float:
    return ROLL_WIDTH - 2 * MARGINS["roll80"]


def draw_roll(canvas: Canvas, blocks: Sequence[Block]) -> None:
    margin, stack = MARGINS["roll80"], build_stack(blocks)
    height = align_to_dots(stack.height + 2 * margin) - HAIR
    canvas.setPageSize((ROLL_WIDTH, height))
    stack.paint(canvas, margin, height - margin)


def _draw_a6(canvas: Canvas, parcel: ParcelContent, request: PrintRequest) -> None:
    """A long address makes the text smaller; the contents get what is left of the page."""
    margin = MARGINS["a6"]
    width, room = A6[0] - 2 * margin, A6[1] - 2 * margin
    for size, items in _generate_choices(len(parcel.items)):
        head = build_stack(_build_head(parcel, width, size, may_turn=False))
        foot = build_stack(_build_foot(parcel, request, width, items))
        if head.height + foot.height <= room:
            break
    canvas.setPageSize(A6)
    head.paint(canvas, margin, A6[1] - margin)
    foot.paint(canvas, margin, margin + foot.height)


def _generate_choices(items: int) -> Iterator[tuple[float, int]]:
    """Sizes of the text and numbers of items to try, the best first."""
    for most in (*sorted({min(items, MAX_ITEMS), min(items, 6), min(items, 3)}, reverse=True), 1):
        for size in ADDRESS_SIZES:
            if size >= MIN_SIZE or most == 1:
                yield size, most


def _build_head(parcel: ParcelContent, width: float, size: float, *, may_turn: bool) -> list[Block]:
    """Everything that the courier needs."""
    return [
        *([build_text(TEST, width, size=9, font=BOLD, align="center"), build_gap(1 * mm)] if parcel.is_test else []),
        _build_title(parcel, width),
        build_gap(1.5 * mm),
        build_barcode(parcel.number, width, may_turn=may_turn),
        build_text(parcel.number, width, size=_number_size(parcel.number, width), font=BOLD, align="center"),
        build_gap(1.5 * mm),
        _build_payment(parcel, width),
        build_gap(1.5 * mm),
        _build_party("PENERIMA", parcel.receiver, width, size, is_large=True),
        build_rule(width),
        _build_party("PENGIRIM", parcel.sender, width, min(size, 8.0), is_large=False),
        build_rule(width),
        _build_facts(parcel, width),
    ]


def _build_title(parcel: ParcelContent, width: float) -> Block:
    """The courier and its service; the sorting code stands out on the right."""
    code_width = width * 0.38 if parcel.sorting_code else 0.0
    name_width = width - code_width
    courier_size = fit_size(parcel.courier, BOLD, (18, 15, 12, 10, 8), name_width)
    name = build_stack(
        [
            build_text(parcel.courier, name_width, size=courier_size, font=BOLD, max_lines=2),
            build_text(parcel.service, name_width, size=8.5, max_lines=2),
        ]
    )
    if not parcel.sorting_code:
        return name
    inner_width = code_width - 2.4 * mm
    code_size = fit_size(parcel.sorting_code, BOLD, (16, 13, 11, 9, 7), inner_width)
    code = build_text(parcel.sorting_code, inner_width, size=code_size, font=BOLD, align="center", max_lines=2)
    return build_row([(name_width, name), (code_width, build_box(code, code_width))])


def _number_size(number: str, width: float) -> float:
    return fit_size(number, BOLD, (13, 11, 9, 7), width)


def _build_payment(parcel: ParcelContent, width: float) -> Block:
    size = fit_size(parcel.payment, BOLD, (14, 12, 10), width - 3 * mm)
    text = build_text(parcel.payment, width - 2.4 * mm, size=size, font=BOLD, align="center")
    return build_box(text, width, is_filled=parcel.is_cod)


def _build_party(title: str, party: LabelParty, width: float, size: float, *, is_large: bool) -> Block:
    name_size = size + 2 if is_large else size
    blocks = [
        build_text(title, width, size=6),
        build_text(" · ".join(filter(None, (party.name, party.phone))), width, size=name_size, font=BOLD),
        build_text(party.address, width, size=size),
        build_text(party.city, width, size=size, font=BOLD if is_large else PLAIN),
    ]
    if party.notes and is_large:
        blocks.append(build_text(f"Catatan: {party.notes}", width, size=min(size, 8.0)))
    return build_stack(blocks)


def _build_facts(parcel: ParcelContent, width: float) -> Block:
    """The volumetric weight only if it is the larger one, which counts."""
    volumetric = [("Berat volume", _show_weight(parcel.volumetric_weight))] if parcel.volumetric_weight else []
    facts = [
        ("Berat", _show_weight(parcel.weight)),
        *volumetric,
        ("Jumlah", f"{parcel.quantity} pcs"),
        ("Asuransi", parcel.insurance or "Tidak"),
    ]
    ends = [("Kota asal", parcel.origin or "–"), ("Kota tujuan", parcel.destination or "–")]
    return build_stack([_build_fact_row(facts, width), build_gap(1 * mm), _build_fact_row(ends, width)])


def _build_fact_row(facts: Sequence[tuple[str, str]], width: float) -> Block:
    share = width / len(facts)
    return build_row([(share, _build_fact(title, value, share - 1 * mm)) for title, value in facts])


def _show_weight(weight: Decimal | None) -> str:
    return "–" if weight is None else f"{show_number(weight)} kg"


def _build_fact(title: str, value: str, width: float) -> Block:
    size = fit_size(value, BOLD, (8, 7, 6), width)
    return build_stack(
        [build_text(title, width, size=5.5), build_text(value, width, size=size, font=BOLD, max_lines=2)]
    )


def _build_foot(parcel: ParcelContent, request: PrintRequest, width: float, max_items: int) -> list[Block]:
    """The order and its contents, for the person who packs."""
    reference = build_reference(parcel) or "Isi paket"
    head = build_row(
        [
            (width * 0.55, build_text(reference, width * 0.55, size=7, font=BOLD)),
            (width * 0.45, build_text(f"{request.shop} · {request.date}", width * 0.45, size=6, align="right")),
        ]
    )
    return [build_rule(width), head, *_build_items(parcel.items, width, max_items)]


def build_reference(parcel: ParcelContent) -> str:
    """The shop's own numbers of it; empty if it has none."""
    order = f"Pesanan {parcel.order_number}" if parcel.order_number else ""
    return " · ".join(filter(None, (f"Retur {parcel.return_number}" if parcel.return_number else "", order)))


def _build_items(items: Sequence[PackedItem], width: float, most: int) -> list[Block]:
    shown = [build_text(f"{item.quantity} × {item.title}", width, size=ITEM_SIZE, max_lines=2) for item in items[:most]]
    rest = len(items) - most
    return [*shown, *([build_text(f"+ {rest} barang lain", width, size=ITEM_SIZE)] if rest > 0 else [])]
