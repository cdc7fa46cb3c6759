"""Products created, changed and deleted by form. Options make variants; a variant that stays keeps its id."""

from itertools import product as combine
from math import prod
from typing import Any

from starlette.datastructures import FormData
from starlette.responses import Response

from sapa.console.fields import parse_count, parse_money, show_at, split_labels, split_words
from sapa.console.form_files import list_files, open_stream
from sapa.console.page_request import PageRequest
from sapa.console.roles import DEVELOPERS, EVERYBODY
from sapa.console.routes import console, go_to
from sapa.console.shown_fields import NAME as SHOWN
from sapa.console.shown_fields import build_shown, put_shown
from sapa.console.translations import translate
from sapa.http.errors import Invalid, PayloadTooLarge, UnsupportedMediaType

STATUSES = ("active", "draft", "archived")
VARIANT = ("id", "title", "price", "compareAtPrice", "sku", "stock", "stockBefore")
VARIANT_SHOWN = ("title", "price", "compareAtPrice", "sku")
MAX_VARIANTS = 100
"""Of a product, as in the API."""
OPTION_ROWS = 3
SEPARATOR = " / "

Json = dict[str, Any]


@console.get("/{environment}/products/new", roles=EVERYBODY)
async def show_new_product(page: PageRequest) -> Response:
    return _show_form(page, None)


@console.post(
    "/{environment}/products/new", roles=EVERYBODY, shown_by=show_new_product, has_file=True, says="Product added"
)
async def create_product(page: PageRequest) -> Response:
    await _upload_pictures(page)
    if page.form_value("step"):
        _create_variants(page, [])
        return await show_new_product(page)
    _require_variants(page, [])
    body = _gather_body(page, [], []) | {"productId": page.form_value("productId") or None}
    product = await page.call("POST", "/products", body=body)
    return go_to(page.path(f"/products/{product['data']['id']}"))


@console.get("/{environment}/products/{id}/edit", roles=EVERYBODY)
async def show_product_form(page: PageRequest) -> Response:
    return _show_form(page, await _get_product(page))


@console.post(
    "/{environment}/products/{id}/edit",
    roles=EVERYBODY,
    shown_by=show_product_form,
    has_file=True,
    says="Product updated",
)
async def change_product(page: PageRequest) -> Response:
    product = await _get_product(page)
    await _upload_pictures(page)
    if page.form_value("step"):
        _create_variants(page, product["options"])
        return _show_form(page, product)
    _add_variants_of_others(page, product)
    _require_variants(page, product["options"])
    body = _gather_body(page, product["options"], [one["id"] for one in product["variants"]])
    rows = {one["id"]: f"variants[{number}].price" for number, one in enumerate(_list_variants(page))}
    await put_shown(page, f"/products/{product['id']}", body, _list_shown(page, product), places=rows)
    return go_to(page.path(f"/products/{product['id']}"))


@console.post(
    "/{environment}/products/{id}/delete", roles=DEVELOPERS, shown_by=show_product_form, says="Product deleted"
)
async def delete_product(page: PageRequest) -> Response:
    await page.call("DELETE", f"/products/{page.request.path_params['id']}")
    return go_to(page.back_to("/products"))


async def _get_product(page: PageRequest) -> Json:
    product: Json = (await page.call("GET", f"/products/{page.request.path_params['id']}"))["data"]
    return product


async def _upload_pictures(page: PageRequest) -> None:
    """The chosen files become addresses of pictures, so that a form that is shown again has them."""
    once = page.form_value("once")
    with show_at("files", UnsupportedMediaType, PayloadTooLarge):
        uploaded = [
            await page.call(
                "POST",
                "/product-pictures",
                file=open_stream(page, file),
                once=f"{once}-picture-{number}" if once else None,
            )
            for number, file in enumerate(list_files(page))
        ]
    pictures = [*page.form_value("pictures").split(), *(picture["data"]["pictureUrl"] for picture in uploaded)]
    others = [(name, value) for name, value in page.form.multi_items() if name not in {"files", "pictures"}]
    page.form = FormData([*others, ("pictures", "\n".join(pictures))])


