import asyncio
import csv
import io
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from sapa.access import actions as access
from sapa.db.pool import Database
from sapa.exports.actions import open_snapshot
from tests.cli.command import sapa, sapa_process
from tests.conftest import Installation, connect
from tests.factories import Environments, make_company, make_customer, make_key
from tests.imports.files import list_all, read, run_import, without_ids

RESOURCES = ["customers", "products", "orders"]


async def fill(api: httpx.AsyncClient) -> None:
    """Some of everything that is hard to write into a file."""
    odd = {
        "firstName": '=HYPERLINK("x")', "lastName": "'+quoted'\r\nline, \"two\"", "externalId": "-7",
        "tags": ["a b", "[c]"],
        "phoneNumber": "+628123456789", "additionalData": {"visits": 12, "share": 0.5, "card": "007", "10": "x"},
        "addresses": [{"address1": "Jl. Satu 1"}, {"address1": "Jl. Dua; 2", "mainAddress": True}],
        "subscriptionStatus": [{"app": "CRM", "status": "subscribe"}],
    }  # fmt: skip
    customer = await make_customer(api, **odd)
    await make_customer(api, firstName="José")
    await make_customer(api, tags=['["x"]'], imageUrl="https://example.com/a,b.png")
    variants = [
        {"title": "250 g", "price": 85000.5, "sku": "KG-250", "inventoryQuantity": 12, "compareAtPrice": 90000},
        {"title": "1 kg", "price": 300000},
    ]
    product = await made(api, "products", name="Kopi, Gayo", variants=variants, productId="kopi",
                         options=[{"name": "Berat", "values": ["250 g", "1 kg"]}], types=["kopi", "a,b"],
                         medias=["https://example.com/1,2.png"], description="=1+1\n\n'quoted")  # fmt: skip
    await made(api, "products", name="Teh", variants=[{"title": "M", "price": 1}], status="draft")
    line = {"productVariantId": product["variants"][0]["id"], "quantity": 2}
    order = await made(api, "orders", lineItems=[line, {"title": "Ongkir", "price": 9000, "quantity": 1}],
                       customerId=customer["id"], shippingAddress={"address1": "Jl. Tiga 3"}, tags=["gift"],
                       notes="-10% \"vip\"")  # fmt: skip
    await made(api, "orders", lineItems=[{"title": "A", "price": 0.25, "quantity": 3}], currency="USD", orderId="web-1")
    priced = await made(
        api, "orders", orderId="web-2", taxLines=[{"title": "PPN", "rate": 11, "included": False}],
        lineItems=[{"title": "B", "price": 100, "quantity": 3, "discount": {"percentage": 33.3333, "title": "=1+1"}}],
        discounts=[{"code": "TEMAN", "percentage": 10}, {"amount": 1.5, "title": "a,b"}],
        shippingLines=[{"title": "JNE", "price": 9000, "code": "REG", "discount": {"amount": 1000}}],
        fees=[{"title": "Asuransi", "amount": 2500}],
    )  # fmt: skip
    paid = {"amount": 5000, "method": "cash", "reference": "K-1", "paidAt": "2026-01-31T09:30:00Z"}
    await made(api, f"orders/{priced['id']}/payments", **paid)
    await made(api, f"orders/{priced['id']}/refunds", amount=1000, reason="x")
    edited = await made(api, "orders", orderId="web-3", lineItems=[{"title": "C", "price": 100, "quantity": 3}])
    await made(api, f"orders/{edited['id']}/payments", amount=300, method="cash")
    fewer = {"lineItems": [{"id": edited["lineItems"][0]["id"], "quantity": 1}]}
    assert (await api.put(f"/orders/{edited['id']}", json=fewer)).json()["data"]["outstanding"] == -200
    await made(api, f"orders/{edited['id']}/refunds", amount=50)
    unpaid = await made(api, "orders", orderId="web-4", lineItems=[{"title": "D", "price": 100, "quantity": 1}])
    for status in ("refunded", "archived"):
        await api.put(f"/orders/{unpaid['id']}", json={"status": status, "fulfillmentStatus": "fulfilled"})
    done = await api.put(f"/orders/{order['id']}", json={"status": "archived", "financialStatus": "paid"})
    assert done.status_code == 200, done.text


async def made(api: httpx.AsyncClient, resource: str, **fields: Any) -> dict[str, Any]:
    response = await api.post(f"/{resource}", json=fields)
    assert response.status_code == 201, response.text
    data: dict[str, Any] = response.json()["data"]
    return data


def export(installation: Installation, company: int, resource: str, path: Path) -> Path:
    done = sapa(installation.data, "export", resource, "--company", str(company), "--output", str(path))
    assert done.code == 0, done.err
    assert [found.name for found in path.parent.iterdir() if found.name.startswith(f".{path.name}")] == []
    return path


@pytest.mark.parametrize("format", ["csv", "ndjson"])
async def test_an_export_imported_again_changes_nothing_and_fills_an_empty_company(
    installation: Installation, database: Database, company: Environments, api: httpx.AsyncClient, tmp_path: Path,
    format: str,
) -> None:  # fmt: skip
    await fill(api)
    other = await make_company(database)
    async with connect(installation, (await make_key(database, other.live)).raw) as theirs:
        for resource in RESOURCES:
            path = export(installation, company.live, resource, tmp_path / f"{resource}.{format}")
            before = await list_all(api, resource)
            again = run_import(installation, company.live, path, resource)
            assert again.counts == (0, 0, len(before), 0), again.errors
            assert await list_all(api, resource) == before
            moved = run_import(installation, other.live, path, resource)
            assert moved.counts == (len(before), 0, 0, 0), moved.errors
            assert sorted(map(repr, comparable(await list_all(theirs, resource)))) == sorted(
                map(repr, comparable(before))
            )


