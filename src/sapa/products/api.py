"""How products are reached."""

from typing import Annotated, Any, Literal

from msgspec import Meta

from sapa.access.types import Scope
from sapa.db.listing import CELLS, contains
from sapa.http.endpoints import Base, Call, Routes
from sapa.http.errors import Invalid, NotFound
from sapa.http.query_string import PageQuery, SearchText
from sapa.http.responses import Page, build_page
from sapa.products import actions, queries
from sapa.products.types import MAX_STOCK, Product, ProductExists, ProductId, ProductIn, ProductPatch, Status
from sapa.values.enum_names import EnumName
from sapa.values.text_folding import fold

routes = Routes(
    "/products",
    base=Base.CUSTOMER,
    tag="Products",
    about="The catalogue: products with their variants, prices and stock.",
)


ProductSort = Annotated[
    Literal[
        "createdAt:desc", "createdAt:asc", "name:asc", "name:desc", "price:asc", "price:desc", "stock:asc", "stock:desc"
    ],
    EnumName("ProductSort"),
]


class ProductsQuery(PageQuery, frozen=True, kw_only=True):
    """Which products to list."""

    search: Annotated[SearchText, Meta(description="A part of the name, the productId or a SKU.")] | None = None
    status: Status | None = None
    tags: (
        Annotated[list[str], Meta(description="Comma-separated. Only products that have all of these tags.")] | None
    ) = None
    stock_at_most: (
        Annotated[
            int,
            Meta(
                ge=0,
                le=MAX_STOCK,
                examples=[5],
                description="Only products with a variant of which at most this many units are in stock.",
            ),
        ]
        | None
    ) = None
    sort: Annotated[ProductSort, Meta(description="A field and a direction.")] = "createdAt:desc"


@routes.get("", scope=Scope.PRODUCTS_READ)
async def list_products(call: Call, query: ProductsQuery) -> Page[Product]:
    """List products.

    Newest first, unless you set `sort`. `search` matches part of the name, the productId or a variant's SKU, ignoring
    case and accents. `tags` is comma-separated; a product must have all of them. `price` sorts by the lowest price of a
    product's variants, `stock` by the units of all of them; a product without tracked stock counts as unlimited.
    """
    products, total = await queries.list_products(
        call.db, call.company.id, _filters(query), query.sort, query.limit, query.offset
    )
    return build_page(products, query.page, query.limit, total)


@routes.post("", scope=Scope.PRODUCTS_WRITE, raises=[ProductExists])
async def create_product(call: Call, body: ProductIn) -> Product:
    """Create a product.

    A product has at least one variant, priced in the company's currency. A variant's `sku` is returned as
    `inventorySku`. A variant's key defaults to its title, and `productId` defaults to the product's id.
    """
    return await actions.create(call.db, call.company, body)


@routes.get("/{id}", scope=Scope.PRODUCTS_READ, raises=[NotFound])
async def get_product(call: Call, id: ProductId) -> Product:
    """Get one product."""
    return await queries.get_product(call.db, call.company.id, id)


@routes.put("/{id}", scope=Scope.PRODUCTS_WRITE, raises=[NotFound])
async def update_product(call: Call, id: ProductId, body: ProductPatch) -> Product:
    """Update a product.

    A field that you leave out keeps its value; null clears it. Lists are replaced as a whole: a variant that you leave
    out is removed. A variant that matches an existing one, by id, SKU or key in that order, keeps its id and the fields
    that you leave out, such as its stock.
    """
    return await actions.update(call.db, call.company, id, body)


@routes.delete("/{id}", scope=Scope.PRODUCTS_DELETE, raises=[NotFound])
async def delete_product(call: Call, id: ProductId) -> None:
    """Delete a product.

    Existing orders keep their copy of it.
    """
    await actions.delete(call.db, call.company, id)


def _filters(query: ProductsQuery) -> dict[str, Any]:
    filters = {
        "search": query.search and _pattern(query.search),
        "tags": query.tags,
        CELLS: query.status and [query.status],
        "stock_at_most": query.stock_at_most,
    }
    return {name: value for name, value in filters.items() if value is not None}


def _pattern(search: str) -> str:
    text = fold(search)
    if not text:
        raise Invalid.field("search", "must not be blank")
    return contains(text)
