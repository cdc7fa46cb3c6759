"""What a change of an order changed, field by field. Pure: no database."""

from collections.abc import Iterator
from typing import Any

from msgspec import Raw

from sapa.http.endpoints import camel
from sapa.orders.history.types import FieldChange
from sapa.orders.pricing.types import LineItem
from sapa.orders.revision import Revision

PRICES = ("discounts", "shipping_lines", "fees", "tax_lines")
TOTALS = ("subtotal", "discount_total", "shipping_total", "fee_total", "tax_total", "total")
MONEY = ("total_paid", "total_refunded", "outstanding")
STATUSES = ("status", "fulfillment_status", "financial_status")
LINE = ("quantity", "price", "title", "discount", "total", "discount_allocation", "tax", "charged",
        "fulfilled_quantity", "refunded_quantity")  # fmt: skip

_SHOWN = {name: camel(name) for name in (*STATUSES, "notes", "tags", *PRICES, *TOTALS, *MONEY)}


def build_changes(before: Revision, after: Revision) -> list[FieldChange]:
    """Of the fields that the API shows; payments, refunds and fulfilments are named by the entry's reference."""
    pairs: list[tuple[Any, Any, tuple[str, ...]]] = [
        (before.state, after.state, STATUSES),
        (before, after, ("notes", "tags")),
        (before.priced, after.priced, PRICES + TOTALS),
        (before.balance, after.balance, MONEY),
    ]
    changes = [
        FieldChange(_SHOWN[name], getattr(old, name), getattr(new, name))
        for old, new, names in pairs
        if old is not new
        for name in names
        if getattr(old, name) != getattr(new, name)
    ]
    if before.shipping_address != after.shipping_address:
        changes.append(FieldChange("shippingAddress", _raw(before.shipping_address), _raw(after.shipping_address)))
    if before.priced is after.priced:
        return changes
    return [*changes, *_list_line_changes(before.priced.line_items, after.priced.line_items)]


def _raw(address: bytes | None) -> Raw | None:
    return None if address is None else Raw(address)


def _list_line_changes(before: list[LineItem], after: list[LineItem]) -> Iterator[FieldChange]:
    """Line by line, so that an entry stays small however many lines there are."""
    old = {line.id: line for line in before}
    new = {line.id: line for line in after}
    for id in [*old, *(id for id in new if id not in old)]:
        was, now = old.get(id), new.get(id)
        if was is None or now is None:
            yield FieldChange(f"lineItems[{id}]", was, now)
            continue
        for name in LINE if was != now else ():
            if getattr(was, name) != getattr(now, name):
                yield FieldChange(f"lineItems[{id}].{camel(name)}", getattr(was, name), getattr(now, name))
