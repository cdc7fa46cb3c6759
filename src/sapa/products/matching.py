"""Which of a product's variants and options a caller means, and what becomes of them. Pure: no database."""

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, TypeVar

from msgspec import UNSET, Struct, structs

from sapa.http.endpoints import camel
from sapa.http.errors import Invalid
from sapa.products.types import OPTION_ID, VARIANT_ID, Option, OptionIn, Variant, VariantIn, VariantPatch
from sapa.values.company import Company
from sapa.values.money import BadMoney, parse_amount

Given = TypeVar("Given", bound=Struct)
Known = TypeVar("Known", Variant, Option)
Fields = dict[str, Any]


def build_variants(
    company: Company, given: Sequence[VariantIn | VariantPatch], known: Sequence[Variant]
) -> list[Variant]:
    """The variants as they will be: those that are known keep their ids, and what is not given of them."""
    fields = [_fields(company, place, variant) for place, variant in enumerate(given)]
    meant = match("variants", fields, known, [_has_same_sku, _has_same_key])
    return [_variant(place, *pair) for place, pair in enumerate(zip(fields, meant, strict=True))]


def build_options(given: Sequence[OptionIn], known: Sequence[Option]) -> list[Option]:
    names = [option.name for option in given]
    for place, name in enumerate(names):
        if name in names[:place]:
            raise Invalid.field(f"options[{place}].name", f"names {name} a second time; give each option once")
    fields = [structs.asdict(option) for option in given]
    meant = match("options", fields, known, [lambda given, option: given["name"] == option.name])
    return [
        Option(option.id if option else OPTION_ID.new(), one["name"], list(dict.fromkeys(one["values"])))
        for one, option in zip(fields, meant, strict=True)
    ]


def match(
    field: str, given: list[Fields], known: Sequence[Known], ways: Sequence[Callable[[Fields, Known], bool]]
) -> list[Known | None]:
    """For each that is given the known one that it means, each known one once.

    All ids are looked at before the first other way is tried, and so on, so that what is named plainly is never
    given away to a vaguer namesake before it.
    """
    left = {one.id: one for one in known}
    meant = [_claim_by_id(field, place, one.get("id"), left) for place, one in enumerate(given)]
    for is_same in ways:
        for place, one in enumerate(given):
            if meant[place] is None:
                meant[place] = _claim(one, left, is_same)
    return meant


def _claim_by_id(field: str, place: int, id: str | None, left: dict[str, Known]) -> Known | None:
    if id is None:
        return None
    if id not in left:
        raise Invalid.field(
            f"{field}[{place}].id", "is not one of this product's, or given twice; leave it out for a new one"
        )
    return left.pop(id)


def _claim(given: Fields, left: dict[str, Known], is_same: Callable[[Fields, Known], bool]) -> Known | None:
    found = next((one for one in left.values() if is_same(given, one)), None)
    return left.pop(found.id) if found else None


def _has_same_sku(given: Fields, known: Variant) -> bool:
    return known.inventory_sku is not None and given.get("inventory_sku") == known.inventory_sku


def _has_same_key(given: Fields, known: Variant) -> bool:
    return (given.get("key") or given.get("title")) == known.key


def _fields(company: Company, place: int, given: VariantIn | VariantPatch) -> Fields:
    """What is given of a variant, its amounts checked and its SKU under its one name."""
    fields = {name: value for name in given.__struct_fields__ if (value := getattr(given, name)) is not UNSET}
    if not fields.get("title", "-").strip():
        raise Invalid.field(f"variants[{place}].title", "must not be blank")
    for name in ("price", "compare_at_price"):
        if fields.get(name) is not None:
            fields[name] = _amount(company, f"variants[{place}].{camel(name)}", fields[name])
    skus = [fields.pop(name) for name in ("sku", "inventory_sku") if name in fields]
    if skus:
        fields["inventory_sku"] = _sku(place, [sku for sku in skus if sku is not None])
    return fields


def _amount(company: Company, field: str, amount: Decimal) -> Decimal:
    try:
        return parse_amount(amount, company.currency)
    except BadMoney as error:
        raise Invalid.field(field, str(error)) from None


def _sku(place: int, given: list[str]) -> str | None:
    if len(set(given)) > 1:
        raise Invalid.field(f"variants[{place}].sku", "is not the same as inventorySku; give one of them")
    return given[0] if given else None


def _variant(place: int, fields: Fields, known: Variant | None) -> Variant:
    for name in ("title", "price"):
        if known is None and name not in fields:
            raise Invalid.field(f"variants[{place}].{name}", "is required for a new variant")
    nothing = {"key": None, "compare_at_price": None, "inventory_sku": None, "media": None, "inventory_quantity": None}
    kept = structs.asdict(known) if known else {**nothing, "id": VARIANT_ID.new()}
    new = {**kept, **fields, "id": kept["id"]}
    return Variant(**{**new, "key": new["key"] or new["title"]})
