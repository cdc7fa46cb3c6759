from pathlib import Path

import pytest

from tests.imports.sources.tables import Cells, convert


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
