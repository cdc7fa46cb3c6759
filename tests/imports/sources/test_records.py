from collections.abc import Sequence
from pathlib import Path

import pytest

from sapa.imports.sources.interface import Converted, ConvertedRow
from sapa.imports.sources.records import convert_groups
from sapa.imports.tables.files import TableRecord
from sapa.imports.types import Problem, Resource
from tests.imports.sources import tables
from tests.imports.sources.tables import Cells


def convert(names: Sequence[str | None]) -> list[Converted]:
    """Rows of orders by name; None for a row that cannot be read."""
    rows = [
        Problem(line, "", "has 4 cells, but the header has 2") if name is None else TableRecord(line, {"name": name})
        for line, name in enumerate(names, 2)
    ]
    return list(convert_groups(rows, lambda row: row.get("name"), lambda group: {"lines": len(group)}))


def test_a_row_without_a_name_belongs_to_the_one_above() -> None:
    assert convert(["#1", "", "#1", "#2"]) == [ConvertedRow(2, {"lines": 3}), ConvertedRow(5, {"lines": 1})]


@pytest.mark.parametrize(
    ("names", "converted", "refused"),
    [
        (["#1", None, "#1", "#2"], [5], [2]),
        (["#1", "#2", "#2", None, "#3", "#4"], [2, 7], [3, 6]),
        ([None, "#1", "#2"], [4], [3]),
        (["#1", "#2", None], [2], [3]),
    ],
)
def test_an_order_is_not_imported_without_a_line_that_may_be_its_own(
    names: list[str | None], converted: list[int], refused: list[int]
) -> None:
    found = convert(names)
    unread = names.index(None) + 2
    problems = {one.line: one.message for one in found if isinstance(one, Problem)}
    assert [one.line for one in found if isinstance(one, ConvertedRow)] == converted
    assert sorted(problems) == sorted([unread, *refused])
    assert all(f"line {unread}," in problems[line] for line in refused)


SHOPIFY_CUSTOMER = {"Customer ID": "'7210448301122", "Email": "ayu@example.com", "Accepts Email Marketing": "yes",
                    "Default Address Zip": ""}  # fmt: skip
SHOPIFY_ORDER = {"Name": "#1001", "Lineitem quantity": "1", "Lineitem name": "Kopi", "Lineitem price": "50000.00",
                 "Id": "5550000001234"}  # fmt: skip
WOO_ORDER = {"Order Number": "20260903001", "Order Status": "completed", "First Name (Billing)": "Ayu",
             "Item Name": "Kopi", "Item #": "1", "Quantity": "1", "Item Cost": "50000"}  # fmt: skip
WOO_PRODUCT = {"ID": "7", "Type": "simple", "Name": "Kopi", "Visibility in catalog": "visible",
               "Regular price": "50000", "SKU": "8991234567890"}  # fmt: skip
SHEETS: dict[Resource, Cells] = {
    "customers": {"Kode Pelanggan": "7210448301122", "Email": "ayu@example.com"},
    "orders": {"No Invoice": "7210448301122", "Produk": "Kopi", "Harga": "50000"},
    "products": {"Barcode": "8991234567890", "Produk": "Kopi", "Harga": "50000"},
}


@pytest.mark.parametrize(
    ("source", "resource", "column", "row"),
    [
        ("shopify", "customers", "Customer ID", SHOPIFY_CUSTOMER),
        ("shopify", "orders", "Id", SHOPIFY_ORDER),
        ("woocommerce", "orders", "Order Number", WOO_ORDER),
        ("woocommerce", "products", "SKU", WOO_PRODUCT),
        ("spreadsheet", "customers", "Kode Pelanggan", SHEETS["customers"]),
        ("spreadsheet", "orders", "No Invoice", SHEETS["orders"]),
        ("spreadsheet", "products", "Barcode", SHEETS["products"]),
    ],
)
@pytest.mark.parametrize("damaged", ["7.21045E+12", "7,21045E+12", "9E+12"])
def test_an_id_that_lost_its_digits_is_refused(
    tmp_path: Path, source: str, resource: Resource, column: str, row: Cells, damaged: str
) -> None:
    [record], problems = tables.convert(tmp_path, source, resource, [row])
    assert problems == []
    names = {"customers": "externalId", "orders": "orderId", "products": "productId"}
    assert record[names[resource]] == row[column].removeprefix("'")
    records, [problem] = tables.convert(tmp_path, source, resource, [row | {column: damaged}])
    assert records == []
    assert problem.field == column.casefold()
    assert problem.message.startswith(f"was shortened by a spreadsheet to {damaged}")
