"""Carts that customers send become orders, if the company wants that."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from sapa.db.pool import Tx
from sapa.http.errors import ApiError, Invalid
from sapa.messaging.channels.interface import ReceivedItem
from sapa.messaging.channels.received_parts import Cart, CartError, CartItem
from sapa.messaging.contacts.types import Contact
from sapa.orders import actions as orders
from sapa.orders.pricing.types import LineItemVariant
from sapa.orders.types import LineItemIn, OrderIn
from sapa.products import stock
from sapa.products.types import VariantOnSale
from sapa.values.company import Company

MAX_ITEMS = 500
MAX_UNITS = 1_000_000
MAX_TITLE_LENGTH = 255
MAX_ORDER_ID_LENGTH = 255
MAX_NOTES_LENGTH = 5000


async def place_order(tx: Tx, company: Company, contact: Contact, inbound: ReceivedItem, cart: Cart) -> Cart:
    """The cart with its order, or with the reason why there is none: the message is stored in either case.

    It is called in the transaction that stores the message, and only if the message is new, so a cart becomes one
    order. The order's own id is that of the message at the channel.
    """
    order_id = inbound.message_id[:MAX_ORDER_ID_LENGTH]
    if existing := await orders.find_by_order_id(tx, company, order_id):
        return replace(cart, order_id=existing.id)
    try:
        async with tx.transaction():
            variants = await stock.list_by_sku(tx, company, [item.product_id for item in cart.items])
            order = build_order(company, cart, variants, contact.customer_id, order_id)
            placed = await orders.place(tx, company, order, sold=list_sold(cart.items, variants))
    except ApiError as error:
        return replace(cart, error=CartError(error.code, error.message))
    return replace(cart, order_id=placed.id)


def build_order(
    company: Company, cart: Cart, variants: Mapping[str, VariantOnSale], customer_id: str | None, order_id: str
) -> OrderIn:
    """At the prices that the customer saw. Raises Invalid for a cart that cannot be ordered."""
    currencies = {item.currency or company.currency for item in cart.items}
    if not 1 <= len(cart.items) <= MAX_ITEMS:
        raise Invalid(f"An order has 1 to {MAX_ITEMS} lines; the cart has {len(cart.items)}.")
    if len(currencies) > 1:
        raise Invalid(f"An order has one currency; the cart has {', '.join(sorted(currencies))}.")
    return OrderIn(
        line_items=[_build_line(item, variants.get(item.product_id)) for item in cart.items],
        order_id=order_id,
        customer_id=customer_id,
        currency=currencies.pop(),
        notes=cart.text[:MAX_NOTES_LENGTH] if cart.text else None,
    )


def list_sold(items: Sequence[CartItem], variants: Mapping[str, VariantOnSale]) -> Sequence[LineItemVariant | None]:
    """The variants with the SKUs of the items; they are taken from the stock."""
    return [
        LineItemVariant(found.id, found.key, found.price, found.compare_at_price, found.inventory_sku, found.media)
        if (found := variants.get(item.product_id))
        else None
        for item in items
    ]


def _build_line(item: CartItem, variant: VariantOnSale | None) -> LineItemIn:
    if item.quantity is None or item.quantity > MAX_UNITS:
        raise Invalid(f"The quantity of {item.product_id} must be 1 to {MAX_UNITS}.")
    if item.price is None:
        raise Invalid(f"The item {item.product_id} has no price.")
    title = variant.product_name if variant else item.product_id
    return LineItemIn(quantity=item.quantity, title=title[:MAX_TITLE_LENGTH], price=item.price)
