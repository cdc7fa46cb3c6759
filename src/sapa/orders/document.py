"""Checks what a caller sends of an order, and normalises it for storage. Pure: no database."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal

import msgspec
from msgspec import UNSET, Raw, Struct

from sapa.customers.types import ADDRESS_ID, CustomerRef
from sapa.http.errors import Invalid
from sapa.orders.transitions import OrderState, apply_patch
from sapa.orders.types import (
    LINE_ITEM_ID,
    LineItem,
    LineItemIn,
    LineItemVariant,
    OrderIn,
    OrderPatch,
    ShippingAddress,
    ShippingAddressIn,
    StoredOrder,
)
from sapa.products.types import VariantOnSale
from sapa.values.company import Company
from sapa.values.json import encode
from sapa.values.money import BadMoney, parse_amount, parse_currency
from sapa.values.text_folding import fold

_read_address = msgspec.json.Decoder(ShippingAddress).decode
_read_taken = msgspec.json.Decoder(dict[str, int]).decode

_ADDRESS_FIELDS = [name for name in ShippingAddress.__struct_fields__ if name != "id"]


class OrderDraft(Struct, frozen=True):
    """A checked order, without its customer and number."""

    order_id: str | None
    total: Decimal
    currency: str
    notes: str | None
    line_items: list[LineItem]
    shipping_address: bytes | None
    tags: list[str]


class Revision(Struct, frozen=True):
    """The parts of an order that can change after it was placed."""

    state: OrderState
    notes: str | None
    shipping_address: bytes | None
    tags: list[str]


def build_draft(company: Company, body: OrderIn, variants: Mapping[str, VariantOnSale]) -> OrderDraft:
    """The order with its lines and total; raises Invalid with the field that is wrong."""
    if body.customer is not None and body.customer_id is not None:
        raise Invalid.field("customer", "cannot be combined with customerId; send one of them")
    currency = _currency(company, body.currency)
    lines = [_line(index, line, company, currency, variants) for index, line in enumerate(body.line_items)]
    return OrderDraft(
        order_id=_own_id(body.order_id),
        total=_total(lines, currency, body.total),
        currency=currency,
        notes=body.notes,
        line_items=lines,
        shipping_address=build_address(body.shipping_address, None),
        tags=build_tags(body.tags),
    )


def build_customer_text(customer: CustomerRef | None) -> str:
    """The text that a search by customer name matches."""
    return "" if customer is None else fold(f"{customer.first_name or ''} {customer.last_name or ''}")


def with_sold(draft: OrderDraft, sold: Sequence[LineItemVariant | None]) -> OrderDraft:
    """The draft with the variants that an imported order had sold, line by line."""
    if not sold:
        return draft
    lines = [
        line if variant is None else msgspec.structs.replace(line, product_variant=variant)
        for line, variant in zip(draft.line_items, sold, strict=True)
    ]
    return msgspec.structs.replace(draft, line_items=lines)


def revision_of(stored: StoredOrder) -> Revision:
    """What the order is now."""
    state = OrderState(
        stored.status, stored.fulfillment_status, stored.financial_status, stored.archived_from, stored.restocked
    )
    address = None if stored.shipping_address is None else bytes(stored.shipping_address)
    return Revision(state, stored.notes, address, stored.tags)


def build_revision(stored: StoredOrder, patch: OrderPatch) -> Revision:
    """The order with the patch applied; raises Invalid or InvalidTransition."""
    before = revision_of(stored)
    address, tags = patch.shipping_address, patch.tags
    return Revision(
        state=apply_patch(before.state, patch),
        notes=before.notes if patch.notes is UNSET else patch.notes,
        shipping_address=before.shipping_address
        if address is UNSET
        else build_address(address, stored.shipping_address),
        tags=before.tags if tags is UNSET else build_tags(tags),
    )


def list_variant_ids(body: OrderIn) -> list[str]:
    return list(dict.fromkeys(line.product_variant_id for line in body.line_items if line.product_variant_id))


def count_units(lines: Iterable[LineItem]) -> dict[str, int]:
    """The quantity of each variant over all lines."""
    units: Counter[str] = Counter()
    for line in lines:
        if line.product_variant is not None:
            units[line.product_variant.id] += line.quantity
    return dict(units)


def parse_taken(stored: Raw) -> dict[str, int]:
    return _read_taken(stored)


def build_address(address: ShippingAddressIn | None, stored: Raw | None) -> bytes | None:
    """The address as stored; it keeps its id if it has the same id or the same content."""
    if address is None:
        return None
    existing = None if stored is None else _read_address(stored)
    if address.id is not None and (existing is None or existing.id != address.id):
        raise Invalid.field(
            "shippingAddress.id", "is not the id of this order's address; leave it out for a new address"
        )
    content = {name: getattr(address, name) for name in _ADDRESS_FIELDS}
    if existing and (address.id or content == {name: getattr(existing, name) for name in _ADDRESS_FIELDS}):
        return encode(ShippingAddress(id=existing.id, **content))
    return encode(ShippingAddress(id=ADDRESS_ID.new(), **content))


def build_tags(tags: Sequence[str] | None) -> list[str]:
    """Each tag once, in the same order."""
    tags = [tag.strip() for tag in tags or ()]
    for index, tag in enumerate(tags):
        if not tag or "," in tag:
            raise Invalid.field(
                f"tags[{index}]", "must not be blank or contain a comma, which separates tags in a list"
            )
    return list(dict.fromkeys(tags))


def _own_id(text: str | None) -> str | None:
    if text is not None and text != text.strip():
        raise Invalid.field("orderId", "must not start or end with whitespace")
    return text


def _currency(company: Company, code: str | None) -> str:
    try:
        return company.currency if code is None else parse_currency(code)
    except BadMoney as error:
        raise Invalid.field("currency", str(error)) from None


def _line(
    index: int, line: LineItemIn, company: Company, currency: str, variants: Mapping[str, VariantOnSale]
) -> LineItem:
    if line.product_variant_id is None:
        return _custom_line(f"lineItems[{index}]", line, currency)
    if currency != company.currency:
        raise Invalid.field(
            "currency", f"must be {company.currency}, the currency of the variant in lineItems[{index}]"
        )
    return _variant_line(f"lineItems[{index}]", line, variants.get(line.product_variant_id))


def _custom_line(field: str, line: LineItemIn, currency: str) -> LineItem:
    if line.title is None and line.price is None:
        raise Invalid.field(f"{field}.productVariantId", "is required, unless the line has a title and a price")
    if line.title is None or not line.title.strip():
        raise Invalid.field(f"{field}.title", "is required in a line without productVariantId, and must not be blank")
    if line.price is None:
        raise Invalid.field(f"{field}.price", "is required in a line without productVariantId")
    price = _amount(f"{field}.price", line.price, currency)
    return LineItem(LINE_ITEM_ID.new(), line.quantity, price, line.title, None)


def _variant_line(field: str, line: LineItemIn, variant: VariantOnSale | None) -> LineItem:
    for name in ("title", "price"):
        if getattr(line, name) is not None:
            raise Invalid.field(f"{field}.{name}", "comes from the product variant; leave it out")
    if variant is None or not variant.on_sale:
        state = "is not a product variant" if variant is None else "belongs to a product that is not active"
        raise Invalid.field(f"{field}.productVariantId", f"{state}; send the id of a variant that is on sale")
    snapshot = LineItemVariant(
        variant.id, variant.key, variant.price, variant.compare_at_price, variant.inventory_sku, variant.media
    )
    return LineItem(LINE_ITEM_ID.new(), line.quantity, variant.price, variant.product_name, snapshot)


def _total(lines: Iterable[LineItem], currency: str, expected: Decimal | None) -> Decimal:
    """Exact: 500 lines of 15 digits times a million stay within the 28 digits that Decimal computes with."""
    try:
        total = parse_amount(sum((line.price * line.quantity for line in lines), Decimal(0)), currency)
    except BadMoney as error:
        raise Invalid.field("lineItems", f"add up to a total that {error}") from None
    if expected is not None and expected != total:
        raise Invalid.field("total", f"must be {total}, the sum of price × quantity; correct it or leave it out")
    return total


def _amount(field: str, amount: Decimal, currency: str) -> Decimal:
    try:
        return parse_amount(amount, currency)
    except BadMoney as error:
        raise Invalid.field(field, str(error)) from None
