"""Stock: what orders take from variants and return to them, in the order's transaction.

Only variants with tracked stock take part. Products are locked in the order of their ids before any variant is read, so
two orders of the same products never deadlock.
"""

from collections.abc import Mapping, Sequence

from sapa.db.pool import Tx
from sapa.events import emit_all
from sapa.products import queries
from sapa.products.queries import TrackedVariant
from sapa.products.types import InsufficientStock, ProductUpdated, VariantOnSale
from sapa.values.company import Company


async def list_on_sale(tx: Tx, company: Company, ids: Sequence[str]) -> dict[str, VariantOnSale]:
    """By id, as an order line stores them; unknown ids are missing."""
    if not ids:
        return {}
    return {variant.id: variant for variant in await queries.list_on_sale(tx, company.id, ids)}


async def take(tx: Tx, company: Company, quantities: Mapping[str, int]) -> dict[str, int]:
    """Lowers the stock of all variants by their quantities, or of none; returns what was taken of tracked variants."""
    if not quantities:
        return {}
    tracked = await queries.lock_tracked(tx, company.id, list(quantities))
    for variant in tracked:
        _require_stock(variant, quantities[variant.id])
    await _change(tx, company, tracked, {id: -quantity for id, quantity in quantities.items()})
    return {variant.id: quantities[variant.id] for variant in tracked}


async def restock(tx: Tx, company: Company, quantities: Mapping[str, int]) -> set[str]:
    """Raises the stock of each variant by its quantity; returns the variants that still have a stock."""
    if not quantities:
        return set()
    tracked = await queries.lock_tracked(tx, company.id, list(quantities))
    await _change(tx, company, tracked, quantities)
    return {variant.id for variant in tracked}


async def exchange(tx: Tx, company: Company, wanted: Mapping[str, int], returned: Mapping[str, int]) -> dict[str, int]:
    """Takes units of some variants and returns units of others, or does nothing; returns what was taken of tracked
    variants."""
    changes = {id: returned.get(id, 0) - wanted.get(id, 0) for id in {**wanted, **returned}}
    tracked = await queries.lock_tracked(tx, company.id, list(changes))
    for variant in tracked:
        _require_stock(variant, wanted.get(variant.id, 0))
    await _change(tx, company, tracked, changes)
    return {variant.id: wanted[variant.id] for variant in tracked if variant.id in wanted}


def _require_stock(variant: TrackedVariant, quantity: int) -> None:
    if variant.inventory_quantity < quantity:
        raise InsufficientStock(
            f"The variant {variant.id} ({variant.title}) has {variant.inventory_quantity} units in stock; "
            f"{quantity} are needed."
        )


async def _change(tx: Tx, company: Company, tracked: Sequence[TrackedVariant], changes: Mapping[str, int]) -> None:
    changed = [variant for variant in tracked if changes[variant.id]]
    if not changed:
        return
    ids = [variant.id for variant in changed]
    await queries.change_stock(tx, company.id, ids, [changes[id] for id in ids])
    products = await queries.touch_products(tx, company.id, sorted({variant.product_id for variant in changed}))
    await emit_all(tx, company, [ProductUpdated(product) for product in products])
