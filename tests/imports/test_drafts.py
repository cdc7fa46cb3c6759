"""A file is uploaded as a draft, previewed, mapped and started, over HTTP."""

import asyncio
from typing import Any

import httpx
import pytest

from sapa.db.pool import Database
from sapa.http.bodies import XLSX
from sapa.imports.mappings.types import ImportMapping
from sapa.imports.sources.spreadsheet_fields import find_column
from tests.conftest import Installation, connect
from tests.factories import Environments, make_key
from tests.imports.files import list_all
from tests.imports.foreign.customers import shopify_customers_new
from tests.imports.foreign.files import write_csv, write_xlsx
from tests.imports.foreign.orders import shopee_orders
from tests.imports.shops import make_shop
from tests.imports.test_uploads import CSV, wait_until_done

WORKBOOK = {"content-type": XLSX}
LIST = write_csv([["Pelanggan", "Nomor", "Asal", "Hobi"], ["Ayu Lestari", "0812345678", "Bandung", "catur"]], ";")


async def upload_draft(
    api: httpx.AsyncClient, content: bytes, resource: str = "customers", headers: dict[str, str] = CSV
) -> dict[str, Any]:
    params = {"resource": resource, "start": "false"}
    response = await api.post("/imports", params=params, content=content, headers=headers)
    assert response.status_code == 201, response.text
    made: dict[str, Any] = response.json()["data"]
    assert made["status"] == "draft"
    return made


async def preview(api: httpx.AsyncClient, id: str, **body: Any) -> dict[str, Any]:
    response = await api.post(f"/imports/{id}/preview", json=body)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()["data"]
    return found


async def start(api: httpx.AsyncClient, id: str, **body: Any) -> dict[str, Any]:
    response = await api.post(f"/imports/{id}/start", json=body)
    assert response.status_code == 200, response.text
    return await wait_until_done(api, id)


async def test_a_draft_is_recognised_previewed_and_started(api: httpx.AsyncClient) -> None:
    file = shopify_customers_new(make_shop(3, 30))
    draft = await upload_draft(api, file.content)
    shown = await preview(api, draft["id"])
    assert (shown["source"], shown["error"], shown["mapping"]) == ("shopify", None, None)
    assert shown["details"] == "UTF-8, separated by commas"
    assert shown["unread"] == ["Birthday (customer.metafields.custom.birthday)"]
    assert [one["line"] for one in shown["records"]] == list(range(2, 12))
    assert shown["records"][0]["record"]["email"] == file.expected[0]["email"]
    assert await list_all(api, "customers") == []
    done = await start(api, draft["id"], source="shopify", keepColumns=True)
    assert (done["status"], done["source"], done["effects"]) == ("succeeded", "shopify", False)
    assert (done["created"], done["position"]) == (len(file.expected), done["size"])
    again = await api.post(f"/imports/{draft['id']}/start", json={"source": "shopify"})
    assert (again.status_code, again.json()["error"]["code"]) == (409, "IMPORT_STARTED")
    looked = await api.post(f"/imports/{draft['id']}/preview", json={})
    assert looked.status_code == 409


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("source", "shopify"),
        ("mapping", "map_1"),
        ("keepColumns", "true"),
        ("timeZone", "Asia/Makassar"),
        ("effects", "false"),
    ],
)
async def test_a_draft_takes_no_option_that_its_start_decides(api: httpx.AsyncClient, name: str, value: str) -> None:
    params = {"resource": "customers", "start": "false", name: value}
    refused = await api.post("/imports", params=params, content=LIST, headers=CSV)
    assert refused.status_code == 400, refused.text
    assert refused.json()["error"]["details"][0]["field"] == name
    assert "/imports/{id}/start" in refused.json()["error"]["message"]


@pytest.mark.parametrize(("says", "customers"), [({}, 0), ({"dryRun": True}, 0), ({"dryRun": False}, 1)])
async def test_a_draft_that_was_uploaded_as_a_check_is_one(
    api: httpx.AsyncClient, says: dict[str, bool], customers: int
) -> None:
    params = {"resource": "customers", "start": "false", "dryRun": "true"}
    made = await api.post("/imports", params=params, content=b"email\nayu@example.com\n", headers=CSV)
    done = await start(api, made.json()["data"]["id"], **says)
    assert (done["status"], done["created"], done["dryRun"]) == ("succeeded", 1, customers == 0)
    assert len(await list_all(api, "customers")) == customers


