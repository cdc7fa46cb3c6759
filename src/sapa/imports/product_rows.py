"""Imports products."""

from collections.abc import Sequence
from decimal import Decimal
from functools import partial
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from sapa.db.pool import Tx
from sapa.http.bodies import build_decoder, decode_body
from sapa.http.errors import Invalid
from sapa.imports.attempts import Result, StoreContext, attempt
from sapa.imports.rows import FileRow
from sapa.imports.types import Outcome
from sapa.products import actions
from sapa.products.types import OwnId, ProductIn, ProductPatch
from sapa.values.company import Company
from sapa.values.json import encode

_NEW = build_decoder(ProductIn)


class ProductRow(ProductPatch, frozen=True, kw_only=True):
    """A product as the API accepts it, plus the columns of an export."""

    product_id: OwnId | None | UnsetType = UNSET
    id: Any = None
    created_at: Any = None
    updated_at: Any = None


async def store_products(tx: Tx, context: StoreContext, rows: Sequence[FileRow]) -> list[Result]:
    return [await attempt(tx, row.line, partial(_store, tx, context.company, row.value)) for row in rows]


async def _store(tx: Tx, company: Company, row: Any) -> Outcome:
    patch = ProductPatch(**{name: getattr(row, name) for name in ProductPatch.__struct_fields__})
    if not row.product_id:
        await actions.create(tx, company, _build_new(patch))
        return "created"
    try:
        _, outcome = await actions.upsert(tx, company, row.product_id, patch)
    except Invalid as error:
        if not _is_about_id(error):
            raise
        _, outcome = await actions.upsert(tx, company, row.product_id, _without_ids(patch))
    return outcome


def _build_new(patch: ProductPatch) -> ProductIn:
    fields = msgspec.to_builtins(patch, builtin_types=(Decimal,))
    for variant in fields.get("variants", []):
        del variant["id"]
    product: ProductIn = decode_body(encode(fields), _NEW)
    return product


def _is_about_id(error: Invalid) -> bool:
    """Variants and options of another company's export have ids that do not exist here."""
    return any(detail.field.endswith("].id") for detail in error.details or [])


def _without_ids(patch: ProductPatch) -> ProductPatch:
    lists: dict[str, Any] = {
        name: [msgspec.structs.replace(part, id=None) for part in parts]
        for name in ("variants", "options")
        if (parts := getattr(patch, name))
    }
    return msgspec.structs.replace(patch, **lists)
