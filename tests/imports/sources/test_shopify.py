from pathlib import Path

import pytest

from tests.imports.sources.tables import Cells, convert, get_total


@pytest.mark.parametrize(
    ("cells", "status"),
    [
        ({"Accepts Marketing": "no"}, "unsubscribe"),
        ({"Accepts Marketing": "yes"}, "subscribe"),
        ({"Accepts Marketing": "yes", "Accepts Email Marketing": "no"}, "unsubscribe"),
    ],
    ids=["no", "yes", "newer"],
)
def test_consent_of_the_oldest_files_is_that_of_mail(tmp_path: Path, cells: Cells, status: str) -> None:
    row = {"First Name": "Ayu", "Email": "ayu@example.com", "Total Spent": "0.00", "Zip": "'40111"} | cells
    [customer], _ = convert(tmp_path, "shopify", "customers", [row])
    assert customer["subscriptionStatus"] == [{"app": "MAIL", "status": status}]


def test_a_description_of_many_lines_does_not_hide_the_separator(tmp_path: Path) -> None:
    body = "\n".join('<p style="color: red; margin: 0;">a;&nbsp;b;</p>' for _ in range(60))
    rows: list[Cells] = [
        {"Handle": f"kaos-{n}", "Title": 'Kaos 14"', "Body (HTML)": body, "Variant Price": "50000.00"} for n in range(2)
    ]
    products, problems = convert(tmp_path, "shopify", "products", rows)
    assert problems == []
    assert [product["description"] for product in products] == [body, body]


@pytest.mark.parametrize(
    ("cells", "shipping", "tax_is_included"),
    [
        ({"Total": "50000.00"}, 0, None),
        ({"Total": "54000.00", "Discount Amount": "6000.00"}, 4_000, None),
        ({"Total": "55500.00", "Taxes": "5500.00"}, 0, False),
        ({"Total": "50000.00", "Taxes": "4954.95"}, 0, True),
        ({"Total": "45000.00", "Subtotal": "45000.00", "Discount Amount": "15000.00"}, 0, None),
        ({"Total": "60000.00"}, 10_000, None),
        ({"Total": "50000.00", "Shipping": "0.00"}, None, None),
    ],
    ids=["free", "part", "tax added", "tax included", "lines too", "of a line", "shipping after it"],
)
def test_a_code_for_free_shipping_discounts_the_shipping(
    tmp_path: Path, cells: Cells, shipping: int | None, tax_is_included: bool | None
) -> None:
    row = {
        "Name": "#1001", "Currency": "IDR", "Subtotal": "50000.00", "Shipping": "10000.00", "Taxes": "0.00",
        "Discount Code": "ONGKIR", "Discount Amount": "10000.00", "Shipping Method": "JNE", "Lineitem quantity": "1",
        "Lineitem name": "Kopi", "Lineitem price": "50000.00",
    }  # fmt: skip
    [order], problems = convert(tmp_path, "shopify", "orders", [row | cells])
    assert problems == []
    assert "Adjustment" not in str(order)
    assert get_total(order) == float(cells["Total"])
    lines = order.get("shippingLines", [])
    assert [line["price"] - line.get("discount", {"amount": 0})["amount"] for line in lines] == (
        [] if shipping is None else [shipping]
    )
    assert {line["discount"]["title"] for line in lines if "discount" in line} <= {"ONGKIR"}
    assert [line["included"] for line in order.get("taxLines", [])] == (
        [] if tax_is_included is None else [tax_is_included]
    )
