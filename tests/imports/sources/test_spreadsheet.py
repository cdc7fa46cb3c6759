"""Spreadsheets, by the mapping that their headers propose."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from sapa.imports.types import Resource
from tests.imports.sources.tables import Cells, convert, get_total


def convert_order(folder: Path, header: str, *rows: str, currency: str = "IDR") -> dict[str, Any]:
    names = header.split("|")
    cells = [dict(zip(names, row.split("|"), strict=True)) for row in rows]
    [order], problems = convert(folder, "spreadsheet", "orders", cells, currency)
    assert problems == []
    return order


@pytest.mark.parametrize(
    ("header", "rows", "total"),
    [
        ("Total", ["50000", "50000"], 100_000),
        ("Total", ["100000", "100000"], 100_000),
        ("Total", ["90000", ""], 90_000),
        ("Ongkir|Total", ["9000|50000", "|50000"], 109_000),
        ("Ongkir|Total", ["9000|109000", "9000|109000"], 109_000),
        ("Ongkir", ["9000", "4000"], 113_000),
        ("Ongkir", ["9000", "9000"], 109_000),
        ("Diskon", ["5000", "2500"], 92_500),
        ("Diskon|Total", ["5000|45000", "5000|45000"], 90_000),
        ("Diskon|Total", ["5000|95000", "5000|95000"], 95_000),
        ("Diskon barang|Total", ["5000|45000", "5000|45000"], 90_000),
        ("Biaya Admin|PPN", ["1000|5500", "2000|4500"], 103_000),
    ],
)  # fmt: skip
def test_what_the_rows_of_an_order_add_up_to(tmp_path: Path, header: str, rows: list[str], total: int) -> None:
    first, second = rows
    order = convert_order(
        tmp_path, f"No Invoice|Produk|Harga|Jumlah|{header}", f"INV1|Kopi|50000|1|{first}", f"INV1|Teh|50000|1|{second}"
    )
    assert get_total(order) == total
    is_balanced = header == "Total" and rows == ["90000", ""]
    assert ("Adjustment" in str(order)) == is_balanced


@pytest.mark.parametrize(
    ("header", "row", "unit", "discount"),
    [
        ("Total|Jumlah", "100000|3", "33333.34", "0.02"),
        ("Total|Jumlah|Ongkir|Biaya Admin", "111000|2|10000|1000", "50000", "0"),
        ("Total|Jumlah|Diskon", "90000|2|10000", "50000", "0"),
    ],
)
def test_a_price_follows_from_the_total(tmp_path: Path, header: str, row: str, unit: str, discount: str) -> None:
    order = convert_order(tmp_path, f"No Invoice|Produk|{header}", f"INV1|Kopi|{row}")
    [line] = order["lineItems"]
    assert line["price"] == Decimal(unit)
    assert line.get("discount", {"amount": 0})["amount"] == Decimal(discount)
    assert "Adjustment" not in str(order)
    assert get_total(order) == Decimal(row.partition("|")[0])


def test_three_decimals_are_decimals_in_a_currency_that_has_them(tmp_path: Path) -> None:
    order = convert_order(
        tmp_path, "No Invoice|Produk|Harga", "INV1|Kopi|3.250", "INV1|Teh|12.500", currency="KWD"
    )  # fmt: skip
    assert [line["price"] for line in order["lineItems"]] == [Decimal("3.25"), Decimal("12.5")]


def test_a_number_of_a_workbook_is_never_thousands(tmp_path: Path) -> None:
    rows: list[Cells] = [{"Produk": "Kopi", "Harga": 12.125}, {"Produk": "Teh", "Harga": 3}]
    products, problems = convert(tmp_path, "spreadsheet", "products", rows, "KWD", format="xlsx")
    assert problems == []
    assert [product["variants"][0]["price"] for product in products] == [Decimal("12.125"), 3]


def test_variants_without_a_sku_are_one_product(tmp_path: Path) -> None:
    rows: list[Cells] = [
        {"Produk": "Kaos", "Ukuran": "M", "Harga": "50000"},
        {"Produk": "Kaos", "Ukuran": "L", "Harga": "55000"},
        {"Produk": "", "Ukuran": "XL", "Harga": "60000"},
        {"Produk": "Topi", "Ukuran": "", "Harga": "30000"},
        {"Produk": "Sarung", "Ukuran": "", "Harga": "40000"},
    ]
    products, problems = convert(tmp_path, "spreadsheet", "products", rows)
    assert problems == []
    assert [(one["productId"], [v["title"] for v in one["variants"]]) for one in products] == [
        ("kaos", ["M", "L", "XL"]),
        ("topi", ["Topi"]),
        ("sarung", ["Sarung"]),
    ]


def test_a_name_in_another_script_is_an_id(tmp_path: Path) -> None:
    rows: list[Cells] = [{"Produk": "コーヒー", "Harga": "50000"}, {"Produk": "Кофе", "Harga": "40000"}]
    products, problems = convert(tmp_path, "spreadsheet", "products", rows)
    assert problems == []
    assert [product["productId"] for product in products] == ["コーヒー", "кофе"]


def test_a_product_whose_name_makes_the_id_of_another_is_refused(tmp_path: Path) -> None:
    names = ["Kopi 50%", "Kopi 50", "KOPI  50%", "Teh"]
    rows: list[Cells] = [{"Produk": name, "Harga": "50000"} for name in names]
    products, problems = convert(tmp_path, "spreadsheet", "products", rows)
    assert [product["productId"] for product in products] == ["kopi-50", "teh"]
    message = "would replace 'kopi 50%', because both get the id 'kopi-50'; add a column with product ids"
    assert [(problem.line, problem.field, problem.message) for problem in problems] == [
        (3, "name", message), (4, "name", message),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("resource", "header", "rows"),
    [
        ("orders", "No Invoice|Produk|Harga", ["INV1|Kopi|50000", "INV2|Teh|40000", "INV1|Gula|9000"]),
        ("products", "ID Produk|Produk|Harga", ["P1|Kaos M|50000", "P2|Topi|40000", "P1|Kaos L|55000"]),
        ("products", "Produk|Ukuran|Harga", ["Kaos|M|50000", "Topi|S|40000", "Kaos|L|55000"]),
    ],
)
def test_rows_of_one_record_in_several_places_are_refused(
    tmp_path: Path, resource: Resource, header: str, rows: list[str]
) -> None:
    """As records of their own, the later ones would be lost, or would replace the earlier ones."""
    cells: list[Cells] = [dict(zip(header.split("|"), row.split("|"), strict=True)) for row in rows]
    records, problems = convert(tmp_path, "spreadsheet", resource, cells)
    assert len(records) == 1
    message = "has rows in several places, from lines 2 and 4 on; put them below each other"
    assert [(problem.line, problem.message) for problem in problems] == [(2, message), (4, message)]


def test_a_dash_is_an_empty_cell(tmp_path: Path) -> None:
    rows: list[Cells] = [
        {"Nama": "Ayu", "No HP": "-", "Email": "ayu@example.com", "Alamat": "–", "Kota": "Bandung"},
        {"Nama": "Budi", "No HP": '="08123456789"', "Email": "-", "Alamat": "Jl. Merdeka 2", "Kota": "—"},
    ]
    customers, problems = convert(tmp_path, "spreadsheet", "customers", rows)
    assert problems == []
    assert ("phoneNumber" in customers[0], customers[1]["phoneNumber"], "email" in customers[1]) == (
        False, "+628123456789", False,
    )  # fmt: skip
    order = convert_order(tmp_path, "No Invoice|Produk|Harga|Ongkir|Diskon", "INV1|Kopi|50000| Rp-   |-")
    assert get_total(order) == 50_000


def test_a_computed_number_of_a_workbook_is_the_one_that_is_shown(tmp_path: Path) -> None:
    rows: list[Cells] = [{"Produk": "Kopi", "Harga": 11099.999999999998}, {"Produk": "Teh", "Harga": 0.1 + 0.2}]
    products, problems = convert(tmp_path, "spreadsheet", "products", rows, format="xlsx")
    assert problems == []
    assert [product["variants"][0]["price"] for product in products] == [11_100, Decimal("0.3")]


def test_a_village_and_its_district_are_the_second_line_of_an_address(tmp_path: Path) -> None:
    rows: list[Cells] = [
        {"Nama": "Ayu", "Email": "ayu@example.com", "Alamat": "Jl. Merdeka 1", "Kelurahan": "Sukajadi",
         "Kecamatan": "Coblong", "Kota": "Bandung"},
        {"Nama": "Budi", "Email": "budi@example.com", "Alamat": "Jl. Merdeka 2", "Kecamatan": "Coblong"},
    ]  # fmt: skip
    customers, _ = convert(tmp_path, "spreadsheet", "customers", rows)
    assert [one["addresses"][0]["address2"] for one in customers] == ["Sukajadi, Coblong", "Coblong"]
