"""Products created, changed and deleted by form. Options make variants; a variant that stays keeps its id."""

from itertools import product as combine
from typing import Any

from starlette.datastructures import FormData
from starlette.responses import Response

from sapa.console.fields import parse_count, parse_money, split_words
from sapa.console.form_files import list_files, open_stream
from sapa.console.page_request import PageRequest
from sapa.console.roles import DEVELOPERS, EVERYBODY
from sapa.console.routes import console, go_to
from sapa.console.shown_fields import build_shown, put_shown
from sapa.console.translations import translate
from sapa.http.errors import Invalid

STATUSES = ("active", "draft", "archived")
VARIANT = ("id", "title", "price", "compareAtPrice", "sku", "stock", "stockBefore")
MOST_VARIANTS = 20
"""Variants that the form shows; the API changes products that have more."""
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
        return await show_new_product(page)
    body = _gather_body(page, None) | {"productId": page.form_value("productId") or None}
    made = await page.call("POST", "/products", body=body)
    return go_to(page.path(f"/products/{made['data']['id']}"))


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
        return _show_form(page, product)
    body = _gather_body(page, product)
    await put_shown(page, f"/products/{product['id']}", body, _list_shown(page, product))
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
        variants=variants if any(values for _, values in options) else [*variants, empty][:MOST_VARIANTS],
        statuses=STATUSES,
        shown=build_shown(page, _list_shown(page, product or {})),
        hidden_variants=max(0, len(product["variants"]) - MOST_VARIANTS) if product else 0,
    )


def _read_stored(page: PageRequest, product: Json) -> tuple[Json, list[tuple[str, str]], list[Json]]:
    values = {name: product.get(name) or "" for name in ("name", "description", "productId")}
    values["status"] = product.get("status", "active")
    values["pictures"] = "\n".join(filter(None, [product.get("media"), *product.get("medias", [])]))
    values |= {name: ", ".join(product.get(name, [])) for name in ("tags", "types")}
    options = [(option["name"], ", ".join(option["values"])) for option in product.get("options", [])]
    return values, options, [_spread_variant(page, one) for one in product.get("variants", [])[:MOST_VARIANTS]]


def _list_shown(page: PageRequest, product: Json) -> dict[str, str]:
    """What the form shows of a stored product, but for the stock, which orders change."""
    values, options, variants = _read_stored(page, product)
    fields = {name: values[name] for name in ("name", "description", "pictures", "tags", "types")}
    fields["status"] = str(translate(page.language, f"product {values['status']}"))
    fields["options"] = "; ".join(f"{name}: {typed}" for name, typed in options)
    for number, one in enumerate(variants):
        parts = filter(None, (one[name] for name in ("title", "price", "compareAtPrice", "sku")))
        fields[f"variants[{number}].price"] = " · ".join(parts)
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
    """As it was typed, with a row for every combination of the options."""
    names = ("name", "description", "productId", "status", "pictures", "tags", "types")
    values = {name: page.form_value(name) for name in names}
    options = [(name, typed) for name, typed in _list_options(page) if name or typed]
    variants = [one for one in _list_variants(page) if one["title"] or one["price"]]
    if page.form_value("step") == "variants":
        variants = _combine(options, variants)
    return values, options, variants


def _combine(options: list[tuple[str, str]], variants: list[Json]) -> list[Json]:
    """Every combination; those that there are keep what was typed, and new ones start with the first one's price."""
    lists = [split_words(typed) for _, typed in options if split_words(typed)]
    if not lists:
        return variants
    known = {one["title"]: one for one in variants}
    first = variants[0] if variants else dict.fromkeys(VARIANT, "")
    fresh = dict.fromkeys(VARIANT, "") | {name: first[name] for name in ("price", "compareAtPrice")}
    titles = [SEPARATOR.join(values) for values in combine(*lists)]
    return [known.get(title) or fresh | {"title": title} for title in titles[:MOST_VARIANTS]]


def _list_options(page: PageRequest) -> list[tuple[str, str]]:
    names, values = page.form_values("optionName"), page.form_values("optionValues")
    return [(name.strip(), typed.strip()) for name, typed in zip(names, values, strict=False)]


def _list_variants(page: PageRequest) -> list[Json]:
    columns = [page.form_values(f"variant.{name}") for name in VARIANT]
    return [
        {name: text.strip() for name, text in zip(VARIANT, row, strict=True)} for row in zip(*columns, strict=False)
    ]


def _gather_body(page: PageRequest, product: Json | None) -> Json:
    pictures = page.form_value("pictures").split()
    options = [{"name": name, "values": split_words(typed)} for name, typed in _list_options(page) if name and typed]
    typed = [one for one in _list_variants(page) if one["title"] or one["price"]]
    variants = [_build_variant(page, number, one) for number, one in enumerate(typed)]
    beyond = product["variants"][MOST_VARIANTS:] if product else []
    if not variants:
        raise Invalid.field("variants[0].price", "is required")
    return {
        "name": page.form_value("name"),
        "description": page.form_value("description") or None,
        "status": page.form_value("status") or "active",
        "media": pictures[0] if pictures else None,
        "medias": pictures[1:],
        "tags": split_words(page.form_value("tags")),
        "types": split_words(page.form_value("types")),
        "options": options,
        "variants": [*variants, *({"id": one["id"]} for one in beyond)],
    }


def _build_variant(page: PageRequest, number: int, typed: Json) -> Json:
    """Stock that was not changed here is left alone: it may have been sold meanwhile."""
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
    if typed["id"]:
        variant["id"] = typed["id"]
    if typed["stock"] != typed["stockBefore"] or not typed["id"]:
        variant["inventoryQuantity"] = parse_count(f"{at}.inventoryQuantity", typed["stock"])
    return variant
