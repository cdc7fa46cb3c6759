"""A file from elsewhere brings in history: no points, stock or webhooks unless `--effects`; dates are the order's."""

from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from sapa.db.pool import Database
from tests.cli.command import sapa
from tests.conftest import Installation
from tests.factories import Environments, make_product
from tests.imports.files import list_all, run_import, write_csv

HEADER = ["Name", "Email", "Financial Status", "Paid at", "Fulfillment Status", "Total", "Created at",
          "Lineitem quantity", "Lineitem name", "Lineitem price", "Lineitem sku", "Refunded Amount",
          "Cancelled at"]  # fmt: skip
ORDER = ["#1", "ayu@example.com", "paid", "2025-03-02 09:00:00 +0700", "fulfilled", "100000.00",
         "2025-03-01 08:00:00 +0700", "2", "Kopi", "50000.00", "KOPI-1", "0.00", ""]  # fmt: skip
EVENTS = "SELECT kind FROM events WHERE company_id = $1 ORDER BY created_at, id"


@pytest.fixture
async def shop(api: httpx.AsyncClient) -> dict[str, Any]:
    """A program in which every 1000 earns a point, and a product with stock."""
    tiers = await api.post("/loyalty/point-conversion", json={"tiers": [{"currencyAmount": 1000, "points": 1}]})
    assert tiers.status_code in {200, 201}, tiers.text
    variants = [{"title": "M", "price": 60000, "sku": "KOPI-1", "inventoryQuantity": 10}]
    return await make_product(api, name="Kopi", variants=variants)


async def list_kinds(database: Database, company: Environments) -> list[str]:
    async with database.connection() as db:
        return [row[0] for row in await db.fetch(EVENTS, company.live)]


async def read_points(api: httpx.AsyncClient) -> str:
    [customer] = await list_all(api, "customers")
    found = (await api.get(f"/loyalty/customers/{customer['id']}/wallet")).json()["data"]
    return str(found["availablePoints"])


async def read_stock(api: httpx.AsyncClient) -> int:
    [product] = await list_all(api, "products")
    stock: int = product["variants"][0]["inventoryQuantity"]
    return stock


async def test_history_has_no_effects(
    installation: Installation,
    database: Database,
    company: Environments,
    api: httpx.AsyncClient,
    tmp_path: Path,
    shop: dict[str, Any],
) -> None:
    before = await list_kinds(database, company)
    path = write_csv(tmp_path / "orders.csv", [HEADER, ORDER])
    done = run_import(installation, company.live, path, "orders", "--from", "shopify")
    assert (done.counts, done.summary["source"], done.summary["effects"]) == ((1, 0, 0, 0), "shopify", False)
    assert await list_kinds(database, company) == before
    assert (await read_points(api), await read_stock(api)) == ("0", 10)
    [order] = await list_all(api, "orders")
    assert order["createdAt"] == "2025-03-01T01:00:00.000Z"
    assert [payment["paidAt"] for payment in order["payments"]] == ["2025-03-02T02:00:00.000Z"]
    assert order["lineItems"][0]["productVariant"]["id"] == shop["variants"][0]["id"]
    [customer] = await list_all(api, "customers")
    entries = (await api.get(f"/loyalty/customers/{customer['id']}/timeline")).json()["data"]
    at = {entry["type"]: entry["createdAt"] for entry in entries}
    assert at["order_created"] == "2025-03-01T01:00:00.000Z"
    assert at["order_paid"] == "2025-03-02T02:00:00.000Z"


async def test_history_earns_nothing_when_it_changes_later(
    installation: Installation, company: Environments, api: httpx.AsyncClient, tmp_path: Path, shop: dict[str, Any]
) -> None:
    path = write_csv(tmp_path / "orders.csv", [HEADER, ORDER])
    run_import(installation, company.live, path, "orders", "--from", "shopify")
    [order] = await list_all(api, "orders")
    changed = await api.put(f"/orders/{order['id']}", json={"notes": "called"})
    assert changed.status_code == 200, changed.text
    assert await read_points(api) == "0"