def _show_form(page: PageRequest, product: Json | None) -> Response:
    values, options, variants = _read_typed(page) if page.form else _read_stored(page, product or {})
    empty = dict.fromkeys(VARIANT, "")
    return page.show(
        "product_form.html",
        product=product,
        values=values,
        options=[*options, *[("", "")] * (OPTION_ROWS - len(options))],
        variants=variants if any(values for _, values in options) else [*variants, empty],
        statuses=STATUSES,
        shown=build_shown(page, _list_shown(page, product or {})),
    )


def _read_stored(page: PageRequest, product: Json) -> tuple[Json, list[tuple[str, str]], list[Json]]:
    values = {name: product.get(name) or "" for name in ("name", "description", "productId")}
    values["status"] = product.get("status", "active")
    values["pictures"] = "\n".join(filter(None, [product.get("media"), *product.get("medias", [])]))
    values |= {name: ", ".join(product.get(name, [])) for name in ("tags", "types")}
    options = [(option["name"], ", ".join(option["values"])) for option in product.get("options", [])]
    return values, options, [_spread_variant(page, one) for one in product.get("variants", [])]


def _list_shown(page: PageRequest, product: Json) -> dict[str, str]:
    """What the form shows of a stored product, but for the stock, which orders change."""
    values, options, variants = _read_stored(page, product)
    fields = {name: values[name] for name in ("name", "description", "pictures", "tags", "types")}
    fields["status"] = str(translate(page.language, f"product {values['status']}"))
    fields["options"] = "; ".join(f"{name}: {typed}" for name, typed in options)
    for one in variants:
        fields[one["id"]] = " · ".join(filter(None, (one[name] for name in VARIANT_SHOWN)))
    return fields


def _spread_variant(page: PageRequest, variant: Json) -> Json:
    stock = "" if variant["inventoryQuantity"] is None else str(variant["inventoryQuantity"])
    compared = variant["compareAtPrice"]
    return {
        "id": variant["id"],
        "title": variant["title"],
        "price": page.formats.number(variant["price"]),
        "compareAtPrice": "" if compared is None else page.formats.number(compared),
        "sku": variant["inventorySku"] or "",
        "stock": stock,
        "stockBefore": stock,
    }


def _read_typed(page: PageRequest) -> tuple[Json, list[tuple[str, str]], list[Json]]:
    names = ("name", "description", "productId", "status", "pictures", "tags", "types")
    values = {name: page.form_value(name) for name in names}
    options = [(name, typed) for name, typed in _list_options(page) if name or typed]
    return values, options, _list_variants(page)


def _add_variants_of_others(page: PageRequest, product: Json) -> None:
    """The form gets those that somebody added since it was shown."""
    if not (shown := page.form_value(SHOWN)):
        return
    there = page.form_values("variant.id")
    added = [one for one in product["variants"] if one["id"] not in shown and one["id"] not in there]
    rows = [(f"variant.{name}", text) for one in added for name, text in _spread_variant(page, one).items()]
    page.form = FormData([*page.form.multi_items(), *rows])


def _create_variants(page: PageRequest, stored: list[Json]) -> None:
    """The form gets every combination: those that there are keep what was typed, new ones start with the first one's
    price. Stored variants that are no combination stay, but for the only one of a product without options."""
    if not (lists := _list_values(page, stored)):
        return
    variants = _list_variants(page)
    typed = {one["title"]: one for one in variants}
    empty = dict.fromkeys(VARIANT, "")
    first = next(iter(variants), empty)
    fresh = empty | {name: first[name] for name in ("price", "compareAtPrice")}
    titles = [SEPARATOR.join(values) for values in combine(*lists)]
    rows = [typed.get(title) or fresh | {"title": title} for title in titles]
    if stored or len(variants) > 1:
        rows += [one for one in variants if one["id"] and one["title"] not in titles]
    others = [(name, value) for name, value in page.form.multi_items() if not name.startswith("variant.")]
    page.form = FormData([*others, *((f"variant.{name}", row[name]) for row in rows for name in VARIANT)])


