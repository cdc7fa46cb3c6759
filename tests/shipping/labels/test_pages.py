"""Labels, packing slips and manifests, read back by libraries that did not draw them."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapa.shipping.labels.content import LabelParty, PackedItem, ParcelContent, PrintRequest, show_money
from sapa.shipping.labels.documents import draw, join
from sapa.shipping.labels.printer import print_apart
from sapa.shipping.types import SHIPMENT_ID
from tests.shipping.labels.reader import read_barcodes, read_sizes, read_texts

SENDER = LabelParty("Toko Kopi", "+6281234567890", "Jl. Menteng Raya No. 21", "Jakarta Pusat 10310")
RECEIVER = LabelParty(
    "Ayu Lestari", "+6281298765432", "Jl. Sukajadi No. 112, Sukabungah", "Kota Bandung 40162", "Satpam"
)
ITEMS = [PackedItem("Kopi Gayo 250 g", 2, "GAYO-250"), PackedItem("V60 dripper", 1)]


def build_parcel(number: str = "JNE0001234567", **fields: Any) -> ParcelContent:
    defaults: dict[str, Any] = {
        "number": number, "courier": "JNE", "service": "JNE Reguler", "sorting_code": "BDO-10", "payment": "NON COD",
        "is_cod": False, "sender": SENDER, "receiver": RECEIVER, "origin": "Jakarta Pusat",
        "destination": "Kota Bandung",
        "weight": Decimal("1.5"), "volumetric_weight": Decimal("3.2"), "quantity": 3, "insurance": "Rp 150.000",
        "items": ITEMS, "order_number": "1001", "return_number": None, "pickup_number": "PU-77",
        "cod_amount": None, "currency": "IDR", "is_test": False,
    }  # fmt: skip
    return ParcelContent(**defaults | fields)


def build_print(*parcels: ParcelContent, **fields: Any) -> PrintRequest:
    defaults: dict[str, Any] = {"document": "label", "format": "a6", "shop": "Toko Kopi", "date": "16-11-2026"}
    return PrintRequest(parcels=list(parcels), **defaults | fields)


def flatten(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize(("format", "width"), [("a6", 105), ("roll80", 80)])
def test_a_label_has_everything_that_the_courier_needs(format: str, width: int) -> None:
    content = draw(build_print(build_parcel(), format=format))
    (text,) = map(flatten, read_texts(content))
    assert read_sizes(content)[0][0] == width
    for words in (
        "JNE", "JNE Reguler", "BDO-10", "JNE0001234567", "NON COD", "Ayu Lestari", "+6281298765432",
        "Jl. Sukajadi No. 112, Sukabungah", "Kota Bandung 40162", "Satpam", "Toko Kopi", "+6281234567890",
        "Jl. Menteng Raya No. 21", "Jakarta Pusat 10310", "1,5 kg", "3,2 kg", "3 pcs", "Rp 150.000", "Pesanan 1001",
        "2 × Kopi Gayo 250 g", "1 × V60 dripper", "16-11-2026",
    ):  # fmt: skip
        assert words in text, words
    assert "TEST" not in text


def test_cash_on_delivery_and_test_parcels_stand_out() -> None:
    (text,) = read_texts(draw(build_print(build_parcel(payment="COD Rp 1.250.000", is_cod=True, is_test=True))))
    assert "COD Rp 1.250.000" in text
    assert "JANGAN DIKIRIM" in text


@pytest.mark.parametrize("format", ["a6", "roll80"])
@pytest.mark.parametrize("dpi", [203, 300])
@pytest.mark.parametrize(
    "number", ["JNE0001234567", "8880123456", "JX1234567890", "SPXID04512345678A", "shp_01jc9y3q5me8w92v7x4t6r0n1k"]
)
def test_a_reader_reads_the_barcode(number: str, dpi: int, format: str) -> None:
    assert read_barcodes(draw(build_print(build_parcel(number), format=format)), dpi) == [number]


@pytest.mark.parametrize("format", ["a6", "roll80"])
def test_any_id_reads_back_at_the_dots_of_a_label_printer(format: str) -> None:
    """Ids are as long as a barcode gets: its bars have two dots."""
    ids = [SHIPMENT_ID.new() for _ in range(12)]
    assert read_barcodes(draw(build_print(*map(build_parcel, ids), format=format)), 203) == ids


@pytest.mark.parametrize("format", ["a6", "roll80"])
def test_the_longest_address_is_on_the_label_in_full(format: str) -> None:
    street = " ".join(f"Jalan{n}" for n in range(70))
    notes = " ".join(f"catatan{n}" for n in range(40))
    receiver = LabelParty("N" * 50 + " " + "M" * 49, "+6281298765432", street, "Kabupaten Pangkajene 90611", notes)
    parcel = build_parcel(
        receiver=receiver, courier="Kurir " * 30, service="Layanan " * 20, items=[PackedItem("Barang " * 30, 1)] * 40
    )
    content = draw(build_print(parcel, format=format))
    (text,) = map(flatten, read_texts(content))
    assert all(word in text for word in street.split())
    assert all(word in text for word in notes.split())
    assert read_barcodes(content) == [parcel.number]
    assert "barang lain" in text


@given(st.text(max_size=60))
def test_any_text_can_be_printed(text: str) -> None:
    party = LabelParty(text, text, text, text, text)
    parcel = build_parcel(receiver=party, courier=text, service=text, items=[PackedItem(text, 1)])
    assert read_sizes(draw(build_print(parcel))) == [(105, 148)]


def test_a_character_that_the_font_lacks_is_seen_to_be_missing() -> None:
    (text,) = read_texts(draw(build_print(build_parcel(service="Łódź 東京"))))
    assert "Łódź □□" in text


def test_the_same_content_gives_the_same_file() -> None:
    assert draw(build_print(build_parcel())) == draw(build_print(build_parcel()))


@pytest.mark.parametrize("format", ["a6", "roll80"])
def test_a_packing_slip_has_every_line_and_no_price(format: str) -> None:
    items = [PackedItem(f"Barang {n}", n + 1, f"SKU{n}") for n in range(45)]
    content = draw(build_print(build_parcel(items=items), document="packing_slip", format=format))
    text = flatten(" ".join(read_texts(content)))
    assert all(f"{item.quantity} × {item.title} SKU {item.sku}" in text for item in items)
    assert f"{sum(item.quantity for item in items)} barang" in text
    assert "Rp" not in text


def test_a_manifest_lists_the_parcels_of_each_courier_with_totals() -> None:
    jne = [build_parcel(f"JNE{n:04}", cod_amount=Decimal(1000), is_cod=True) for n in range(70)]
    other = build_parcel("SC0001", courier="SICEPAT")
    content = draw(build_print(other, *jne, document="manifest"))
    texts = list(map(flatten, read_texts(content)))
    assert set(read_sizes(content)) == {(210, 297)}
    ends = [text for text in texts if "Diserahkan oleh" in text]
    assert len(ends) == 2
    assert "70 paket · 105 kg · COD 70.000" in ends[0]
    assert "1 paket · 1,5 kg · COD 0" in ends[1]
    assert "Nomor pickup PU-77" in ends[0]
    assert all(any(parcel.number in text for text in texts) for parcel in [*jne, other])


def test_files_are_joined_page_by_page() -> None:
    files = [draw(build_print(build_parcel(number))) for number in ("AAA111", "BBB222")]
    assert read_barcodes(join(files)) == ["AAA111", "BBB222"]


@pytest.mark.processes
@pytest.mark.parametrize(("service", "shown"), [("JNE Reguler", "JNE Reguler ·"), ("Reguler", "JNE Reguler ·")])
def test_a_packing_slip_names_the_courier_once(service: str, shown: str) -> None:
    (text,) = map(flatten, read_texts(draw(build_print(build_parcel(service=service), document="packing_slip"))))
    assert shown in text
    assert "JNE JNE" not in text


@pytest.mark.parametrize("count", [5, pytest.param(500, marks=pytest.mark.long)])
async def test_a_file_made_by_a_process_of_its_own_reads_back_number_by_number(count: int) -> None:
    numbers = [f"JNE{n:010}" for n in range(count)]
    content = await print_apart(build_print(*map(build_parcel, numbers)))
    assert read_barcodes(content) == numbers


def test_money_is_written_as_in_indonesia() -> None:
    assert show_money(Decimal("1250000.5"), "IDR") == "Rp 1.250.000,5"
    assert show_money(Decimal(150000), "USD") == "USD 150.000"
