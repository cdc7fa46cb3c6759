"""Products: their structs, errors and events."""

from decimal import Decimal
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from sapa.events import Event
from sapa.http.errors import Conflict
from sapa.http.responses import StoredJson, Timestamp
from sapa.ports import Announcement
from sapa.values.api_base import Base
from sapa.values.enum_names import EnumName
from sapa.values.ids import IdKind
from sapa.values.money import Amount
from sapa.values.web_addresses import WEB_ADDRESS

PRODUCT_ID = IdKind("prod_")
VARIANT_ID = IdKind("var_")
OPTION_ID = IdKind("opt_")

ProductId = Annotated[str, PRODUCT_ID]
VariantId = Annotated[str, VARIANT_ID]
OptionId = Annotated[str, OPTION_ID]

MAX_STOCK = 1_000_000_000

Status = Annotated[
    Literal["active", "draft", "archived"],
    EnumName("ProductStatus"),
    Meta(examples=["active"], description="Only the variants of active products can be ordered."),
]
OwnId = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=255,
        examples=["shirt-7"],
        description="Your own id for the product. It must not start or end with whitespace.",
    ),
]
ProductName = Annotated[str, Meta(min_length=1, max_length=255, examples=["Batik shirt"])]
Description = Annotated[str, Meta(max_length=20_000, examples=["Hand-printed in Pekalongan."])]
Url = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=2048,
        pattern=WEB_ADDRESS,
        examples=["https://example.com/shirt.png"],
        description="With https or http.",
    ),
]
Medias = Annotated[list[Url], Meta(max_length=100, examples=[["https://example.com/shirt-back.png"]])]
Tag = Annotated[str, Meta(min_length=1, max_length=100, examples=["new"], description="Without a comma.")]
Tags = Annotated[list[Tag], Meta(max_length=250, examples=[["new"]])]
TypeName = Annotated[str, Meta(min_length=1, max_length=100, examples=["shirt"])]
Types = Annotated[list[TypeName], Meta(max_length=250, examples=[["shirt"]])]

Title = Annotated[str, Meta(min_length=1, max_length=255, examples=["M"])]
Key = Annotated[str, Meta(min_length=1, max_length=255, examples=["m"], description="Defaults to the title.")]
Sku = Annotated[str, Meta(min_length=1, max_length=255, examples=["SHIRT-7-M"])]
SkuTwin = Annotated[str, Meta(min_length=1, max_length=255, examples=["SHIRT-7-M"], description="The same as sku.")]
Price = Annotated[
    Decimal,
    Meta(
        examples=[150000],
        description="In major units of the company's currency, with at most its decimal places.",
        extra_json_schema={"minimum": 0},
    ),
]
Quantity = Annotated[
    int, Meta(ge=0, le=MAX_STOCK, examples=[25], description="Units in stock; null where stock is not tracked.")
]
OptionName = Annotated[str, Meta(min_length=1, max_length=255, examples=["Size"])]
OptionValue = Annotated[str, Meta(min_length=1, max_length=255, examples=["M"])]
OptionValues = Annotated[list[OptionValue], Meta(max_length=250, examples=[["S", "M", "L"]])]


class Variant(Struct, frozen=True, rename="camel"):
    """One form in which a product is sold."""

    id: VariantId
    key: Annotated[str, Meta(examples=["m"])]
    title: Annotated[str, Meta(examples=["M"])]
    price: Amount
    compare_at_price: Annotated[Decimal | None, Meta(examples=[180000])]
    inventory_sku: Annotated[str | None, Meta(examples=["SHIRT-7-M"])]
    media: Annotated[str | None, Meta(examples=["https://example.com/shirt.png"])]
    inventory_quantity: Annotated[
        int | None, Meta(examples=[25], description="Units in stock; null where stock is not tracked.")
    ]


class VariantIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A variant of a new product."""

    title: Title
    price: Price
    key: Key | None = None
    sku: Sku | None = None
    inventory_sku: SkuTwin | None = None
    compare_at_price: Price | None = None
    media: Url | None = None
    inventory_quantity: Quantity | None = None


class VariantPatch(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A variant to keep, change or add.

    An existing variant is matched by id, SKU or key in that order; it keeps its id and the fields that you leave out.
    A new variant needs a title and a price.
    """

    id: Annotated[str | None, Meta(examples=[None], description="The id of an existing variant of the product.")] = None
    title: Title | UnsetType = UNSET
    price: Price | UnsetType = UNSET
    key: Key | None | UnsetType = UNSET
    sku: Sku | None | UnsetType = UNSET
    inventory_sku: SkuTwin | None | UnsetType = UNSET
    compare_at_price: Price | None | UnsetType = UNSET
    media: Url | None | UnsetType = UNSET
    inventory_quantity: Quantity | None | UnsetType = UNSET


