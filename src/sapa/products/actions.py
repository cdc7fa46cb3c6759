"""How products change. What orders do to their stock is in `stock.py`."""

from sapa.db import races
from sapa.db.pool import Tx
from sapa.events import emit
from sapa.products import queries
from sapa.products.offer import build_offer, offer_of, revise_offer
from sapa.products.types import (
    PRODUCT_ID,
    Product,
    ProductCreated,
    ProductDeleted,
    ProductIn,
    ProductPatch,
    ProductUpdated,
)
from sapa.values.company import Company

list_all = queries.list_all_products
stream_all = queries.stream_all_products


async def create(tx: Tx, company: Company, given: ProductIn) -> Product:
    id = PRODUCT_ID.new()
    return await _create(tx, company, id, given.product_id or id, given)


async def update(tx: Tx, company: Company, id: str, patch: ProductPatch) -> Product:
    """Nothing is written and nothing announced when nothing changes."""
    product = await queries.lock_product(tx, company.id, id)
    return await _revise(tx, company, product, patch)


async def upsert(tx: Tx, company: Company, product_id: str, given: ProductPatch) -> tuple[Product, bool]:
    """The product with the caller's own id, and whether it was just created.

    Two first calls may race: the one that finds the id taken looks again, and updates what its twin created.
    """
    product, is_new = await races.find_or_create(
        tx,
        lambda: queries.find_locked_by_product_id(tx, company.id, product_id),
        lambda: _create(tx, company, PRODUCT_ID.new(), product_id, given),
    )
    return product if is_new else await _revise(tx, company, product, given), is_new


async def delete(tx: Tx, company: Company, id: str) -> None:
    product = await queries.lock_product(tx, company.id, id)
    await queries.delete_product(tx, company.id, id)
    await emit(tx, company, ProductDeleted(product))


async def _create(tx: Tx, company: Company, id: str, own_id: str, given: ProductIn | ProductPatch) -> Product:
    product = await queries.insert_product(tx, company.id, id, build_offer(company, own_id, given))
    await emit(tx, company, ProductCreated(product))
    return product


async def _revise(tx: Tx, company: Company, product: Product, patch: ProductPatch) -> Product:
    known = offer_of(product)
    offer = revise_offer(company, known, patch)
    if offer == known:
        return product
    product = await queries.update_product(tx, company.id, product.id, offer)
    await emit(tx, company, ProductUpdated(product))
    return product
