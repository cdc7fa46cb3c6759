"""Exports of shops, marketplaces and spreadsheets import with one command; a second run changes nothing."""

import time
from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from sapa.cli.import_ import SourceName
from sapa.imports.sources.registry import ALIASES, LABELS, PROFILES
from tests.conftest import Installation
from tests.factories import Environments
from tests.imports.files import list_all, run_import, write
from tests.imports.foreign import BUILDERS, build_all
from tests.imports.foreign.customers import indonesian_customers
from tests.imports.foreign.files import ForeignFile
from tests.imports.foreign.orders import shopee_orders, shopify_orders
from tests.imports.foreign.products import woocommerce_products
from tests.imports.shops import Shop, make_shop

KEYS = {"customers": "email", "products": "productId", "orders": "orderId"}


def test_every_source_can_be_named_and_has_a_file() -> None:
    assert {source.value for source in SourceName} == {*LABELS, *ALIASES}
    files = build_all(make_shop(1, 3))
    assert {ALIASES.get(file.source, file.source) for file in files} == set(LABELS)
    assert {(one.source, one.resource) for one in PROFILES} <= {
        (ALIASES.get(file.source, file.source), file.resource) for file in files
    }


def show(resource: str, stored: dict[str, Any]) -> dict[str, Any]:
    """What is compared of a stored record, by the same paths as in what is expected."""
    shown = dict(_flatten("", stored)) | {name: stored.get(name) for name in ("tags", "types", "medias")}
    shown["subscriptionStatus"] = stored.get("subscriptionStatus")
    if resource == "products":
        variants = stored["variants"]
        shown["variants"] = [(v["title"], v["inventorySku"], v["price"], v["inventoryQuantity"]) for v in variants]
        shown["compareAtPrice"] = variants[0]["compareAtPrice"]
    if resource == "orders":
        lines = stored["lineItems"]
        shown["createdAt"] = datetime.fromisoformat(stored["createdAt"])
        shown["lines"] = [(line["title"], line["quantity"], line["price"]) for line in lines]
        shown["lineDiscounts"] = [line["discount"]["amount"] if line["discount"] else 0 for line in lines]
        shown["customer"] = stored["customer"] and "known"
    return shown


def _flatten(path: str, value: Any) -> list[tuple[str, Any]]:
    pairs: Iterable[tuple[Any, Any]]
    if isinstance(value, dict):
        pairs = value.items()
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        pairs = enumerate(value)
    else:
        return [(path, value)]
    return [pair for name, inner in pairs for pair in _flatten(f"{path}.{name}" if path else str(name), inner)]


async def check_import(
    installation: Installation, company: int, api: httpx.AsyncClient, file: ForeignFile, folder: Path
) -> dict[str, float]:
    """Imports the file twice; returns the seconds of both runs."""
    path = write(folder / file.name, file.content)
    options = ("--from", file.source, *file.options)
    started = time.monotonic()
    first = run_import(installation, company, path, file.resource, *options)
    between = time.monotonic()
    assert first.errors == []
    assert first.counts == (len(file.expected), 0, 0, 0)
    stored = {one[KEYS[file.resource]]: one for one in await list_all(api, file.resource)}
    for expected in file.expected:
        shown = show(file.resource, stored[expected[KEYS[file.resource]]])
        if file.name == "woo-products.csv":
            shown["variants"] = sorted(shown["variants"])
        assert {name: shown.get(name) for name in expected} == expected
    again = time.monotonic()
    second = run_import(installation, company, path, file.resource, *options)
    ended = time.monotonic()
    assert second.counts == (0, 0, len(file.expected), 0)
    assert {one[KEYS[file.resource]]: one for one in await list_all(api, file.resource)} == stored
    return {"first": between - started, "second": ended - again}


@pytest.mark.parametrize(
    "build",
    [shopify_orders, shopee_orders, woocommerce_products, indonesian_customers],
    ids=lambda build: build.__name__,
)
async def test_an_export_is_imported_and_a_second_run_changes_nothing(
    installation: Installation,
    company: Environments,
    api: httpx.AsyncClient,
    tmp_path: Path,
    build: Callable[[Shop], ForeignFile],
) -> None:
    await check_import(installation, company.live, api, build(make_shop(7, 60)), tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("build", BUILDERS, ids=lambda build: build.__name__)
async def test_thousands_of_rows_are_imported_and_a_second_run_changes_nothing(
    installation: Installation,
    company: Environments,
    api: httpx.AsyncClient,
    tmp_path: Path,
    build: Callable[[Shop], ForeignFile],
    seed: int,
) -> None:
    file = build(make_shop(seed, 3_000))
    seconds = await check_import(installation, company.live, api, file, tmp_path)
    lines = "-" if file.name.endswith(".xlsx") else file.content.count(b"\n")
    times = f"{seconds['first']:.1f} s, again {seconds['second']:.1f} s"
    print(f"\n{file.name}: {lines} lines, {len(file.expected):,} {file.resource} in {times}")
