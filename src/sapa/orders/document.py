"""Checks what a caller sends of an order, and normalises it for storage. Pure: no database."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal

import msgspec
from msgspec import Raw, Struct

from sapa.customers.types import ADDRESS_ID, CustomerRef
from sapa.http.errors import FieldError, Invalid
from sapa.orders.pricing.adjustments import (
    build_discounts,
    build_fees,
    build_line_discount,
    build_shipping_lines,
    build_tax_lines,
    parse_field,
)
from sapa.orders.pricing.arithmetic import PricedOrder, build_plain_order, price_order
from sapa.orders.pricing.types import LINE_ITEM_ID, LineItem, LineItemVariant
from sapa.orders.types import LineItemIn, OrderIn, ShippingAddress, ShippingAddressIn
from sapa.products.types import VariantOnSale
from sapa.values.company import Company
from sapa.values.json import encode
from sapa.values.money import BadMoney, parse_currency, shorten
from sapa.values.text_folding import fold

_read_address = msgspec.json.Decoder(ShippingAddress).decode

_ADDRESS_FIELDS = [name for name in ShippingAddress.__struct_fields__ if name != "id"]


class NewOrder(Struct, frozen=True):
    """A checked order, without its customer and number."""

    order_id: str | None
    currency: str
    notes: str | None
    priced: PricedOrder
    shipping_address: bytes | None
    tags: list[str]


def build_new_order(company: Company, body: OrderIn, variants: Mapping[str, VariantOnSale]) -> NewOrder:
    """The order with its lines and totals; raises Invalid with the field that is wrong."""
    if body.customer is not None and body.customer_id is not None:
        raise Invalid.field("customer", "cannot be combined with customerId; send one of them")
    currency = build_currency(company, body.currency)
    priced = _price(company, currency, body, variants)
    check_total(priced, body.total)
    return NewOrder(
        order_id=check_own_id(body.order_id),
        currency=currency,
        notes=body.notes,
        priced=priced,
        shipping_address=build_address(body.shipping_address, None),
        tags=build_tags(body.tags),
    )


def check_total(priced: PricedOrder, expected: Decimal | None) -> None:
    """Raises Invalid with all parts of the total when the caller computed another one."""
    if expected is None or expected == priced.total:
        return
    parts = {
        "subtotal": priced.subtotal,
        "discountTotal": priced.discount_total,
        "shippingTotal": priced.shipping_total,
        "feeTotal": priced.fee_total,
        "taxTotal": priced.tax_total,
    }
    sums = (
        f"subtotal {priced.subtotal} − discounts {priced.discount_total} + shipping {priced.shipping_total}"
        f" + fees {priced.fee_total} + taxes that are not included {shorten(priced.added_tax)}"
    )
    message = f"must be {priced.total}: {sums}; correct it or leave it out"
    details = [FieldError("total", message), *(FieldError(name, f"is {amount}") for name, amount in parts.items())]
    raise Invalid(f"total: {message}", details=details)


def build_customer_text(customer: CustomerRef | None) -> str:
    """The text that a search by customer name matches."""
    return "" if customer is None else fold(f"{customer.first_name or ''} {customer.last_name or ''}")


def with_sold(order: NewOrder, sold: Sequence[LineItemVariant | None]) -> NewOrder:
    """The order with the variants that an imported one had sold, line by line."""
    if not any(sold):
        return order
    lines = [
        line if variant is None else msgspec.structs.replace(line, product_variant=variant)
        for line, variant in zip(order.priced.line_items, sold, strict=True)
    ]
    return msgspec.structs.replace(order, priced=msgspec.structs.replace(order.priced, line_items=lines))


def list_variant_ids(lines: Iterable[LineItemIn]) -> list[str]:
    return list(dict.fromkeys(line.product_variant_id for line in lines if line.product_variant_id))


def count_units(lines: Iterable[LineItem]) -> dict[str, int]:
    """The quantity of each variant over all lines."""
    units: Counter[str] = Counter()
    for line in lines:
        if line.product_variant is not None:
            units[line.product_variant.id] += line.quantity
    return dict(units)


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


def build_currency(company: Company, code: str | None) -> str:
    try:
        return company.currency if code is None else parse_currency(code)
    except BadMoney as error:
        raise Invalid.field("currency", str(error)) from None


def build_line(
    index: int, line: LineItemIn, company: Company, currency: str, variants: Mapping[str, VariantOnSale]
) -> LineItem:
    """A new line; raises Invalid with the field that is wrong."""
    field = f"lineItems[{index}]"
    if line.product_variant_id is None:
        return _custom_line(field, line, currency)
    if currency != company.currency:
        raise Invalid.field("currency", f"must be {company.currency}, the currency of the variant in {field}")
    return _variant_line(field, line, variants.get(line.product_variant_id), currency)


def _price(company: Company, currency: str, body: OrderIn, variants: Mapping[str, VariantOnSale]) -> PricedOrder:
    lines = [build_line(index, line, company, currency, variants) for index, line in enumerate(body.line_items)]
    adjustments = (body.discounts, body.shipping_lines, body.fees, body.tax_lines)
    if not any(adjustments) and not any(line.discount for line in lines):
        return build_plain_order(currency, lines)
    return price_order(
        currency,
        lines,
        build_discounts(body.discounts or (), currency),
        build_shipping_lines(body.shipping_lines or (), currency),
        build_fees(body.fees or (), currency),
        build_tax_lines(body.tax_lines or (), currency),
    )


def check_own_id(text: str | None) -> str | None:
    if text is not None and text != text.strip():
        raise Invalid.field("orderId", "must not start or end with whitespace")
    return text


def _custom_line(field: str, line: LineItemIn, currency: str) -> LineItem:
    if line.title is None and line.price is None:
        raise Invalid.field(f"{field}.productVariantId", "is required, unless the line has a title and a price")
    if line.title is None or not line.title.strip():
        raise Invalid.field(f"{field}.title", "is required in a line without productVariantId, and must not be blank")
    if line.price is None:
        raise Invalid.field(f"{field}.price", "is required in a line without productVariantId")
    price = parse_field(f"{field}.price", line.price, currency)
    return _new_line(field, line, currency, price, line.title, None)


def _variant_line(field: str, line: LineItemIn, variant: VariantOnSale | None, currency: str) -> LineItem:
    for name in ("title", "price"):
        if getattr(line, name) is not None:
            raise Invalid.field(f"{field}.{name}", "comes from the product variant; leave it out")
    if variant is None or not variant.on_sale:
        state = "is not a product variant" if variant is None else "belongs to a product that is not active"
        raise Invalid.field(f"{field}.productVariantId", f"{state}; send the id of a variant that is on sale")
    snapshot = LineItemVariant(
        variant.id, variant.key, variant.price, variant.compare_at_price, variant.inventory_sku, variant.media
    )
    return _new_line(field, line, currency, variant.price, variant.product_name, snapshot)


def _new_line(
    field: str, line: LineItemIn, currency: str, price: Decimal, title: str, variant: LineItemVariant | None
) -> LineItem:
    total = shorten(price * line.quantity)
    discount = build_line_discount(f"{field}.discount", line.discount, currency)
    nothing = Decimal(0)
    return LineItem(
        LINE_ITEM_ID.new(), line.quantity, price, title, variant, discount, total, nothing, nothing, total, 0, 0
    )
