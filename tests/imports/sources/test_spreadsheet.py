"""Spreadsheets, by the mapping that their headers propose."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

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
    products, [problem] = convert(tmp_path, "spreadsheet", "products", rows)
    assert [product["productId"] for product in products] == ["kopi-50", "kopi-50", "teh"]
    assert (problem.line, problem.field) == (3, "name")
    assert problem.message == (
        "would replace 'kopi 50%', because both get the id 'kopi-50'; add a column with product ids"
    )


def test_a_village_and_its_district_are_the_second_line_of_an_address(tmp_path: Path) -> None:
    rows: list[Cells] = [
        {"Nama": "Ayu", "Email": "ayu@example.com", "Alamat": "Jl. Merdeka 1", "Kelurahan": "Sukajadi",
         "Kecamatan": "Coblong", "Kota": "Bandung"},
        {"Nama": "Budi", "Email": "budi@example.com", "Alamat": "Jl. Merdeka 2", "Kecamatan": "Coblong"},
    ]  # fmt: skip
    customers, _ = convert(tmp_path, "spreadsheet", "customers", rows)
    assert [one["addresses"][0]["address2"] for one in customers] == ["Sukajadi, Coblong", "Coblong"]