def _require_variants(page: PageRequest, stored: list[Json]) -> None:
    """Every value of options that were changed is in a variant. Some combinations may be missing: they were removed."""
    typed = [option["values"] for option in _read_options(page, stored)]
    if typed == [option["values"] for option in stored if option["values"]]:
        return
    lists = _list_values(page, stored)
    titles = {one["title"] for one in _list_variants(page)}
    combinations = (enumerate(values) for values in combine(*lists) if SEPARATOR.join(values) in titles)
    if len({value for values in combinations for value in values}) < sum(map(len, lists)):
        _create_variants(page, stored)
        raise Invalid.field("variants", "has rows for new combinations; check them and save again")


def _list_values(page: PageRequest, stored: list[Json]) -> list[list[str]]:
    """The values of each option."""
    lists = [option["values"] for option in _read_options(page, stored) if option["values"]]
    if (wanted := prod(map(len, lists))) > MAX_VARIANTS:
        raise Invalid.field("options", f"make {wanted} variants; at most {MAX_VARIANTS} are possible")
    return lists


def _list_options(page: PageRequest) -> list[tuple[str, str]]:
    names, values = page.form_values("optionName"), page.form_values("optionValues")
    return [(name.strip(), typed.strip()) for name, typed in zip(names, values, strict=False)]


def _read_options(page: PageRequest, stored: list[Json]) -> list[Json]:
    """Of one that is as it was stored, the values too: they may have commas."""
    unchanged = {(option["name"], ", ".join(option["values"])): option["values"] for option in stored}
    typed = [(name, text) for name, text in _list_options(page) if name and text]
    return [{"name": name, "values": unchanged.get((name, text)) or split_words(text)} for name, text in typed]


def _list_variants(page: PageRequest) -> list[Json]:
    columns = [page.form_values(f"variant.{name}") for name in VARIANT]
    rows = [
        {name: text.strip() for name, text in zip(VARIANT, row, strict=True)} for row in zip(*columns, strict=False)
    ]
    return [one for one in rows if one["title"] or one["price"]]


def _gather_body(page: PageRequest, stored: list[Json], variant_ids: list[str]) -> Json:
    pictures = page.form_value("pictures").split()
    variants = [_build_variant(page, number, one, variant_ids) for number, one in enumerate(_list_variants(page))]
    if not variants:
        raise Invalid.field("variants[0].price", "is required")
    return {
        "name": page.form_value("name"),
        "description": page.form_value("description") or None,
        "status": page.form_value("status") or "active",
        "media": pictures[0] if pictures else None,
        "medias": pictures[1:],
        "tags": split_labels(page, "tags"),
        "types": split_labels(page, "types"),
        "options": _read_options(page, stored),
        "variants": variants,
    }


def _build_variant(page: PageRequest, number: int, typed: Json, stored: list[str]) -> Json:
    """Stock that was not changed here is left alone: it may have been sold meanwhile. A variant that somebody deleted
    becomes a new one."""
    at = f"variants[{number}]"
    price = parse_money(page, f"{at}.price", text=typed["price"])
    if price is None:
        raise Invalid.field(f"{at}.price", "is required")
    variant = {
        "title": typed["title"] or page.form_value("name"),
        "price": price,
        "compareAtPrice": parse_money(page, f"{at}.compareAtPrice", text=typed["compareAtPrice"]),
        "inventorySku": typed["sku"] or None,
    }
    if typed["id"] in stored:
        variant["id"] = typed["id"]
    if typed["stock"] != typed["stockBefore"] or "id" not in variant:
        variant["inventoryQuantity"] = parse_count(f"{at}.inventoryQuantity", typed["stock"])
    return variant
