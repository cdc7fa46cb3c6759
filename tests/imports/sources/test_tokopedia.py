"""Orders of Tokopedia and TikTok Shop: no row is left out in silence."""

from pathlib import Path

from tests.imports.sources.tables import Cells, convert

ORDER: Cells = {
    "Order ID": "579100000000000001\t", "Order Status": "Selesai", "Seller SKU": "K", "Product Name": "Kopi",
    "Quantity": "1", "Sku Quantity of return": "0", "SKU Unit Original Price": "50000", "Order Amount": "50000",
    "Created Time": "02/01/2026 10:00:00\t",
}  # fmt: skip


def test_only_the_row_that_describes_the_columns_is_skipped(tmp_path: Path) -> None:
    describing = dict.fromkeys(ORDER, "Platform unique order ID.")
    rows = [
        describing,
        ORDER,
        ORDER | {"Order ID": "'579100000000000002"},
        ORDER | {"Order ID": "5.791E+17"},
        ORDER | {"Order ID": "5.791E+17"},
        ORDER | {"Order ID": "INV/1"},
        ORDER | {"Order ID": ""},
    ]
    orders, problems = convert(tmp_path, "tokopedia", "orders", rows)
    assert [order["orderId"] for order in orders] == ["579100000000000001", "579100000000000002"]
    assert [(one.line, one.field) for one in problems] == [(line, "order id") for line in (5, 6, 7, 8)]
    assert "digits are lost" in problems[0].message


def test_an_id_that_a_spreadsheet_shortened_is_refused_in_the_first_row(tmp_path: Path) -> None:
    _, [problem] = convert(tmp_path, "tokopedia", "orders", [ORDER | {"Order ID": "5.791E+17"}])
    assert (problem.line, problem.field) == (2, "order id")