async def test_an_order_with_units_that_came_back_for_nothing_moves(
    installation: Installation, database: Database, company: Environments, api: httpx.AsyncClient, tmp_path: Path
) -> None:
    order = await made(api, "orders", orderId="web-9", lineItems=[{"title": "Kopi", "price": 100, "quantity": 3}])
    await made(api, f"orders/{order['id']}/payments", amount=300, method="cash")
    units = [{"id": order["lineItems"][0]["id"], "quantity": 1}]
    await made(api, f"orders/{order['id']}/refunds", lineItems=units, amount=0)
    await made(api, f"orders/{order['id']}/refunds", amount=40)
    path = export(installation, company.live, "orders", tmp_path / "orders.ndjson")
    other = await make_company(database)
    moved = run_import(installation, other.live, path, "orders")
    assert moved.counts == (1, 0, 0, 0), moved.errors
    async with connect(installation, (await make_key(database, other.live)).raw) as theirs:
        [stored] = await list_all(theirs, "orders")
    assert [refund["amount"] for refund in stored["refunds"]] == [40]
    assert (stored["totalRefunded"], stored["outstanding"], stored["financialStatus"]) == (40, 0, "partially_refunded")


def comparable(found: list[dict[str, Any]]) -> list[Any]:
    plain: list[Any] = without_ids(found)
    for one in plain:
        one.pop("orderNumber", None)
    return plain


async def test_a_table_on_standard_output_has_the_fields_of_the_api(
    installation: Installation, company: Environments, api: httpx.AsyncClient
) -> None:
    await fill(api)
    done = sapa_process(installation.data, "export", "customers", "--company", str(company.live))
    assert done.code == 0, done.err
    header, *lines = csv.reader(io.StringIO(done.out, newline=""))
    customers = await list_all(api, "customers")
    assert header == list(customers[0])
    assert [line[0] for line in lines] == [customer["id"] for customer in customers]
    cells = dict(zip(header, lines[0], strict=True))
    assert cells["firstName"] == '\'=HYPERLINK("x")'
    assert (cells["phoneNumber"], cells["externalId"], cells["tags"]) == ("+628123456789", "-7", "a b,[c]")


@pytest.mark.parametrize("separator", [";", pytest.param("\t", marks=pytest.mark.long)])
async def test_no_cell_is_a_formula_where_spreadsheets_split_lines_elsewhere(
    installation: Installation, company: Environments, api: httpx.AsyncClient, separator: str
) -> None:
    names = [f'x{separator}=HYPERLINK("http://x")', f"{separator}@SUM(A1)", f'x{separator}"=1+1"', "x\n=1+1", "=1+1"]
    for name in names:
        await make_customer(api, firstName=name)
    done = sapa_process(installation.data, "export", "customers", "--company", str(company.live))
    cells = [cell for line in done.out.splitlines() for cell in line.split(separator)]
    assert not [cell for cell in cells if cell.lstrip('"')[:1] in {*"=@+-"}]
    (file := installation.data.parent / f"formulas-{company.live}.csv").write_text(done.out)
    again = run_import(installation, company.live, file, "customers")
    assert again.counts == (0, 0, len(names), 0), again.errors


@pytest.mark.smoke
async def test_ndjson_is_what_the_api_returns(
    installation: Installation, company: Environments, api: httpx.AsyncClient, tmp_path: Path
) -> None:
    await fill(api)
    for resource in RESOURCES:
        path = export(installation, company.live, resource, tmp_path / f"{resource}.ndjson")
        assert [msgspec.json.decode(line) for line in read(path).splitlines()] == await list_all(api, resource)


async def test_an_export_is_one_snapshot(database: Database, company: Environments, api: httpx.AsyncClient) -> None:
    for n in range(20):
        await make_customer(api, firstName="before", lastName=str(n))
    customers = await list_all(api, "customers")
    async with database.connection() as db:
        whose = await access.get_company(db, company.live)
    async with open_snapshot(database.snapshot(), whose, "customers") as snapshot:
        changes = [api.put(f"/customers/{one['id']}", json={"firstName": "after"}) for one in customers[:10]]
        await asyncio.gather(*changes, api.delete(f"/customers/{customers[-1]['id']}"), make_customer(api))
        rows = [row async for batch in snapshot.batches for row in batch]
    assert snapshot.total == len(rows) == 20
    assert {row.first_name for row in rows} == {"before"}


def test_an_export_that_cannot_be_written_leaves_nothing(
    installation: Installation, company: Environments, tmp_path: Path
) -> None:
    nowhere = tmp_path / "missing" / "customers.csv"
    done = sapa(installation.data, "export", "customers", "--company", str(company.live), "--output", str(nowhere))
    assert "cannot be written" in done.sentence()
    done = sapa(installation.data, "export", "customers", "--company", "999999", "--output", str(tmp_path / "c.csv"))
    assert done.code == 1
    assert list(tmp_path.iterdir()) == []
