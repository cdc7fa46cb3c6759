"""How products are stored."""

from collections.abc import AsyncIterator, Mapping, Sequence

from msgspec import Struct

from sapa.db.listing import Listing
from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql
from sapa.db.write_columns import WriteColumns
from sapa.http.errors import NotFound
from sapa.products.draft import ProductDraft
from sapa.products.types import MAX_STOCK, Product, VariantOnSale
from sapa.values.json import encode

COUNTER = "products"
WRITTEN = WriteColumns(ProductDraft, "search_text", "least_price", "stock", "least_stock", without=["variants"])

# PostgreSQL prints this JSON exactly as our encoder does: compact, amounts as stored.
VARIANTS = """array_to_json(ARRAY(
        SELECT v FROM (SELECT id, key, title, price, compare_at_price AS "compareAtPrice",
                              inventory_sku AS "inventorySku", media, inventory_quantity AS "inventoryQuantity"
                         FROM variants
                        WHERE company_id = $1 AND product_id = r.id
                        ORDER BY position) AS v))"""


def _columns(variants: str) -> str:
    """The columns of a product from its row `r`, with an expression for its variants."""
    return ", ".join(
        f"{variants} AS variants" if field == "variants" else f"r.{field}" for field in Product.__struct_fields__
    )


COLUMNS = _columns(VARIANTS)
_OWN = [field for field in Product.__struct_fields__ if field != "variants"]

GET = sql(f"SELECT {COLUMNS} FROM products AS r WHERE company_id = $1 AND id = $2", row=Product)

# Locking is a separate statement, so that the read after the wait sees the current row and variants.
LOCK = sql("SELECT id FROM products WHERE company_id = $1 AND id = $2 FOR UPDATE")

LOCK_BY_PRODUCT_ID = sql("SELECT id FROM products WHERE company_id = $1 AND product_id = $2 FOR UPDATE")

VARIANT_ROWS = """
        SELECT $1, input.variant ->> 'id', $2, input.position, input.variant ->> 'key', input.variant ->> 'title',
               (input.variant ->> 'price')::numeric, (input.variant ->> 'compareAtPrice')::numeric,
               input.variant ->> 'inventorySku', input.variant ->> 'media',
               (input.variant ->> 'inventoryQuantity')::integer
          FROM json_array_elements($3::json) WITH ORDINALITY AS input (variant, position)"""

INSERT = sql(
    f"""
    WITH counted AS (
        INSERT INTO counter_deltas (company_id, counter, cell, delta) VALUES ($1, 'products', $4, 1)
    ), inserted AS (
        INSERT INTO products AS r (company_id, id, {WRITTEN.listed})
        VALUES ($1, $2, {WRITTEN.numbered(5)})
        RETURNING {_columns("$3::json")}
    ), filled AS (
        INSERT INTO variants (company_id, id, product_id, position, key, title, price, compare_at_price, inventory_sku,
                              media, inventory_quantity)
        {VARIANT_ROWS}
    )
    TABLE inserted""",
    row=Product,
)

# statement_timestamp(), because the transaction may have waited for the row's lock; updated_at never goes back.
UPDATE = sql(
    f"""
    WITH counted AS (
        INSERT INTO counter_deltas (company_id, counter, cell, delta)
        SELECT $1, 'products', moved.cell, moved.delta
          FROM products AS p
         CROSS JOIN LATERAL (VALUES (p.status, -1), ($4, 1)) AS moved (cell, delta)
         WHERE p.company_id = $1 AND p.id = $2 AND p.status <> $4
    ), emptied AS (
        DELETE FROM variants
         WHERE company_id = $1 AND product_id = $2
           AND id <> ALL(ARRAY(SELECT variant ->> 'id' FROM json_array_elements($3::json) AS input (variant)))
    ), filled AS (
        INSERT INTO variants (company_id, id, product_id, position, key, title, price, compare_at_price, inventory_sku,
                              media, inventory_quantity)
        {VARIANT_ROWS}
            ON CONFLICT (company_id, id) DO UPDATE
           SET position = excluded.position, key = excluded.key, title = excluded.title, price = excluded.price,
               compare_at_price = excluded.compare_at_price, inventory_sku = excluded.inventory_sku,
               media = excluded.media, inventory_quantity = excluded.inventory_quantity
    )
    UPDATE products AS r
       SET {WRITTEN.assigned(5)},
           updated_at = GREATEST(statement_timestamp(), updated_at)
     WHERE company_id = $1 AND id = $2
    RETURNING {_columns("$3::json")}""",
    row=Product,
)

DELETE = sql(
    """
    WITH deleted AS (
        DELETE FROM products WHERE company_id = $1 AND id = $2 RETURNING status
    )
    INSERT INTO counter_deltas (company_id, counter, cell, delta) SELECT $1, 'products', status, -1 FROM deleted"""
)

LIST_ALL = sql(f"SELECT {COLUMNS} FROM products AS r WHERE company_id = $1 ORDER BY created_at, id", row=Product)

LISTING = Listing(
    "products",
    row=Product,
    counter=COUNTER,
    cell="status",
    walked_sorts=("name", "price", "stock"),
    columns={"variants": VARIANTS},
    filters={"search": "search_text LIKE {}", "tags": "tags @> {}", "stock_at_most": "least_stock <= {}"},
    sorts={"createdAt": "created_at", "name": "lower(name)", "price": "least_price", "stock": "stock"},
)


async def get_product(db: Connection, company_id: int, id: str) -> Product:
    return _or_not_found(await GET.find(db, company_id, id))


