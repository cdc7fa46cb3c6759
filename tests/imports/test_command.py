import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from sapa.access import actions as access
from sapa.db.counters import get_total
from sapa.db.pool import Database
from tests import depth
from tests.cli.command import environment, sapa
from tests.conftest import Installation
from tests.factories import Environments
from tests.imports.files import list_all, read_errors, run_import, write, write_csv, write_ndjson

HEADER = ["externalId", "email", "phoneNumber", "firstName", "lastName", "additionalData.visits"]
BAD = {
    "email": ["bad-{n}", "nobody", "", "A", "", ""],
    "phoneNumber": ["bad-{n}", "x{n}@example.com", "12", "A", "", ""],
    "firstName": ["bad-{n}", "x{n}@example.com", "", "A" * 256, "", ""],
    "externalId": ["bad-{n} ", "x{n}@example.com", "", "A", "", ""],
    "additionalData.visits": ["bad-{n}", "x{n}@example.com", "", "A", "", "x" * 5001],
    "unreachable": ["bad-{n}", "", "", "A", "", ""],
    "taken": ["bad-{n}", "customer0@example.com", "", "A", "", ""],
    "short": ["bad-{n}", "x{n}@example.com"],
    "long": ["bad-{n}", "x{n}@example.com", "", "", "", "", "", ""],
    "NUL": ["bad-{n}", "x{n}@example.com", "", "A\0", "", ""],
}


FIELDS = {**{name: name for name in HEADER}, "taken": "email"}
"""The field that an error names, by the kind of the bad line; the others are faults of the whole line."""


def good_line(n: int) -> list[str]:
    return [f"shop-{n}", f"customer{n}@example.com", f"+62812{10_000_000 + n}", "Ayu", f"Lestari {n}", str(n % 40)]


