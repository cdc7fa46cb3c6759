"""Checks what a caller sends of a product, and normalises it for storage. Pure: no database."""

from decimal import Decimal
from typing import Any

import msgspec
from msgspec import UNSET, Struct

from sapa.http.errors import Invalid
from sapa.products.matching import build_options, build_variants
from sapa.products.types import Option, Product, ProductIn, ProductPatch, Variant
from sapa.values.company import Company
from sapa.values.text_folding import fold

_read_variants = msgspec.json.Decoder(list[Variant]).decode
_read_options = msgspec.json.Decoder(list[Option]).decode


class ProductDraft(Struct, frozen=True, kw_only=True):
    """The fields of a product that a caller sets."""

    product_id: str
    name: str
    variants: list[Variant]
    description: str | None = None
    media: str | None = None
    medias: list[str] = []
    status: str = "active"
    options: list[Option] = []
    tags: list[str] = []
    types: list[str] = []

    @property
    def search_text(self) -> str:
        skus = [variant.inventory_sku for variant in self.variants if variant.inventory_sku is not None]
        return "\n".join(map(fold, [self.name, self.product_id, *skus]))

    @property
    def least_price(self) -> Decimal:
        return min(variant.price for variant in self.variants)

    @property
    def stock(self) -> int | None:
        """Of all variants together; None where no stock is tracked."""
        return sum(quantities) if (quantities := self._list_quantities()) else None

    @property
    def least_stock(self) -> int | None:
        """Of the variant of which least is left."""
        return min(self._list_quantities(), default=None)

    def _list_quantities(self) -> list[int]:
        return [one.inventory_quantity for one in self.variants if one.inventory_quantity is not None]

    def list_media(self) -> list[str]:
        """The addresses of all pictures."""
        found = [self.media, *self.medias, *(variant.media for variant in self.variants)]
        return [url for url in found if url is not None]


def build_draft(company: Company, own_id: str, body: ProductIn | ProductPatch) -> ProductDraft:
    """A new product; raises Invalid with the field that is wrong."""
    fields = _clean(company, body, [], [])
    for name in ("name", "variants"):
        if name not in fields:
            raise Invalid.field(name, "is required for a new product")
    return ProductDraft(**{**fields, "product_id": _own_id(own_id)})


def draft_of(product: Product) -> ProductDraft:
    """The draft of a stored product."""
    fields: dict[str, Any] = {name: getattr(product, name) for name in ProductDraft.__struct_fields__}
    fields |= {"variants": _read_variants(product.variants), "options": _read_options(product.options)}
    return ProductDraft(**fields)


def revise_draft(company: Company, before: ProductDraft, patch: ProductPatch) -> ProductDraft:
    """The draft with the patch applied."""
    return msgspec.structs.replace(before, **_clean(company, patch, before.variants, before.options))


def _clean(
    company: Company, body: ProductIn | ProductPatch, variants: list[Variant], options: list[Option]
) -> dict[str, Any]:
    """The fields that are set, as stored; existing variants and options keep their ids."""
    clean: dict[str, Any] = {
        "name": _name,
        "medias": lambda urls: urls or [],
        "variants": lambda patches: build_variants(company, patches, variants),
        "options": lambda patches: build_options(patches or [], options),
        "tags": _tags,
        "types": lambda words: _words("types", words),
    }
    fields = {name: value for name in body.__struct_fields__ if (value := getattr(body, name)) is not UNSET}
    return {name: clean[name](value) if name in clean else value for name, value in fields.items()}


def _name(text: str) -> str:
    if not text.strip():
        raise Invalid.field("name", "must not be blank")
    return text


def _own_id(text: str) -> str:
    if text != text.strip():
        raise Invalid.field("productId", "must not start or end with whitespace")
    return text


def _tags(tags: list[str] | None) -> list[str]:
    for index, tag in enumerate(tags or []):
        if "," in tag:
            raise Invalid.field(f"tags[{index}]", "must not contain a comma, which separates tags in a search")
    return _words("tags", tags)


def _words(field: str, words: list[str] | None) -> list[str]:
    """Each word once, in the same order."""
    words = [word.strip() for word in words or []]
    if "" in words:
        raise Invalid.field(f"{field}[{words.index('')}]", "must not be blank")
    return list(dict.fromkeys(words))
