"""Orders of the plugin Advanced Order Export, and WooCommerce's own products."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.imports.sources.tables import Cells, convert, get_total

ORDER: Cells = {
    "Order Number": "7", "Order Status": "completed", "Order Date": "2026-01-02 10:00", "First Name (Billing)": "Ayu",
    "Cart Discount Amount": "0.00", "Order Subtotal Amount": "300000.00", "Order Shipping Amount": "0.00",
    "Order Refund Amount": "0.00", "Order Total Amount": "300000.00", "Item #": "1", "Item Name": "Kopi",
    "Quantity (- Refund)": "3", "Item Cost": "100000.00", "Coupon Code": "", "Discount Amount": "",
}  # fmt: skip


def convert_order(folder: Path, *changes: Cells) -> dict[str, Any]:
    [order], problems = convert(folder, "woocommerce", "orders", [ORDER | change for change in changes])
    assert problems == []
    return order


def list_lines(order: dict[str, Any]) -> list[tuple[str, int, Any]]:
    return [(line["title"], line["quantity"], line["price"]) for line in order["lineItems"]]


@pytest.mark.parametrize("left", [0, 1, 2])
def test_refunded_units_were_ordered(tmp_path: Path, left: int) -> None:
    refunded = (3 - left) * 100_000
    order = convert_order(tmp_path, {"Quantity (- Refund)": str(left), "Order Refund Amount": f"{refunded}.00"})
    assert list_lines(order) == [("Kopi", 3, 100_000)]
    assert "fees" not in order
    assert (get_total(order), order["refunds"]) == (300_000, [{"amount": refunded}])


def test_the_dates_of_a_file_decide_the_order_of_day_and_month(tmp_path: Path) -> None:
    dates = ["10/05/2026 10:00", "10/25/2026 10:00"]
    rows: list[Cells] = [ORDER | {"Order Number": str(n), "Order Date": date} for n, date in enumerate(dates, 1)]
    orders, problems = convert(tmp_path, "woocommerce", "orders", rows)
    assert problems == []
    assert [order["createdAt"][:10] for order in orders] == ["2026-10-05", "2026-10-25"]


def test_the_ordered_quantity_is_preferred(tmp_path: Path) -> None:
    [order], _ = convert(tmp_path, "woocommerce", "orders", [
        ORDER | {"Quantity (- Refund)": "0", "Quantity": "3", "Order Subtotal Amount": ""},
    ])  # fmt: skip
    assert list_lines(order) == [("Kopi", 3, 100_000)]


def test_refunded_units_of_one_of_several_lines_are_found_by_its_cost(tmp_path: Path) -> None:
    order = {"Order Subtotal Amount": "370000.00", "Order Total Amount": "370000.00"}
    refunded = order | {"Order Refund Amount": "170000.00"}
    found = convert_order(
        tmp_path,
        refunded | {"Quantity (- Refund)": "2"},
        refunded | {"Item #": "2", "Item Name": "Teh", "Item Cost": "70000.00", "Quantity (- Refund)": "0"},
    )
    assert get_total(found) == 370_000
    assert list_lines(found) == [("Kopi", 3, 100_000), ("Teh", 1, 70_000)]


def test_units_that_cannot_be_told_are_balanced(tmp_path: Path) -> None:
    refunded = {"Order Status": "refunded", "Quantity (- Refund)": "0", "Order Refund Amount": "410000.00",
                "Order Subtotal Amount": "410000.00", "Order Total Amount": "410000.00"}  # fmt: skip
    order = convert_order(
        tmp_path, refunded, refunded | {"Item #": "2", "Item Name": "Teh", "Item Cost": "70000.00"}
    )  # fmt: skip
    assert [(title, quantity) for title, quantity, _ in list_lines(order)] == [("Kopi", 1), ("Teh", 1)]
    assert (get_total(order), order["refunds"]) == (410_000, [{"amount": 410_000}])


@pytest.mark.parametrize(
    ("quantity", "cost", "discount", "subtotal", "before"),
    [(1, "90000.00", 10_000, 100_000, 100_000), (3, "29700.00", 9_900, 99_000, 33_000), (2, "0.00", 80, 80, 40)],
)
def test_an_items_cost_is_after_coupons(
    tmp_path: Path, quantity: int, cost: str, discount: int, subtotal: int, before: int
) -> None:
    order = convert_order(
        tmp_path,
        {
            "Quantity (- Refund)": str(quantity), "Item Cost": cost, "Cart Discount Amount": f"{discount}.00",
            "Order Subtotal Amount": f"{subtotal}.00", "Order Total Amount": f"{subtotal - discount}.00",
            "Coupon Code": "HEMAT", "Discount Amount": f"{discount}.00",
        },
    )  # fmt: skip
    assert list_lines(order) == [("Kopi", quantity, before)]
    assert order["discounts"] == [{"code": "HEMAT", "amount": discount}]
    assert "fees" not in order
    assert get_total(order) == subtotal - discount


def test_a_cost_before_coupons_is_kept(tmp_path: Path) -> None:
    order = convert_order(tmp_path, {"Cart Discount Amount": "30000.00", "Order Total Amount": "270000.00"})
    assert list_lines(order) == [("Kopi", 3, 100_000)]
    assert order["discounts"] == [{"amount": 30_000}]


def test_a_refunded_unit_of_an_order_with_a_coupon_was_ordered(tmp_path: Path) -> None:
    order = convert_order(
        tmp_path,
        {
            "Quantity (- Refund)": "2", "Item Cost": "90000.00", "Cart Discount Amount": "30000.00",
            "Order Total Amount": "270000.00", "Order Refund Amount": "90000.00",
        },
    )  # fmt: skip
    assert list_lines(order) == [("Kopi", 3, 100_000)]
    assert (get_total(order), order["refunds"]) == (270_000, [{"amount": 90_000}])


def test_a_refund_above_its_order_is_left_out(tmp_path: Path) -> None:
    order = convert_order(
        tmp_path,
        {"Order Status": "refunded", "Quantity (- Refund)": "-1", "Order Total Amount": "-100000.00"},
        {"Order Refund Amount": "100000.00", "Quantity (- Refund)": "2"},
    )
    assert list_lines(order) == [("Kopi", 3, 100_000)]
    assert order["refunds"] == [{"amount": 100_000}]


def test_three_decimals_are_decimals_in_a_currency_that_has_them(tmp_path: Path) -> None:
    row = ORDER | {"Order Subtotal Amount": "9.750", "Order Total Amount": "9.750", "Item Cost": "3.250"}
    row |= dict.fromkeys(("Cart Discount Amount", "Order Shipping Amount", "Order Refund Amount"), "")
    [order], _ = convert(tmp_path, "woocommerce", "orders", [row], currency="KWD")
    assert list_lines(order) == [("Kopi", 3, Decimal("3.25"))]


PRODUCT: Cells = {
    "ID": "5", "Type": "simple", "SKU": "KAOS", "Name": "Kaos", "Published": "1", "Visibility in catalog": "visible",
    "Sale price": "", "Regular price": "50000", "Parent": "", "Stock": "",
}  # fmt: skip


def test_products_that_cannot_be_imported_are_named(tmp_path: Path) -> None:
    rows = [
        PRODUCT,
        PRODUCT | {"ID": "6", "Type": "grouped", "SKU": "SET", "Name": "Set"},
        PRODUCT | {"ID": "7", "Type": "variation", "SKU": "HILANG-M", "Parent": "HILANG"},
        PRODUCT | {"ID": "8", "Type": "variation", "SKU": "HILANG-L", "Parent": "id:99"},
    ]
    products, problems = convert(tmp_path, "woocommerce", "products", rows)
    assert [product["productId"] for product in products] == ["KAOS"]
    assert [(one.line, one.field) for one in problems] == [(3, "type"), (4, "parent"), (5, "parent")]
    assert "'grouped'" in problems[0].message
    assert "'HILANG'" in problems[1].message
