"""Parts of an order that every source writes the same way."""

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Literal

from msgspec import Struct

from sapa.imports.cells import BadCell
from sapa.imports.sources.interface import Fields
from sapa.imports.sources.order_money import ZERO, OrderMoney, build_money
from sapa.imports.sources.records import without_empty
from sapa.imports.values.contacts import find_email, find_phone, split_name
from sapa.values.instants import format_instant

LONGEST_LINE = 500
LONGEST_NOTES = 5_000
LONGEST_METHOD = 100


class ForeignState(Struct, frozen=True, kw_only=True):
    """The state of an order in a file, in our words."""

    is_fulfilled: bool = False
    is_cancelled: bool = False
    paid: Decimal | Literal["all"] = ZERO
    refunded: Decimal | Literal["all"] = ZERO
    paid_at: datetime | None = None
    method: str | None = None
    reference: str | None = None


def build_order(order_id: str | None, created_at: datetime | None, money: OrderMoney, state: ForeignState,
                **more: object) -> Fields:  # fmt: skip
    """The order with its money, payments and refunds; `more` are its other fields."""
    if not money.lines:
        raise BadCell("has no line items")
    fields, total = build_money(money)
    paid = min(total, total if state.paid == "all" else state.paid)
    refunded = min(paid, paid if state.refunded == "all" else state.refunded)
    tags = list(more.pop("tags", None) or [])  # type: ignore[call-overload]
    if state.is_cancelled and state.is_fulfilled:
        tags.append("cancelled")  # a fulfilled order cannot be cancelled here; the tag shows that it was
    return without_empty(
        {
            "orderId": order_id,
            "createdAt": created_at and format_instant(created_at),
            **fields,
            **build_state(state, total, paid, refunded),
            "tags": list(dict.fromkeys(tags)),
            **more,
        }
    )


def build_state(state: ForeignState, total: Decimal, paid: Decimal, refunded: Decimal) -> Fields:
    payment = without_empty(
        {
            "amount": paid,
            "method": (state.method or "other")[:LONGEST_METHOD],
            "reference": (state.reference or "")[:255],
            "paidAt": state.paid_at and format_instant(state.paid_at),
        }
    )
    is_free = not total and (state.paid == "all" or state.refunded == "all")
    return {
        "payments": [payment] if paid else [],
        "refunds": [{"amount": refunded}] if refunded else [],
        "financialStatus": "paid" if is_free else None,
        "fulfillmentStatus": "fulfilled" if state.is_fulfilled else None,
        "status": "cancelled" if state.is_cancelled and not state.is_fulfilled else None,
    }


def build_customer(region: str, name: str, email: str, phones: Sequence[str]) -> Fields | None:
    """None without an e-mail address or a phone number that can be used."""
    first, last = split_name(name)
    phone = next((number for text in phones if (number := find_phone(text, region))), None)
    contact = without_empty({"email": find_email(email), "phoneNumber": phone})
    return without_empty({**contact, "firstName": first, "lastName": last}) if contact else None


def build_address(name: str, region: str, phone: str, **lines: str) -> Fields | None:
    """None without a street; without one, the city stands for it."""
    parts = {key: text[:LONGEST_LINE] for key, text in lines.items() if text}
    if not parts.get("address1"):
        rest = parts.get("address2") or parts.get("city")
        if not rest:
            return None
        parts["address1"] = rest
    first, last = split_name(name)
    return without_empty({"firstName": first, "lastName": last, "phone": find_phone(phone, region), **parts})


def join_notes(*notes: str | None) -> str | None:
    return "\n".join(note for note in notes if note)[:LONGEST_NOTES] or None