async def test_a_spreadsheet_is_mapped_and_the_mapping_is_used_again(api: httpx.AsyncClient) -> None:
    draft = await upload_draft(api, LIST)
    shown = await preview(api, draft["id"])
    assert shown["source"] == "spreadsheet"
    assert "No column is mapped to email or phoneNumber" in shown["error"]
    assert shown["columns"][1] == {"name": "Nomor", "field": None, "samples": ["0812345678"]}
    columns = {"Pelanggan": "name", "Nomor": "phoneNumber", "Asal": "address.city", "Hobi": None}
    mapping = {"columns": columns, "keepColumns": True}
    shown = await preview(api, draft["id"], source="spreadsheet", mapping=mapping)
    [record] = shown["records"]
    assert record["record"]["additionalData"] == {"Hobi": "catur"}
    saved = await api.post("/import-mappings", json={"resource": "customers", "name": "Toko", "mapping": mapping})
    assert saved.status_code == 201, saved.text
    shown = await preview(api, draft["id"])
    assert (shown["error"], shown["mapping"]["columns"]) == (None, columns)
    done = await start(api, draft["id"], source="spreadsheet", mapping=mapping)
    assert (done["status"], done["created"]) == ("succeeded", 1)
    [customer] = await list_all(api, "customers")
    assert (customer["phoneNumber"], customer["firstName"], customer["additionalData"]) == (
        "+62812345678", "Ayu", {"Hobi": "catur"},
    )  # fmt: skip
    params = {"resource": "customers", "mapping": saved.json()["data"]["id"]}
    direct = await api.post("/imports", params=params, content=LIST, headers=CSV)
    assert direct.status_code == 201, direct.text
    assert (await wait_until_done(api, direct.json()["data"]["id"]))["unchanged"] == 1


async def test_a_problem_names_the_column_as_the_file_does(api: httpx.AsyncClient) -> None:
    """A cell that cannot be read, and one that the API refuses."""
    content = (
        b"Pelanggan,Surel Toko,Nomor WA Toko,Foto Toko\nAyu,ayu@,0812345678,\nBudi,,besok,\nCitra,,0812345679,foto\n"
    )
    columns = {"Pelanggan": "name", "Surel Toko": "email", "Nomor WA Toko": "phoneNumber", "Foto Toko": "imageUrl"}
    draft = await upload_draft(api, content)
    shown = await preview(api, draft["id"], source="spreadsheet", mapping={"columns": columns})
    assert [record["column"] for record in shown["records"]] == [None, "Nomor WA Toko", None]
    await start(api, draft["id"], source="spreadsheet", mapping={"columns": columns})
    problems = (await api.get(f"/imports/{draft['id']}/errors")).json()["data"]
    assert [(one["line"], one["column"]) for one in problems] == [
        (2, "Surel Toko"), (3, "Nomor WA Toko"), (4, "Foto Toko"),
    ]  # fmt: skip
    direct = await api.post("/imports", params={"resource": "customers"}, content=b"email\nayu@\n", headers=CSV)
    await wait_until_done(api, direct.json()["data"]["id"])
    [own] = (await api.get(f"/imports/{direct.json()['data']['id']}/errors")).json()["data"]
    assert (own["field"], own["column"]) == ("email", None)


async def test_a_number_with_more_digits_than_any_is_a_problem_of_its_line(api: httpx.AsyncClient) -> None:
    draft = await upload_draft(api, b"name,price,stock\nKopi," + b"9" * 5_000 + b",1\nTeh,5000,2\n", "products")
    shown = await preview(api, draft["id"], source="spreadsheet")
    assert [record["column"] for record in shown["records"]] == ["price", None]


