"""How products change; `stock.py` has what orders do to the stock."""

from collections.abc import AsyncIterator
from typing import Literal

from sapa.db import races
from sapa.db.pool import Connection, Tx
from sapa.events import emit
from sapa.ports import publish
from sapa.products import queries
from sapa.products.draft import build_draft, draft_of, revise_draft
from sapa.products.types import (
    PRODUCT_ID,
    Product,
    ProductCreated,
    ProductDeleted,
    ProductIn,
    ProductMediaChanged,
    ProductPatch,
    ProductUpdated,
)
from sapa.values.company import Company

Outcome = Literal["created", "updated", "unchanged"]


async def create(tx: Tx, company: Company, body: ProductIn) -> Product:
    id = PRODUCT_ID.new()
    return await _create(tx, company, id, body.product_id or id, body)


async def update(tx: Tx, company: Company, id: str, patch: ProductPatch) -> Product:
    """Writes and announces nothing when nothing changes."""
    product = await queries.lock_product(tx, company.id, id)
    return await _revise(tx, company, product, patch)


async def upsert(tx: Tx, company: Company, product_id: str, body: ProductPatch) -> tuple[Product, Outcome]:
    """The product with the caller's own id, and what happened to it.

    Of two concurrent first calls one creates the product; the other gets a conflict, looks again, and updates it.
    """
    product, is_new = await races.find_or_create(
        tx,
        lambda: queries.find_locked_by_product_id(tx, company.id, product_id),
        lambda: _create(tx, company, PRODUCT_ID.new(), product_id, body),
    )
    if is_new:
        return product, "created"
    revised = await _revise(tx, company, product, body)
    return revised, "unchanged" if revised is product else "updated"


async def delete(tx: Tx, company: Company, id: str) -> None:
    product = await queries.lock_product(tx, company.id, id)
    await queries.delete_product(tx, company.id, id)
    await _announce_media(tx, company, id, draft_of(product).list_media(), [])
    await emit(tx, company, ProductDeleted(product))


async def list_all(db: Connection, company_id: int) -> list[Product]:
    """All products of the company, the oldest first."""
    return await queries.list_all_products(db, company_id)


def stream_all(tx: Tx, company_id: int) -> AsyncIterator[list[Product]]:
    """Like `list_all`, in batches."""
    return queries.stream_all_products(tx, company_id)


async def _create(tx: Tx, company: Company, id: str, own_id: str, body: ProductIn | ProductPatch) -> Product:
    draft = build_draft(company, own_id, body)
    product = await queries.insert_product(tx, company.id, id, draft)
    await _announce_media(tx, company, id, [], draft.list_media())
    await emit(tx, company, ProductCreated(product))
    return product


async def _revise(tx: Tx, company: Company, product: Product, patch: ProductPatch) -> Product:
    before = draft_of(product)
    draft = revise_draft(company, before, patch)
    if draft == before:
        return product
    product = await queries.update_product(tx, company.id, product.id, draft)
    await _announce_media(tx, company, product.id, before.list_media(), draft.list_media())
    await emit(tx, company, ProductUpdated(product))
    return product


async def _announce_media(tx: Tx, company: Company, id: str, before: list[str], after: list[str]) -> None:
    if before != after:
        await publish(tx, company, ProductMediaChanged(id, before, after))