async def test_with_effects_an_order_earns_takes_stock_and_emits(
    installation: Installation,
    database: Database,
    company: Environments,
    api: httpx.AsyncClient,
    tmp_path: Path,
    shop: dict[str, Any],
) -> None:
    path = write_csv(tmp_path / "orders.csv", [HEADER, ORDER])
    done = run_import(installation, company.live, path, "orders", "--from", "shopify", "--effects")
    assert (done.counts, done.errors) == ((1, 0, 0, 0), [])
    assert (await read_points(api), await read_stock(api)) == ("100", 8)
    assert {"customer.created", "order.created", "order.updated"} <= set(await list_kinds(database, company))
    again = run_import(installation, company.live, path, "orders", "--from", "shopify", "--effects")
    assert again.counts == (0, 0, 1, 0)
    assert (await read_points(api), await read_stock(api)) == ("100", 8)


@pytest.mark.long
async def test_with_effects_money_without_a_date_has_the_orders(
    installation: Installation, company: Environments, api: httpx.AsyncClient, tmp_path: Path, shop: dict[str, Any]
) -> None:
    order = [*ORDER[:2], "partially_refunded", "", *ORDER[4:11], "30000.00", ""]
    taking_no_stock = ["#2", *order[1:10], "", *order[11:]]
    path = write_csv(tmp_path / "orders.csv", [HEADER, order, taking_no_stock])
    done = run_import(installation, company.live, path, "orders", "--from", "shopify", "--effects")
    assert (done.counts, done.errors) == ((2, 0, 0, 0), [])
    for stored in await list_all(api, "orders"):
        assert [payment["paidAt"] for payment in stored["payments"]] == ["2025-03-01T01:00:00.000Z"]
        assert [refund["createdAt"] for refund in stored["refunds"]] == ["2025-03-01T01:00:00.000Z"]


@pytest.mark.long
async def test_an_order_that_was_archived_here_stays_archived(
    installation: Installation, company: Environments, api: httpx.AsyncClient, tmp_path: Path
) -> None:
    cancelled = [*ORDER[:2], "voided", "", "unfulfilled", *ORDER[5:12], "2025-03-05 09:00:00 +0700"]
    path = write_csv(tmp_path / "orders.csv", [[*HEADER, "Notes"], [*cancelled, ""]])
    run_import(installation, company.live, path, "orders", "--from", "shopify")
    [order] = await list_all(api, "orders")
    assert order["status"] == "cancelled"
    archived = await api.put(f"/orders/{order['id']}", json={"status": "archived"})
    assert archived.status_code == 200, archived.text
    again = run_import(installation, company.live, path, "orders", "--from", "shopify")
    assert (again.counts, again.errors) == ((0, 0, 1, 0), [])
    write_csv(path, [[*HEADER, "Notes"], [*cancelled, "called"]])
    later = run_import(installation, company.live, path, "orders", "--from", "shopify")
    assert (later.counts, later.errors) == ((0, 1, 0, 0), [])
    [order] = await list_all(api, "orders")
    assert (order["status"], order["notes"]) == ("archived", "called")


async def test_a_later_export_of_the_same_shop_brings_in_what_changed(
    installation: Installation, company: Environments, api: httpx.AsyncClient, tmp_path: Path
) -> None:
    path = tmp_path / "orders.csv"
    unpaid = [*ORDER[:2], "pending", "", "unfulfilled", *ORDER[5:]]
    refunded = [*ORDER[:2], "partially_refunded", *ORDER[3:11], "30000.00", ""]
    for row, counts, status in (
        (unpaid, (1, 0, 0, 0), "pending"),
        (ORDER, (0, 1, 0, 0), "paid"),
        (ORDER, (0, 0, 1, 0), "paid"),
        (refunded, (0, 1, 0, 0), "partially_refunded"),
        (refunded, (0, 0, 1, 0), "partially_refunded"),
    ):
        write_csv(path, [HEADER, row])
        assert run_import(installation, company.live, path, "orders", "--from", "shopify").counts == counts
        [order] = await list_all(api, "orders")
        assert order["financialStatus"] == status
    assert (order["totalPaid"], order["totalRefunded"]) == (100000, 30000)


@pytest.mark.long
async def test_an_order_that_was_fulfilled_and_then_cancelled_stays_fulfilled(
    installation: Installation, company: Environments, api: httpx.AsyncClient, tmp_path: Path
) -> None:
    path = write_csv(tmp_path / "orders.csv", [HEADER, [*ORDER[:12], "2025-03-05 09:00:00 +0700"]])
    for counts in ((1, 0, 0, 0), (0, 0, 1, 0)):
        assert run_import(installation, company.live, path, "orders", "--from", "shopify").counts == counts
    [order] = await list_all(api, "orders")
    assert (order["status"], order["fulfillmentStatus"], order["tags"]) == ("active", "fulfilled", ["cancelled"])


