"""Matches the variants and options that a caller sends with those of the product. Pure: no database."""

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, TypeVar

from msgspec import UNSET, structs

from sapa.http.endpoints import camel
from sapa.http.errors import Invalid
from sapa.products.types import OPTION_ID, VARIANT_ID, Option, OptionIn, Variant, VariantIn, VariantPatch
from sapa.values.company import Company
from sapa.values.money import BadMoney, parse_amount

Existing = TypeVar("Existing", Variant, Option)
Fields = dict[str, Any]


def build_variants(
    company: Company, variants: Sequence[VariantIn | VariantPatch], existing: Sequence[Variant]
) -> list[Variant]:
    """The new variants; existing ones keep their ids and the fields that are not sent."""
    fields = [_fields(company, index, variant) for index, variant in enumerate(variants)]
    matches = match("variants", fields, existing, [_has_same_sku, _has_same_key])
    return [_variant(index, *pair) for index, pair in enumerate(zip(fields, matches, strict=True))]


def build_options(options: Sequence[OptionIn], existing: Sequence[Option]) -> list[Option]:
    names = [option.name for option in options]
    for index, name in enumerate(names):
        if name in names[:index]:
            raise Invalid.field(f"options[{index}].name", f"repeats {name}; send each option once")
    fields = [structs.asdict(option) for option in options]
    matches = match("options", fields, existing, [lambda one, option: one["name"] == option.name])
    return [
        Option(option.id if option else OPTION_ID.new(), one["name"], list(dict.fromkeys(one["values"])))
        for one, option in zip(fields, matches, strict=True)
    ]


def match(
    field: str, items: list[Fields], existing: Sequence[Existing], ways: Sequence[Callable[[Fields, Existing], bool]]
) -> list[Existing | None]:
    """For each item the existing one that it matches, if any; each existing one is matched once.

    All items are matched by id first, then by the first way, and so on: an exact match wins over a looser match of an
    earlier item.
    """
    unmatched = {one.id: one for one in existing}
    matches = [_match_by_id(field, index, item.get("id"), unmatched) for index, item in enumerate(items)]
    for is_same in ways:
        for index, item in enumerate(items):
            if matches[index] is None:
                matches[index] = _match(item, unmatched, is_same)
    return matches


def _match_by_id(field: str, index: int, id: str | None, unmatched: dict[str, Existing]) -> Existing | None:
    if id is None:
        return None
    if id not in unmatched:
        raise Invalid.field(
            f"{field}[{index}].id", "does not belong to this product, or is used twice; leave it out for a new one"
        )
    return unmatched.pop(id)


def _match(
    item: Fields, unmatched: dict[str, Existing], is_same: Callable[[Fields, Existing], bool]
) -> Existing | None:
    found = next((one for one in unmatched.values() if is_same(item, one)), None)
    return unmatched.pop(found.id) if found else None


def _has_same_sku(fields: Fields, existing: Variant) -> bool:
    return existing.inventory_sku is not None and fields.get("inventory_sku") == existing.inventory_sku


def _has_same_key(fields: Fields, existing: Variant) -> bool:
    return (fields.get("key") or fields.get("title")) == existing.key


def _fields(company: Company, index: int, variant: VariantIn | VariantPatch) -> Fields:
    """The fields of a variant that are set, with checked amounts and one name for the SKU."""
    fields = {name: value for name in variant.__struct_fields__ if (value := getattr(variant, name)) is not UNSET}
    if not fields.get("title", "-").strip():
        raise Invalid.field(f"variants[{index}].title", "must not be blank")
    for name in ("price", "compare_at_price"):
        if fields.get(name) is not None:
            fields[name] = _amount(company, f"variants[{index}].{camel(name)}", fields[name])
    skus = [fields.pop(name) for name in ("sku", "inventory_sku") if name in fields]
    if skus:
        fields["inventory_sku"] = _sku(index, [sku for sku in skus if sku is not None])
    return fields


def _amount(company: Company, field: str, amount: Decimal) -> Decimal:
    try:
        return parse_amount(amount, company.currency)
    except BadMoney as error:
        raise Invalid.field(field, str(error)) from None


def _sku(index: int, skus: list[str]) -> str | None:
    if len(set(skus)) > 1:
        raise Invalid.field(f"variants[{index}].sku", "differs from inventorySku; send one of them")
    return skus[0] if skus else None


def _variant(index: int, fields: Fields, existing: Variant | None) -> Variant:
    for name in ("title", "price"):
        if existing is None and name not in fields:
            raise Invalid.field(f"variants[{index}].{name}", "is required for a new variant")
    empty = {"key": None, "compare_at_price": None, "inventory_sku": None, "media": None, "inventory_quantity": None}
    before = structs.asdict(existing) if existing else {**empty, "id": VARIANT_ID.new()}
    new = {**before, **fields, "id": before["id"]}
    return Variant(**{**new, "key": new["key"] or new["title"]})