@pytest.mark.parametrize(
    ("path", "column"),
    [
        ("shippingAddress.city", "Kota"), ("lineItems.0.price", "Harga"), ("lineItems[1].quantity", "Qty"),
        ("customer.phoneNumber", "HP"), ("customer.lastName", "Nama"), ("shippingLines.0.price", "Ongkir"),
        ("hp", "HP"), ("orderId", "Nota"), ("lineItems", None), ("notes", None),
    ],
)  # fmt: skip
def test_the_column_of_a_field_is_found(path: str, column: str | None) -> None:
    columns = {
        "Nota": "orderId", "Nama": "name", "HP": "phoneNumber", "Kota": "address.city", "Harga": "line.price",
        "Qty": "line.quantity", "Ongkir": "shipping", "Catatan": None,
    }  # fmt: skip
    assert find_column(ImportMapping(columns=columns), path) == column


async def test_a_workbook_is_uploaded_and_imported(api: httpx.AsyncClient) -> None:
    file = shopee_orders(make_shop(4, 20))
    params = {"resource": "orders", "source": "shopee"}
    response = await api.post("/imports", params=params, content=file.content, headers=WORKBOOK)
    assert response.status_code == 201, response.text
    done = await wait_until_done(api, response.json()["data"]["id"])
    assert (done["status"], done["format"], done["created"]) == ("succeeded", "xlsx", 20)


async def test_a_workbook_with_our_own_fields_has_effects(api: httpx.AsyncClient) -> None:
    content = write_xlsx(
        [["email", "firstName", "tags"], ["ayu@example.com", "Ayu", "vip, grosir"], ["nobody", "x", ""]]
    )
    response = await api.post("/imports", params={"resource": "customers"}, content=content, headers=WORKBOOK)
    done = await wait_until_done(api, response.json()["data"]["id"])
    assert (done["status"], done["effects"], done["created"], done["failed"]) == ("partial", True, 1, 1)
    [customer] = await list_all(api, "customers")
    assert customer["tags"] == ["vip", "grosir"]
    errors = (await api.get(f"/imports/{done['id']}/errors")).json()["data"]
    assert [(error["line"], error["field"]) for error in errors] == [(3, "email")]


async def test_a_file_that_the_worker_cannot_read_fails_with_the_reason(api: httpx.AsyncClient) -> None:
    content = write_xlsx([["a", "b"], ["1", "2"]])
    params = {"resource": "orders", "source": "shopee"}
    response = await api.post("/imports", params=params, content=content, headers=WORKBOOK)
    done = await wait_until_done(api, response.json()["data"]["id"])
    assert done["status"] == "failed"
    assert "not an export of orders from Shopee" in done["error"]


async def test_a_draft_waits_until_it_is_started(api: httpx.AsyncClient) -> None:
    draft = await upload_draft(api, b"email\nayu@example.com\n")
    other = await upload_draft(api, b"email\nbudi@example.com\n")
    assert (await start(api, other["id"]))["created"] == 1
    await asyncio.sleep(1.5)  # longer than the worker's pause
    assert (await api.get(f"/imports/{draft['id']}")).json()["data"]["status"] == "draft"


@pytest.mark.parametrize(
    ("params", "content", "headers", "words"),
    [
        ({"source": "magento"}, b"a,b\n", CSV, "must be one of shopify"),
        ({"source": "shopify"}, b"{}\n", {"content-type": "application/x-ndjson"}, "NDJSON has the API's own fields"),
        ({"source": "shopify"}, b"a,b\n1,2\n", CSV, "not an export of customers from Shopify"),
        ({}, "Nama;Surel\nJosé;x\n".encode("cp1252"), CSV, "unknown columns: Nama, Surel"),
        ({}, b"PK\x03\x04", CSV, "Excel workbook"),
        ({}, b"email\n", WORKBOOK, "text, not an Excel workbook"),
        ({"timeZone": "Mars", "source": "spreadsheet"}, b"Email,Nama\na@example.com,A\n", CSV, "not a time zone"),
        ({"mapping": "imap_00000000000000000000000000"}, b"a\n", CSV, "not found"),
    ],
)
async def test_an_unusable_upload_is_refused_at_once(
    api: httpx.AsyncClient, params: dict[str, str], content: bytes, headers: dict[str, str], words: str
) -> None:
    response = await api.post("/imports", params={"resource": "customers", **params}, content=content, headers=headers)
    assert response.status_code in {400, 404}, response.text
    assert words in response.json()["error"]["message"]
    assert (await api.get("/imports")).json()["meta"]["total"] == 0