@pytest.mark.long
async def test_a_customer_is_found_by_external_id_then_e_mail_address_then_phone_number(
    installation: Installation, company: Environments, api: httpx.AsyncClient, tmp_path: Path
) -> None:
    path = tmp_path / "customers.csv"
    header = ["Nama", "Email", "No HP"]
    write_csv(path, [header, ["Ayu", "ayu@example.com", "0812345678"], ["Budi", "", "0812345679"]])
    options = ("customers", "--from", "spreadsheet")
    assert run_import(installation, company.live, path, *options).counts == (2, 0, 0, 0)
    write_csv(path, [header, ["Ayu L", "AYU@example.com", ""], ["Budi", "budi@example.com", "+62812345679"]])
    assert run_import(installation, company.live, path, *options).counts == (0, 2, 0, 0)
    write_csv(
        path,
        [
            ["Customer ID", "Email", "First Name", "Accepts Email Marketing", "Default Address Zip"],
            ["'77", "ayu@example.com", "Ayu", "yes", ""],
            ["'78", "ayu@example.com", "Other", "", ""],
        ],
    )
    done = run_import(installation, company.live, path, "customers", "--from", "shopify")
    assert done.counts == (0, 1, 0, 1)
    assert [(line, field) for line, field, _ in done.errors] == [(3, "email")]
    stored = {one["email"]: one for one in await list_all(api, "customers")}
    assert (stored["ayu@example.com"]["externalId"], stored["budi@example.com"]["phoneNumber"]) == (
        "77",
        "+62812345679",
    )


@pytest.mark.parametrize(
    ("arguments", "header", "words"),
    [
        (("orders", "--from", "woocommerce"), HEADER, "import it as orders with the source shopify"),
        (("customers", "--from", "shopify"), HEADER, "import it as orders with the source shopify"),
        (("customers", "--from", "shopee"), HEADER, "Customers cannot be imported from Shopee"),
        (("orders",), HEADER, "import it as orders with the source shopify"),
        (("orders", "--from", "shopify"), ["a", "b"], "not an export of orders from Shopify"),
        (("orders", "--from", "spreadsheet"), ["a", "b"], "No column is mapped to orderId"),
        (("orders", "--from", "shopify", "--time-zone", "Mars"), HEADER, "'Mars' is not a time zone"),
    ],
)
async def test_a_file_of_another_kind_is_refused_with_what_it_is(
    installation: Installation, company: Environments, tmp_path: Path, arguments: tuple[str, ...], header: list[str],
    words: str,
) -> None:  # fmt: skip
    path = write_csv(tmp_path / "orders.csv", [header, ["x"] * len(header)])
    resource, *options = arguments
    refused = sapa(installation.data, "import", resource, str(path), "--company", str(company.live), *options)
    assert words in refused.sentence()


async def test_dates_without_an_offset_are_the_companys(
    installation: Installation, company: Environments, api: httpx.AsyncClient, tmp_path: Path
) -> None:
    header = ["No Pesanan", "Tanggal", "Nama Barang", "Harga"]
    path = write_csv(tmp_path / "orders.csv", [header, ["A1", "17/08/2025 10:00", "Kopi", "50.000"]])
    run_import(installation, company.live, path, "orders", "--from", "spreadsheet")
    [order] = await list_all(api, "orders")
    assert datetime.fromisoformat(order["createdAt"]) == datetime.fromisoformat("2025-08-17T03:00:00Z")
    assert order["total"] == 50000


@pytest.mark.long
async def test_variants_without_a_sku_are_imported_once(
    installation: Installation, company: Environments, api: httpx.AsyncClient, tmp_path: Path
) -> None:
    rows = [["Produk", "Ukuran", "Harga"], ["Kaos", "M", "50000"], ["Kaos", "L", "55000"]]
    path = write_csv(tmp_path / "products.csv", rows)
    for counts in ((1, 0, 0, 0), (0, 0, 1, 0)):
        assert run_import(installation, company.live, path, "products", "--from", "spreadsheet").counts == counts
    [product] = await list_all(api, "products")
    assert [(one["title"], one["price"]) for one in product["variants"]] == [("M", 50000), ("L", 55000)]
