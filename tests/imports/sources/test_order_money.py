"""The money of foreign orders: whatever a file says, the order costs what the file says."""

from decimal import Decimal

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from sapa.imports.sources.order_money import ForeignLine, OrderMoney, build_money
from sapa.orders.document import build_new_order
from sapa.orders.types import OrderIn
from sapa.values.company import Company

SHOP = Company(1, "live", "ID", "IDR")
AMOUNTS = st.sampled_from(["0", "0.01", "1", "9.99", "150", "163056"]).map(Decimal)
LINES = st.lists(st.builds(ForeignLine, st.just("Kopi"), st.integers(1, 3), AMOUNTS, AMOUNTS), min_size=1, max_size=3)
PARTS = st.lists(AMOUNTS.map(lambda amount: {"title": "x", "amount": amount}), max_size=2)
FILES = st.builds(
    OrderMoney,
    lines=LINES,
    discounts=PARTS,
    shipping=AMOUNTS,
    shipping_discount=st.none() | AMOUNTS.map(lambda amount: {"title": "x", "amount": amount}),
    fees=PARTS,
    tax=AMOUNTS,
    total=st.none() | AMOUNTS,
)


def price(fields: dict[str, object]) -> Decimal:
    """What our own arithmetic makes of the fields."""
    return build_new_order(SHOP, msgspec.convert(fields, OrderIn), {}).priced.total


@given(FILES)
def test_an_order_costs_what_the_file_says(money: OrderMoney) -> None:
    fields, total = build_money(money)
    assert price(fields) == total
    assert money.total in {None, total}


def test_tax_is_added_if_only_that_explains_the_total() -> None:
    line = ForeignLine("Kopi", 1, Decimal(163056))
    money = OrderMoney(lines=[line], shipping=Decimal(1), tax=Decimal(30981), total=Decimal(194038))
    fields, _ = build_money(money)
    assert fields["taxLines"] == [{"title": "Tax", "amount": 30981, "included": False}]
    fields, _ = build_money(msgspec.structs.replace(money, total=Decimal(163057)))
    assert fields["taxLines"] == [{"title": "Tax", "amount": 30981, "included": True}]


def test_a_voucher_that_pays_everything_pays_the_fees_too() -> None:
    money = OrderMoney(
        lines=[ForeignLine("Kopi", 1, Decimal(100))],
        discounts=[{"title": "Voucher", "amount": Decimal(110)}],
        shipping=Decimal(10),
        fees=[{"title": "Service", "amount": Decimal(5)}],
        total=Decimal(0),
    )
    fields, total = build_money(money)
    assert total == 0
    assert "fees" not in fields
