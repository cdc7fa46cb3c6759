"""What a change of an order announces, encoded before the order is stored, so that one statement stores all of it.

The statement fills the gaps, which are what only the database knows: a new order's number, and the instants.
Pure: no database.
"""

from collections.abc import Sequence

import msgspec
from msgspec import Raw, Struct

from sapa.customers.types import CustomerRef
from sapa.events import EVENT_ID
from sapa.orders.document import NewOrder
from sapa.orders.revision import OrderState, Revision
from sapa.orders.timeline_entries import build_entries
from sapa.orders.transitions import NEW
from sapa.orders.types import Order, OrderCreated, OrderUpdated, StoredOrder
from sapa.timeline.actions import encode_entries
from sapa.values.json import encode

_EMPTY = Raw(b"[]")

# A quote inside of a text is escaped, so neither can be a part of what a caller sent.
_NUMBER = b'"orderNumber":"'
_LOG = '"edit_log":"order '
_UPDATED = b'"}'
_CREATED_AND_UPDATED = b'","updatedAt":"' + _UPDATED


class NewOrderAnnouncement(Struct, frozen=True):
    """The event and the timeline entry of a new order, split where the database inserts its number and timestamps."""

    event_id: str | None
    """None if no event is recorded."""
    event_kind: str
    body_start: bytes
    body_end: bytes
    entries_start: str | None
    """None without a customer."""
    entries_end: str | None


class OrderAnnouncement(Struct, frozen=True):
    """The event and the timeline entries of a changed order. The database adds `updatedAt` at the end of the body."""

    event_id: str | None
    event_kind: str
    body_start: bytes
    timeline: bytes | None
    """None if there are no entries."""


def announce_new(order: Order, *, is_silent: bool) -> NewOrderAnnouncement:
    """`order` has no number and no timestamps yet."""
    start, middle, end = encode(order).partition(_NUMBER)
    entries = encode_entries(build_entries(order, None, NEW))
    entries_start, log, entries_end = entries.document.decode().partition(_LOG)
    return NewOrderAnnouncement(
        event_id=None if is_silent else EVENT_ID.new(),
        event_kind=OrderCreated.kind,
        body_start=start + middle,
        body_end=end.removesuffix(_CREATED_AND_UPDATED),
        entries_start=entries_start + log if entries.ids else None,
        entries_end=entries_end if entries.ids else None,
    )


def announce_change(order: Order, before: OrderState, after: OrderState, *, is_silent: bool) -> OrderAnnouncement:
    """`order` has no `updatedAt` yet."""
    entries = encode_entries(build_entries(order, before, after))
    return OrderAnnouncement(
        event_id=None if is_silent else EVENT_ID.new(),
        event_kind=OrderUpdated.kind,
        body_start=encode(order).removesuffix(_UPDATED),
        timeline=entries.document if entries.ids else None,
    )


def build_placed(id: str, new: NewOrder, revision: Revision, customer: CustomerRef | None) -> Order:
    """The order as it will be stored, without number and timestamps. `orderId` is our id unless the caller sent one."""
    state, priced, balance = revision.state, revision.priced, revision.balance
    return Order(
        id=id,
        order_id=new.order_id or id,
        order_number="",
        status=state.status,
        fulfillment_status=state.fulfillment_status,
        financial_status=state.financial_status,
        total=priced.total,
        currency=new.currency,
        notes=revision.notes,
        customer=None if customer is None else Raw(encode(customer)),
        line_items=encode_list(priced.line_items),
        shipping_address=None if revision.shipping_address is None else Raw(revision.shipping_address),
        tags=revision.tags,
        subtotal=priced.subtotal,
        discount_total=priced.discount_total,
        shipping_total=priced.shipping_total,
        fee_total=priced.fee_total,
        tax_total=priced.tax_total,
        total_paid=balance.total_paid,
        total_refunded=balance.total_refunded,
        outstanding=balance.outstanding,
        discounts=encode_list(priced.discounts),
        shipping_lines=encode_list(priced.shipping_lines),
        fees=encode_list(priced.fees),
        tax_lines=encode_list(priced.tax_lines),
        payments=encode_list(balance.payments),
        refunds=encode_list(balance.refunds),
        fulfillments=encode_list(balance.fulfillments),
        created_at="",
        updated_at="",
    )


def build_revised(stored: StoredOrder, before: Revision, after: Revision) -> Order:
    """The order as it will be stored, without `updatedAt`."""
    changes: dict[str, object] = {
        "status": after.state.status,
        "fulfillment_status": after.state.fulfillment_status,
        "financial_status": after.state.financial_status,
        "notes": after.notes,
        "shipping_address": None if after.shipping_address is None else Raw(after.shipping_address),
        "tags": after.tags,
        "updated_at": "",
    }
    for old, new in ((before.priced, after.priced), (before.balance, after.balance)):
        if new is not old:
            changes |= {
                name: encode_list(value) if isinstance(value := getattr(new, name), list) else value
                for name in new.__struct_fields__
                if name in Order.__struct_fields__
            }
    return msgspec.structs.replace(stored.order, **changes)


def encode_list(values: Sequence[object]) -> Raw:
    return Raw(encode(values)) if values else _EMPTY
