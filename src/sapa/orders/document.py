"""What is given of an order, checked and brought into the one form that is stored. Pure: no database."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal

import msgspec
from msgspec import UNSET, Raw, Struct

from sapa.customers.types import ADDRESS_ID, CustomerRef
from sapa.http.errors import Invalid
from sapa.orders.transitions import OrderState, move
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
    """An order that could be placed: only its customer and its number are missing."""

    order_id: str | None
    total: Decimal
    currency: str
    notes: str | None
    line_items: list[LineItem]
    shipping_address: bytes | None
    tags: list[str]


class Revision(Struct, frozen=True):
    """What may change of an order after it was placed."""

    standing: OrderState
    notes: str | None
    shipping_address: bytes | None
    tags: list[str]


def build_draft(company: Company, given: OrderIn, variants: Mapping[str, VariantOnSale]) -> OrderDraft:
    """The order with its lines and total; raises Invalid naming the field that cannot be used."""
    if given.customer is not None and given.customer_id is not None:
        raise Invalid.field("customer", "is given besides customerId; send one of them")
    currency = _currency(company, given.currency)
    lines = [_line(place, line, company, currency, variants) for place, line in enumerate(given.line_items)]
    return OrderDraft(
        order_id=_own_id(given.order_id),
        total=_total(lines, currency, given.total),
        currency=currency,
        notes=given.notes,
        line_items=lines,
        shipping_address=build_address(given.shipping_address, None),
        tags=build_tags(given.tags),
    )


def build_customer_text(customer: CustomerRef | None) -> str:
    """The text that a search by customer name matches."""
    return "" if customer is None else fold(f"{customer.first_name or ''} {customer.last_name or ''}")


def with_sold(draft: OrderDraft, sold: Sequence[LineItemVariant | None]) -> OrderDraft:
    """The draft with the variants that an order of the past remembers, line by line."""
    if not sold:
        return draft
    lines = [
        line if variant is None else msgspec.structs.replace(line, product_variant=variant)
        for line, variant in zip(draft.line_items, sold, strict=True)
    ]
    return msgspec.structs.replace(draft, line_items=lines)


def revision_of(kept: StoredOrder) -> Revision:
    """The order as it stands now."""
    standing = OrderState(
        kept.status, kept.fulfillment_status, kept.financial_status, kept.archived_from, kept.restocked
    )
    address = None if kept.shipping_address is None else bytes(kept.shipping_address)
    return Revision(standing, kept.notes, address, kept.tags)


def build_revision(kept: StoredOrder, patch: OrderPatch) -> Revision:
    """The order with the changes made; raises Invalid or InvalidTransition when one of them cannot be."""
    now = revision_of(kept)
    address, tags = patch.shipping_address, patch.tags
    return Revision(
        standing=move(now.standing, patch),
        notes=now.notes if patch.notes is UNSET else patch.notes,
        shipping_address=now.shipping_address if address is UNSET else build_address(address, kept.shipping_address),
        tags=now.tags if tags is UNSET else build_tags(tags),
    )


def list_variant_ids(given: OrderIn) -> list[str]:
    return list(dict.fromkeys(line.product_variant_id for line in given.line_items if line.product_variant_id))


def count_units(lines: Iterable[LineItem]) -> dict[str, int]:
    """How many of each variant were ordered, over all lines."""
    units: Counter[str] = Counter()
    for line in lines:
        if line.product_variant is not None:
            units[line.product_variant.id] += line.quantity
    return dict(units)


def parse_taken(stored: Raw) -> dict[str, int]:
    return _read_taken(stored)


def build_address(given: ShippingAddressIn | None, stored: Raw | None) -> bytes | None:
    """The address as it is stored; it keeps its id while it stays the same or is named by it."""
    if given is None:
        return None
    known = None if stored is None else _read_address(stored)
    if given.id is not None and (known is None or known.id != given.id):
        raise Invalid.field("shippingAddress.id", "is not the id of this order's address; leave it out for a new one")
    content = {name: getattr(given, name) for name in _ADDRESS_FIELDS}
    is_known = known is not None and (given.id or content == {name: getattr(known, name) for name in _ADDRESS_FIELDS})
    return encode(ShippingAddress(id=known.id if known and is_known else ADDRESS_ID.new(), **content))


def build_tags(given: Sequence[str] | None) -> list[str]:
    """Each tag once, in the order given."""
    tags = [tag.strip() for tag in given or ()]
    for place, tag in enumerate(tags):
        if not tag or "," in tag:
            raise Invalid.field(f"tags[{place}]", "must not be blank or hold a comma, which parts tags in a list")
    return list(dict.fromkeys(tags))


def _own_id(text: str | None) -> str | None:
    if text is not None and text != text.strip():
        raise Invalid.field("orderId", "must not begin or end with a blank")
    return text


def _currency(company: Company, code: str | None) -> str:
    try:
        return company.currency if code is None else parse_currency(code)
    except BadMoney as error:
        raise Invalid.field("currency", str(error)) from None


def _line(
    place: int, given: LineItemIn, company: Company, currency: str, variants: Mapping[str, VariantOnSale]
) -> LineItem:
    if given.product_variant_id is None:
        return _own_line(f"lineItems[{place}]", given, currency)
    if currency != company.currency:
        raise Invalid.field(
            "currency", f"must be {company.currency}, in which the variant of lineItems[{place}] is priced"
        )
    return _variant_line(f"lineItems[{place}]", given, variants.get(given.product_variant_id))


def _own_line(field: str, given: LineItemIn, currency: str) -> LineItem:
    if given.title is None and given.price is None:
        raise Invalid.field(f"{field}.productVariantId", "is required, unless the line has a title and a price")
    if given.title is None or not given.title.strip():
        raise Invalid.field(f"{field}.title", "is required in a line without productVariantId, and not blank")
    if given.price is None:
        raise Invalid.field(f"{field}.price", "is required in a line without productVariantId")
    price = _amount(f"{field}.price", given.price, currency)
    return LineItem(LINE_ITEM_ID.new(), given.quantity, price, given.title, None)


def _variant_line(field: str, given: LineItemIn, variant: VariantOnSale | None) -> LineItem:
    for name in ("title", "price"):
        if getattr(given, name) is not None:
            raise Invalid.field(f"{field}.{name}", "comes from the product variant; leave it out")
    if variant is None or not variant.on_sale:
        state = "is not a product variant" if variant is None else "is a variant of a product that is not active"
        raise Invalid.field(f"{field}.productVariantId", f"{state}; send one that is on sale")
    snapshot = LineItemVariant(
        variant.id, variant.key, variant.price, variant.compare_at_price, variant.inventory_sku, variant.media
    )
    return LineItem(LINE_ITEM_ID.new(), given.quantity, variant.price, variant.product_name, snapshot)


def _total(lines: Iterable[LineItem], currency: str, given: Decimal | None) -> Decimal:
    """Exact: 500 lines of 15 digits times a million stay within the 28 digits that Decimal computes with."""
    try:
        total = parse_amount(sum((line.price * line.quantity for line in lines), Decimal(0)), currency)
    except BadMoney as error:
        raise Invalid.field("lineItems", f"add up to a total that {error}") from None
    if given is not None and given != total:
        raise Invalid.field("total", f"must be {total}, the sum of price × quantity; or leave it out")
    return total


def _amount(field: str, amount: Decimal, currency: str) -> Decimal:
    try:
        return parse_amount(amount, currency)
    except BadMoney as error:
        raise Invalid.field(field, str(error)) from None
