import asyncio
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import psutil
import pytest

from sapa.db.pool import Database
from tests import depth
from tests.conftest import Installation, connect
from tests.db import scratch
from tests.factories import Environments, make_key
from tests.imports.files import list_all

PATIENCE = 120.0
CSV = {"content-type": "text/csv"}
NDJSON = {"content-type": "application/x-ndjson"}


async def upload(api: httpx.AsyncClient, content: bytes, resource: str = "customers", **more: Any) -> dict[str, Any]:
    headers = more.pop("headers", CSV)
    response = await api.post("/imports", params={"resource": resource, **more}, content=content, headers=headers)
    assert response.status_code == 201, response.text
    made: dict[str, Any] = response.json()["data"]
    assert (made["status"], made["size"], made["position"]) == ("queued", len(content), 0)
    return made


async def wait_until_done(api: httpx.AsyncClient, id: str) -> dict[str, Any]:
    deadline = time.monotonic() + PATIENCE
    while True:
        found: dict[str, Any] = (await api.get(f"/imports/{id}")).json()["data"]
        if found["finishedAt"]:
            return found
        assert time.monotonic() < deadline, found
        await asyncio.sleep(0.1)


async def test_an_uploaded_file_is_imported_by_the_worker(api: httpx.AsyncClient, database: Database) -> None:
    made = await upload(api, b"email,firstName\na@example.com,Ayu\nnobody,x\nb@example.com,Budi\nb@example.com,x\n")
    done = await wait_until_done(api, made["id"])
    assert (done["status"], done["rows"], done["created"], done["failed"]) == ("partial", 4, 2, 2)
    assert done["position"] == done["size"]
    assert {one["firstName"] for one in await list_all(api, "customers")} == {"Ayu", "Budi"}
    errors = (await api.get(f"/imports/{made['id']}/errors", params={"limit": 1})).json()
    assert (errors["data"][0]["line"], errors["data"][0]["field"]) == (3, "email")
    assert (errors["meta"]["total"], errors["meta"]["hasNextPage"]) == (2, True)
    errors = (await api.get(f"/imports/{made['id']}/errors", params={"limit": 1, "page": 2})).json()
    assert [error["line"] for error in errors["data"]] == [5]
    listed = (await api.get("/imports")).json()
    assert ([one["id"] for one in listed["data"]], listed["meta"]["total"]) == ([made["id"]], 1)
    async with database.connection() as db:
        assert await db.fetchval("SELECT count(*) FROM import_chunks WHERE import_id = $1", made["id"]) == 0


async def test_a_dry_run_and_ndjson_and_the_other_resources(api: httpx.AsyncClient) -> None:
    product = b'{"productId":"kopi","name":"Kopi","variants":[{"title":"M","price":5}]}\n'
    order = b'{"orderId":"a","lineItems":[{"title":"Kopi","price":5,"quantity":1}]}\n'
    trial = await upload(api, product, "products", headers=NDJSON, dryRun="true")
    assert (await wait_until_done(api, trial["id"]))["created"] == 1
    assert await list_all(api, "products") == []
    for resource, content in (("products", product), ("orders", order)):
        made = await upload(api, content, resource, headers=NDJSON)
        assert (await wait_until_done(api, made["id"]))["status"] == "succeeded"
        assert len(await list_all(api, resource)) == 1


@pytest.mark.parametrize(
    ("params", "headers", "content", "status", "words"),
    [
        ({"resource": "customers"}, CSV, b"email,nick\n", 400, "nick"),
        ({"resource": "customers"}, CSV, b"", 400, "empty"),
        ({"resource": "orders"}, CSV, b"lineItems." + b"9" * 5_000 + b".title\n", 400, "unknown"),
        ({"resource": "customers"}, CSV, b",".join(b"additionalData.%d" % n for n in range(4_000)), 400, "1,000"),
        ({"resource": "tickets"}, CSV, b"email\n", 400, "resource"),
        ({}, CSV, b"email\n", 400, "resource"),
        ({"resource": "customers", "dryRun": "maybe"}, CSV, b"email\n", 400, "dryRun"),
        ({"resource": "customers"}, {"content-type": "application/json"}, b"[]", 415, "text/csv"),
    ],
)
async def test_an_unusable_file_is_refused_at_once(
    api: httpx.AsyncClient, params: dict[str, str], headers: dict[str, str], content: bytes, status: int, words: str
) -> None:
    response = await api.post("/imports", params=params, headers=headers, content=content)
    assert response.status_code == status
    assert words in response.json()["error"]["message"]
    assert (await api.get("/imports")).json()["meta"]["total"] == 0