def build_file(path: Path, rows: int, bad: int) -> tuple[Path, dict[int, str]]:
    """A file with bad lines spread over it, and the kind of each by its line number."""
    kinds = list(BAD)
    lines, expected = [HEADER], dict[int, str]()
    for n in range(rows - bad):
        lines.append(good_line(n))
        if bad and n % ((rows - bad) // bad) == 0 and len(expected) < bad:
            kind = kinds[len(expected) % len(kinds)]
            lines.append([cell.format(n=n) for cell in BAD[kind]])
            expected[len(lines)] = kind
    return write_csv(path, lines), expected


def start_import(installation: Installation, company: int, path: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "sapa", "import", "customers", str(path), "--company", str(company), "--json"],
        env=environment(installation.data, {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


async def position_of(database: Database, company: int) -> int:
    async with database.connection() as db:
        return int(await db.fetchval("SELECT coalesce(max(position), 0) FROM imports WHERE company_id = $1", company))


@asynccontextmanager
async def end_out_of_reach(database: Database, company: int, line: int) -> AsyncIterator[None]:
    """Meanwhile no import of the file gets beyond the line, however slow this process is: its customer is being
    created elsewhere."""
    async with database.connection() as db:
        creation = db.transaction()
        await creation.start()
        await db.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        await db.execute(
            """INSERT INTO customers (company_id, id, email, email_key, tags, addresses, additional_data,
                                      subscription_status, search_text)
               VALUES ($1, 'cus_elsewhere', $2, $2, '{}', '[]', '{}', '[]', '')""",
            company,
            good_line(line)[1],
        )
        try:
            yield
        finally:
            await creation.rollback()


async def wait_for_progress(database: Database, company: int, beyond: int) -> None:
    deadline = time.monotonic() + 120
    while await position_of(database, company) <= beyond:
        assert time.monotonic() < deadline, "the import does not get on"


@pytest.mark.long
async def test_a_large_file_with_bad_lines_survives_being_killed(
    installation: Installation, database: Database, company: Environments, tmp_path: Path
) -> None:
    rows = depth.examples(100_000)
    path, expected = build_file(tmp_path / "many.csv", rows, 200)
    for _ in range(2):
        before = await position_of(database, company.live)
        async with end_out_of_reach(database, company.live, rows - 500):
            process = start_import(installation, company.live, path)
            await wait_for_progress(database, company.live, before + 10 * rows)
            process.kill()
            process.communicate()
    process = start_import(installation, company.live, path)
    out, err = process.communicate(timeout=240)
    assert process.returncode == 2, err
    summary = msgspec.json.decode(out)
    assert summary["status"] == "partial"
    assert (summary["rows"], summary["created"], summary["failed"]) == (rows, rows - 200, 200)
    errors = read_errors(summary["errorFile"])
    assert [line for line, _, _ in errors] == list(expected)
    for line, field, _ in errors:
        assert field == FIELDS.get(expected[line], "")
    async with database.connection() as db:
        assert await db.fetchval("SELECT count(*) FROM customers WHERE company_id = $1", company.live) == rows - 200
        assert await get_total(db, company.live, "customers") == rows - 200
        events = "SELECT count(*), count(DISTINCT resource_id) FROM events WHERE company_id = $1"
        assert tuple(await db.fetchrow(events, company.live) or ()) == (rows - 200, rows - 200)


async def test_a_finished_file_can_be_imported_again(
    installation: Installation, company: Environments, tmp_path: Path
) -> None:
    path, _ = build_file(tmp_path / "some.csv", 50, 2)
    first = run_import(installation, company.live, path, "customers")
    second = run_import(installation, company.live, path, "customers")
    assert (first.counts, second.counts) == ((48, 0, 0, 2), (0, 0, 48, 2))
    assert first.summary["id"] != second.summary["id"]
    assert first.errors == second.errors


async def test_a_dry_run_finds_the_same_and_changes_nothing(
    installation: Installation, database: Database, company: Environments, tmp_path: Path
) -> None:
    path, _ = build_file(tmp_path / "some.csv", 1_200, 10)
    twins = [["shop-2000", "customer1@example.com", "", "", "", ""], ["", "", "+6281210000002", "", "", ""]]
    write_csv(path, [HEADER, *(good_line(n) for n in range(1_190)), *twins, ["shop-1", "", "", "Budi", "", ""]])
    trial = run_import(installation, company.live, path, "customers", "--dry-run")
    assert await count_rows(database, company.live) == (0, 0, 0)
    real = run_import(installation, company.live, path, "customers")
    assert [line for line, _, _ in trial.errors][:2] == [line for line, _, _ in real.errors] == [1192, 1193]
    assert trial.summary["dryRun"]
    assert real.counts == (1_190, 1, 0, 2)


async def count_rows(database: Database, company: int) -> tuple[int, int, int]:
    async with database.connection() as db:
        row = await db.fetchrow(
            """SELECT (SELECT count(*) FROM customers WHERE company_id = $1),
                      (SELECT count(*) FROM events WHERE company_id = $1),
                      (SELECT count(*) FROM import_keys WHERE company_id = $1)""",
            company,
        )
    assert row is not None
    return tuple(row)


async def test_the_same_file_twice_at_once_is_refused(
    installation: Installation, database: Database, company: Environments, tmp_path: Path
) -> None:
    path, _ = build_file(tmp_path / "many.csv", 20_000, 0)
    async with end_out_of_reach(database, company.live, 19_500):
        first = start_import(installation, company.live, path)
        await wait_for_progress(database, company.live, 0)
        second = sapa(installation.data, "import", "customers", str(path), "--company", str(company.live))
        assert "already being imported" in second.sentence()
        first.kill()
        first.communicate()


async def test_a_later_line_with_the_same_own_id_changes_the_earlier(
    installation: Installation, company: Environments, api: httpx.AsyncClient, tmp_path: Path
) -> None:
    lines = [["a", "a@example.com"], ["b", "b@example.com"], ["a", "c@example.com"], ["c", "a@example.com"]]
    path = write_csv(tmp_path / "some.csv", [["externalId", "email"], *lines])
    assert run_import(installation, company.live, path, "customers").counts == (3, 1, 0, 0)
    emails = {one["externalId"]: one["email"] for one in await list_all(api, "customers")}
    assert emails == {"a": "c@example.com", "b": "b@example.com", "c": "a@example.com"}


async def test_ndjson_accepts_what_the_api_accepts(
    installation: Installation, company: Environments, api: httpx.AsyncClient, tmp_path: Path
) -> None:
    path = write(
        tmp_path / "some.ndjson",
        b'\xef\xbb\xbf{"externalId": "a", "email": "a@example.com", "firstName": "Ayu"}\n\n'
        b'{"externalId": "a", "firstName": null}\r\n{"email": 1}\n{"email": "b@example.com"\n[1]\n'
        b'{"email": "c@example.com", "nick": "c"}\n{"email": "d@example.com", "firstName": "\xff"}\n'
        b'{"email": "e@example.com"}',
    )
    done = run_import(installation, company.live, path, "customers")
    assert done.counts == (2, 1, 0, 5)
    assert [(line, field) for line, field, _ in done.errors] == [(4, "email"), (5, ""), (6, ""), (7, "nick"), (8, "")]
    assert {one["email"]: one["firstName"] for one in await list_all(api, "customers")} == {
        "a@example.com": None,
        "e@example.com": None,
    }


@pytest.mark.parametrize(
    ("name", "id", "words"),
    [("missing.csv", None, "cannot be read"), ("some.txt", None, "--format"), ("some.csv", 2**40, "company")],
)
async def test_an_unusable_file_is_reported_in_a_sentence(
    installation: Installation, company: Environments, tmp_path: Path, name: str, id: int | None, words: str
) -> None:
    for made in ("some.txt", "some.csv"):
        write(tmp_path / made, "email\na@example.com\n")
    done = sapa(installation.data, "import", "customers", str(tmp_path / name), "--company", str(id or company.live))
    assert words in done.sentence()


async def test_products_are_created_and_updated_by_their_own_id(
    installation: Installation, company: Environments, api: httpx.AsyncClient, tmp_path: Path
) -> None:
    path = write(
        tmp_path / "products.csv",
        "productId,name,status,tags,variants.1.title,variants.1.price,variants.1.sku,variants.1.inventoryQuantity\n"
        "kopi,Kopi Gayo,active,new,250 g,85000,KG-250,12\nteh,Teh Melati,draft,,50 g,15000.5,,\n"
        "bad,Batik,active,,M,-1,,\n,Tanpa id,,,M,5,,\n",
    )
    done = run_import(installation, company.live, path, "products")
    assert done.counts == (3, 0, 0, 1)
    assert [(line, field) for line, field, _ in done.errors] == [(4, "variants[0].price")]
    write(path, "productId,name\nkopi,Kopi Gayo Asli\nteh,Teh Melati\n")
    assert run_import(installation, company.live, path, "products").counts == (0, 1, 1, 0)
    names = {one["name"]: one["variants"][0]["inventoryQuantity"] for one in await list_all(api, "products")}
    assert names == {"Kopi Gayo Asli": 12, "Teh Melati": None, "Tanpa id": None}


async def test_orders_of_the_past_are_placed_and_moved_to_where_they_stand(
    installation: Installation, company: Environments, api: httpx.AsyncClient, tmp_path: Path
) -> None:
    line = {"title": "Kopi", "price": 85000, "quantity": 2}
    orders: list[dict[str, Any]] = [
        {
            "orderId": "a",
            "lineItems": [line],
            "createdAt": "2026-01-31T09:30:00+07:00",
            "customer": {"email": "a@b.co"},
        },
        {"orderId": "b", "lineItems": [line], "status": "archived", "financialStatus": "refunded"},
        {"orderId": "c", "lineItems": [line], "status": "refunded", "fulfillmentStatus": "fulfilled"},
        {"orderId": "d", "lineItems": [line], "status": "cancelled", "fulfillmentStatus": "fulfilled"},
        {"orderId": "e", "lineItems": [line], "total": 1},
        {"orderId": "f", "notes": "no lines"},
        {"orderId": "g", "lineItems": [line], "createdAt": "yesterday"},
        {"orderId": "a", "financialStatus": "paid", "notes": "paid by card"},
    ]
    done = run_import(installation, company.live, write_ndjson(tmp_path / "o.ndjson", orders), "orders")
    assert done.counts == (3, 1, 0, 4)
    assert [(line, field) for line, field, _ in done.errors] == [
        (4, ""), (5, "total"), (6, "lineItems"), (7, "createdAt"),
    ]  # fmt: skip
    found = {one["orderId"]: one for one in await list_all(api, "orders")}
    assert {id: (o["status"], o["fulfillmentStatus"], o["financialStatus"]) for id, o in found.items()} == {
        "a": ("active", "unfulfilled", "paid"),
        "b": ("archived", "unfulfilled", "refunded"),
        "c": ("refunded", "fulfilled", "refunded"),
    }
    assert found["a"]["createdAt"] == "2026-01-31T02:30:00.000Z"
    assert (found["a"]["notes"], found["a"]["customer"]["email"]) == ("paid by card", "a@b.co")


async def test_the_past_of_an_order_lies_between_1900_and_now(
    installation: Installation, company: Environments, api: httpx.AsyncClient, tmp_path: Path
) -> None:
    instants = {
        "9999-12-31T23:59:59.9999Z": "future",
        (datetime.now(UTC) + timedelta(hours=1)).isoformat(): "future",
        "1899-12-31T23:59:59Z": "before 1900",
        "0001-01-01T00:00:00+14:00": "ISO 8601",
        "1900-01-01T00:00:00Z": "",
        "2026-01-31T09:30:00.1239999Z": "",
    }
    line = {"title": "Kopi", "price": 85000, "quantity": 2}
    orders = [{"orderId": instant, "lineItems": [line], "createdAt": instant} for instant in instants]
    done = run_import(installation, company.live, write_ndjson(tmp_path / "o.ndjson", orders), "orders")
    assert done.counts == (2, 0, 0, 4)
    for (line_number, field, reason), words in zip(done.errors, instants.values(), strict=False):
        assert (field, words in reason) == ("createdAt", True), line_number
    assert {one["createdAt"] for one in await list_all(api, "orders")} == {
        "1900-01-01T00:00:00.000Z",
        "2026-01-31T09:30:00.123Z",
    }


async def test_the_future_is_that_of_the_company(
    installation: Installation, company: Environments, database: Database, tmp_path: Path
) -> None:
    """Also of payments, and where the test clock is ahead."""
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    order = {"lineItems": [{"title": "Kopi", "price": 85000, "quantity": 2}]}
    orders = [
        {"orderId": "placed", **order, "createdAt": tomorrow},
        {"orderId": "paid", **order, "payments": [{"amount": 85000, "paidAt": tomorrow}]},
        {"orderId": "now", **order, "financialStatus": "paid"},
    ]
    path = write_ndjson(tmp_path / "o.ndjson", orders)
    done = run_import(installation, company.test, path, "orders")
    assert done.counts == (1, 0, 0, 2)
    assert [(line, field, "future" in reason) for line, field, reason in done.errors] == [
        (1, "createdAt", True), (2, "paidAt", True),
    ]  # fmt: skip
    async with database.transaction() as tx:
        await access.move_clock(tx, company.test, timedelta(days=2))
    assert run_import(installation, company.test, path, "orders").counts == (2, 0, 1, 0)


async def test_an_order_that_was_just_imported_and_does_not_change_is_counted_as_it_was(
    installation: Installation, company: Environments, tmp_path: Path
) -> None:
    order = {"orderId": "a", "lineItems": [{"title": "Kopi", "price": 85000, "quantity": 2}], "tags": ["gift"]}
    path = write_ndjson(tmp_path / "o.ndjson", [order, order, {**order, "notes": "now"}, {**order, "notes": "now"}])
    assert run_import(installation, company.live, path, "orders").counts == (1, 1, 2, 0)


def test_a_preview_shows_cells_as_they_are(installation: Installation, company: Environments, tmp_path: Path) -> None:
    path = tmp_path / "customers.csv"
    path.write_text("nama,email\nBudi \\[/vip] [merah],budi@example.com\n")
    options = ["--company", str(company.live), "--from", "spreadsheet", "--preview"]
    shown = sapa(installation.data, "import", "customers", str(path), *options)
    assert shown.code == 0, shown.err
    assert r"Budi \[/vip] [merah]" in shown.out