async def test_an_unknown_time_zone_is_named(api: httpx.AsyncClient) -> None:
    draft = await upload_draft(api, b"email\nayu@example.com\n")
    for step in ("preview", "start"):
        refused = await api.post(f"/imports/{draft['id']}/{step}", json={"source": "spreadsheet", "timeZone": "Mars"})
        assert (refused.status_code, refused.json()["error"]["details"][0]["field"]) == (400, "timeZone")


@pytest.mark.parametrize("encoding", ["utf-16", "cp1252", pytest.param("utf-8-sig", marks=pytest.mark.long)])
async def test_our_own_fields_are_read_in_other_encodings(api: httpx.AsyncClient, encoding: str) -> None:
    content = "sep=;\r\nemail;firstName\r\njose@example.com;José\r\n".encode(encoding)
    response = await api.post("/imports", params={"resource": "customers"}, content=content, headers=CSV)
    assert response.status_code == 201, response.text
    assert (await wait_until_done(api, response.json()["data"]["id"]))["created"] == 1
    [customer] = await list_all(api, "customers")
    assert customer["firstName"] == "José"


async def test_mappings_are_saved_listed_changed_and_deleted(
    installation: Installation, database: Database, company: Environments, api: httpx.AsyncClient
) -> None:
    body = {"resource": "customers", "name": "Toko", "mapping": {"columns": {"HP": "phoneNumber"}}}
    made = (await api.post("/import-mappings", json=body)).json()["data"]
    assert made["mapping"] == {"columns": {"HP": "phoneNumber"}, "keepColumns": False, "decimalSign": None,
                               "dayOrder": None}  # fmt: skip
    again = await api.post("/import-mappings", json=body)
    assert (again.status_code, again.json()["error"]["code"]) == (409, "MAPPING_EXISTS")
    other = await api.post("/import-mappings", json=body | {"name": "Lain"})
    renamed = await api.put(f"/import-mappings/{made['id']}", json=body | {"name": "Lain"})
    assert renamed.status_code == 409
    changed = await api.put(f"/import-mappings/{made['id']}", json=body | {"name": "Baru"})
    assert changed.json()["data"]["name"] == "Baru"
    assert (await api.get(f"/import-mappings/{made['id']}")).json()["data"]["name"] == "Baru"
    listed = (await api.get("/import-mappings", params={"resource": "customers"})).json()
    assert ([one["name"] for one in listed["data"]], listed["meta"]["total"]) == (["Lain", "Baru"], 2)
    bad = await api.post("/import-mappings", json=body | {"name": "x", "mapping": {"columns": {"HP": "hobby"}}})
    assert bad.json()["error"]["details"][0]["field"] == "mapping.columns"
    key = await make_key(database, company.live, ["orders:READ", "orders:WRITE"])
    async with connect(installation, key.raw) as limited:
        assert (await limited.get("/import-mappings")).json()["data"] == []
        assert (await limited.get(f"/import-mappings/{made['id']}")).status_code == 403
        assert (await limited.delete(f"/import-mappings/{made['id']}")).status_code == 403
    assert (await api.delete(f"/import-mappings/{other.json()['data']['id']}")).status_code == 204
    assert (await api.get("/import-mappings")).json()["meta"]["total"] == 1


async def test_workers_of_earlier_versions_leave_a_draft_alone(
    api: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    """They look for uploads that nobody holds, whatever their status."""
    draft = await upload_draft(api, b"email\nayu@example.com\n")
    async with database.connection() as db:
        is_free = await db.fetchval(
            "SELECT held_until < clock_timestamp() FROM imports WHERE company_id = $1 AND id = $2",
            company.live, draft["id"],
        )  # fmt: skip
    assert not is_free
    assert (await start(api, draft["id"]))["created"] == 1