async def lock_product(tx: Tx, company_id: int, id: str) -> Product:
    await LOCK.value(tx, company_id, id)
    return await get_product(tx, company_id, id)


async def find_locked_by_product_id(tx: Tx, company_id: int, product_id: str) -> Product | None:
    id = await LOCK_BY_PRODUCT_ID.value(tx, company_id, product_id)
    return id and await get_product(tx, company_id, id)


async def insert_product(tx: Tx, company_id: int, id: str, draft: ProductDraft) -> Product:
    return _or_not_found(await INSERT.find(tx, company_id, id, *_values(draft)))


async def update_product(tx: Tx, company_id: int, id: str, draft: ProductDraft) -> Product:
    return _or_not_found(await UPDATE.find(tx, company_id, id, *_values(draft)))


async def delete_product(tx: Tx, company_id: int, id: str) -> None:
    await DELETE.run(tx, company_id, id)


async def list_products(
    db: Connection, company_id: int, filters: Mapping[str, object], sort: str, limit: int, offset: int
) -> tuple[list[Product], int]:
    """One page, and the total number of matches."""
    return await LISTING.page(db, company_id, filters, sort, limit, offset)


async def list_all_products(db: Connection, company_id: int) -> list[Product]:
    return await LIST_ALL.all(db, company_id)


def stream_all_products(tx: Tx, company_id: int) -> AsyncIterator[list[Product]]:
    return LIST_ALL.stream(tx, company_id)


def _or_not_found(product: Product | None) -> Product:
    if product is None:
        raise NotFound
    return product


def _values(draft: ProductDraft) -> list[object]:
    return [encode(draft.variants), draft.status, *WRITTEN.values(draft)]


FIND_ON_SALE = sql(
    """
    SELECT v.id, v.key, v.title, v.price, v.compare_at_price, v.inventory_sku, v.media, p.name AS product_name,
           p.status = 'active' AS on_sale
      FROM variants AS v
      JOIN products AS p ON p.company_id = $1 AND p.id = v.product_id
     WHERE v.company_id = $1 AND v.id = ANY($2)""",
    row=VariantOnSale,
)


# The oldest of several variants with the same SKU.
FIND_BY_SKU = sql(
    """
    SELECT DISTINCT ON (v.inventory_sku) v.id, v.key, v.title, v.price, v.compare_at_price, v.inventory_sku, v.media,
           p.name AS product_name, p.status = 'active' AS on_sale
      FROM variants AS v
      JOIN products AS p ON p.company_id = $1 AND p.id = v.product_id
     WHERE v.company_id = $1 AND v.inventory_sku = ANY($2)
     ORDER BY v.inventory_sku, v.id""",
    row=VariantOnSale,
)


class TrackedVariant(Struct, frozen=True):
    """A variant whose stock is tracked."""

    id: str
    product_id: str
    title: str
    inventory_quantity: int


LOCK_TRACKED_PRODUCTS = sql(
    """
    SELECT array_agg(locked.id)
      FROM (SELECT id
              FROM products
             WHERE company_id = $1 AND id = ANY(ARRAY(
                   SELECT product_id FROM variants
                    WHERE company_id = $1 AND id = ANY($2) AND inventory_quantity IS NOT NULL))
             ORDER BY id
               FOR UPDATE) AS locked"""
)

LIST_TRACKED = sql(
    """
    SELECT id, product_id, title, inventory_quantity
      FROM variants
     WHERE company_id = $1 AND id = ANY($2) AND product_id = ANY($3) AND inventory_quantity IS NOT NULL
     ORDER BY id""",
    row=TrackedVariant,
)

CHANGE_STOCK = sql(
    f"""
    UPDATE variants AS v
       SET inventory_quantity = LEAST(v.inventory_quantity + change.quantity, {MAX_STOCK})
      FROM unnest($2::text[], $3::bigint[]) AS change (id, quantity)
     WHERE v.company_id = $1 AND v.id = change.id"""
)

TOUCH = sql(
    f"""
    WITH touched AS (
        UPDATE products
           SET updated_at = GREATEST(statement_timestamp(), updated_at),
               (stock, least_stock) = (
               SELECT sum(inventory_quantity), min(inventory_quantity)
                 FROM variants
                WHERE company_id = $1 AND product_id = products.id)
         WHERE company_id = $1 AND id = ANY($2)
        RETURNING company_id, {", ".join(_OWN)}
    )
    SELECT {COLUMNS} FROM touched AS r WHERE company_id = $1""",
    row=Product,
)


async def list_on_sale(db: Connection, company_id: int, ids: Sequence[str]) -> list[VariantOnSale]:
    return await FIND_ON_SALE.all(db, company_id, ids)


async def list_by_sku(db: Connection, company_id: int, skus: Sequence[str]) -> list[VariantOnSale]:
    return await FIND_BY_SKU.all(db, company_id, skus)


async def lock_tracked(tx: Tx, company_id: int, ids: Sequence[str]) -> list[TrackedVariant]:
    """The variants whose stock is tracked, with their products locked."""
    locked = await LOCK_TRACKED_PRODUCTS.value(tx, company_id, ids)
    return await LIST_TRACKED.all(tx, company_id, ids, locked) if locked else []


async def change_stock(tx: Tx, company_id: int, ids: Sequence[str], changes: Sequence[int]) -> None:
    await CHANGE_STOCK.run(tx, company_id, ids, changes)


async def touch_products(tx: Tx, company_id: int, ids: Sequence[str]) -> list[Product]:
    """Sets updated_at, and the stock as its variants have it now."""
    return sorted(await TOUCH.all(tx, company_id, ids), key=lambda product: product.id)