class VariantOnSale(Struct, frozen=True):
    """A variant as an order line keeps it, with the name of its product."""

    id: str
    key: str
    title: str
    price: Decimal
    compare_at_price: Decimal | None
    inventory_sku: str | None
    media: str | None
    product_name: str
    on_sale: bool
    """Whether its product is active."""


class Option(Struct, frozen=True, rename="camel"):
    """A property in which a product's variants differ."""

    id: OptionId
    name: Annotated[str, Meta(examples=["Size"])]
    values: Annotated[list[str], Meta(examples=[["S", "M", "L"]])]


class OptionIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A property in which a product's variants differ. An existing option is matched by id or name."""

    name: OptionName
    id: Annotated[str | None, Meta(examples=[None], description="The id of an existing option of the product.")] = None
    values: OptionValues = []


class Product(Struct, frozen=True, rename="camel"):
    """A product of the company's catalogue."""

    id: ProductId
    product_id: Annotated[str, Meta(examples=["shirt-7"])]
    name: Annotated[str, Meta(examples=["Batik shirt"])]
    description: Annotated[str | None, Meta(examples=["Hand-printed in Pekalongan."])]
    media: Annotated[str | None, Meta(examples=["https://example.com/shirt.png"])]
    medias: Annotated[list[str], Meta(examples=[["https://example.com/shirt-back.png"]])]
    status: Status
    variants: Annotated[Raw, StoredJson(list[Variant])]
    options: Annotated[Raw, StoredJson(list[Option])]
    tags: Annotated[list[str], Meta(examples=[["new"]])]
    types: Annotated[list[str], Meta(examples=[["shirt"]])]
    created_at: Timestamp
    updated_at: Timestamp


class ProductIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A new product."""

    name: ProductName
    variants: Annotated[list[VariantIn], Meta(min_length=1, max_length=100)]
    product_id: OwnId | None = None
    description: Description | None = None
    media: Url | None = None
    medias: Medias | None = None
    status: Status = "active"
    options: Annotated[list[OptionIn], Meta(max_length=20)] | None = None
    tags: Tags | None = None
    types: Types | None = None


class ProductPatch(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Changes to a product: a field that you leave out keeps its value, null clears it. Lists are replaced as a
    whole."""

    name: ProductName | UnsetType = UNSET
    variants: Annotated[list[VariantPatch], Meta(min_length=1, max_length=100)] | UnsetType = UNSET
    description: Description | None | UnsetType = UNSET
    media: Url | None | UnsetType = UNSET
    medias: Medias | None | UnsetType = UNSET
    status: Status | UnsetType = UNSET
    options: Annotated[list[OptionIn], Meta(max_length=20)] | None | UnsetType = UNSET
    tags: Tags | None | UnsetType = UNSET
    types: Types | None | UnsetType = UNSET


class ProductExists(Conflict):
    """A product with this productId already exists."""

    code = "PRODUCT_EXISTS"
    constraint = "products_product_id_key"
    fix = "Update the product that has this `productId`, or send another one."


class InsufficientStock(Conflict):
    """There are not enough units in stock."""

    code = "INSUFFICIENT_STOCK"
    fix = "Get the product, and order at most the units it has, or add units to its stock."


class ProductMediaChanged(Announcement, frozen=True):
    """A product names other pictures than before; a deleted one names none."""

    product_id: str
    before: list[str]
    after: list[str]


class ProductCreated(Event):
    """A product was created."""

    kind = "product.created"
    base = Base.CUSTOMER
    resource_type = Product


class ProductUpdated(Event):
    """A product was updated, or the stock of its variants changed."""

    kind = "product.updated"
    base = Base.CUSTOMER
    resource_type = Product


class ProductDeleted(Event):
    """A product was deleted; the body is the product's last state."""

    kind = "product.deleted"
    base = Base.CUSTOMER
    resource_type = Product