async def test_the_resources_own_scope_is_needed(
    installation: Installation, database: Database, company: Environments, api: httpx.AsyncClient
) -> None:
    made = await upload(api, b"name\n", "products")
    key = await make_key(database, company.live, ["customers:READ", "customers:WRITE", "orders:READ"])
    async with connect(installation, key.raw) as limited:
        for resource in ("products", "orders"):
            response = await limited.post("/imports", params={"resource": resource}, headers=CSV, content=b"name\n")
            assert (response.status_code, response.json()["error"]["code"]) == (403, "INSUFFICIENT_SCOPE")
        assert (await limited.get(f"/imports/{made['id']}")).status_code == 403
        assert (await limited.get("/imports", params={"resource": "products"})).status_code == 403
        own = await upload(limited, b"email\n")
        assert [one["id"] for one in (await limited.get("/imports")).json()["data"]] == [own["id"]]
    assert len((await api.get("/imports")).json()["data"]) == 2
    key = await make_key(database, company.live, ["products:READ", "products:WRITE"])
    async with connect(installation, key.raw) as other:
        await upload(other, b"name\n", "products")
        assert len((await other.get("/imports")).json()["data"]) == 2


async def test_an_upload_survives_a_killed_worker(
    installation: Installation, api: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    rows = depth.examples(15_000)
    lines = [f"shop-{n},customer{n}@example.com,Ayu {n}\n" for n in range(rows)]
    made = await upload(api, ("externalId,email,firstName\n" + "".join(lines) + "bad,nobody,x\n").encode())
    deadline = time.monotonic() + PATIENCE
    while (await api.get(f"/imports/{made['id']}")).json()["data"]["rows"] == 0:
        assert time.monotonic() < deadline
    [worker] = [child for child in children_of(installation) if "worker" in child.cmdline()]
    worker.send_signal(signal.SIGKILL)
    done = await wait_until_done(api, made["id"])
    assert (done["rows"], done["created"], done["failed"]) == (rows + 1, rows, 1)
    async with database.connection() as db:
        assert await db.fetchval("SELECT count(*) FROM customers WHERE company_id = $1", company.live) == rows
        assert await db.fetchval("SELECT count(*) FROM events WHERE company_id = $1", company.live) == rows


async def test_a_file_that_keeps_failing_unexpectedly_is_marked_failed_and_does_not_block_others(
    installation: Installation, api: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    order = b'{"orderId":"%s","notes":"%s","lineItems":[{"title":"Kopi","price":5,"quantity":1}]}\n'
    word = f"poison {company.live}"
    async with planted_trouble(installation, word):
        bad = await upload(api, order % (b"a", b"") + order % (b"b", word.encode()), "orders", headers=NDJSON)
        good = await upload(api, order % (b"c", b""), "orders", headers=NDJSON)
        assert (await wait_until_done(api, good["id"]))["status"] == "succeeded"
        done = await wait_until_done(api, bad["id"])
    assert (done["status"], done["rows"], done["created"]) == ("failed", 1, 1)
    assert "5 times after line 1" in done["error"]
    logged = [
        line for line in installation.log.read_text().splitlines() if bad["id"] in line and "import failed" in line
    ]
    assert len(logged) == 5
    assert {one["orderId"] for one in await list_all(api, "orders")} == {"a", "c"}
    async with database.connection() as db:
        assert await db.fetchval("SELECT count(*) FROM import_chunks WHERE import_id = $1", bad["id"]) == 0


@asynccontextmanager
async def planted_trouble(installation: Installation, word: str) -> AsyncIterator[None]:
    """A database error that the app does not expect."""
    async with scratch.connect(installation.server.owner_url) as owner:
        await owner.execute(f"ALTER TABLE orders ADD CONSTRAINT planted CHECK (notes <> '{word}') NOT VALID")
        yield
        await owner.execute("ALTER TABLE orders DROP CONSTRAINT planted")


def children_of(installation: Installation) -> list[psutil.Process]:
    return psutil.Process(installation.process.pid).children(recursive=True)
