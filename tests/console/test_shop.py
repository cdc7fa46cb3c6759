"""Customers, orders, products and files at the console: what the API says, with what people do most."""

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from sapa.db.pool import Database
from sapa.people.types import Role
from tests.conftest import Installation, connect
from tests.console.people import make_person, open_browser, read_token
from tests.console.seats import read as read_page
from tests.factories import Environments, make_company, make_customer, make_import, make_key, make_order, make_product
from tests.http.wire import eventually
from tests.imports.foreign.files import write_xlsx
from tests.messaging.conftest import connect_messaging
from tests.messaging.consents.steps import is_refused, make_promo, write
from tests.shipping import parcels


@pytest.fixture
async def agent(
    installation: Installation, database: Database, company: Environments
) -> AsyncIterator[httpx.AsyncClient]:
    async with open_browser(installation, await make_person(database, company, Role.AGENT)) as client:
        yield client


@pytest.fixture
async def owner(
    installation: Installation, database: Database, company: Environments
) -> AsyncIterator[httpx.AsyncClient]:
    async with open_browser(installation, await make_person(database, company)) as client:
        yield client


@pytest.mark.smoke
async def test_a_customer_is_found_and_shown_with_orders_and_points(
    api: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    ayu = await make_customer(api, firstName="Ayu", lastName="<Lestari>", phoneNumber="0812-3456-789")
    await make_customer(api, firstName="Budi")
    order = await make_order(api, customerId=ayu["id"])
    listed = (await agent.get("/live/customers", params={"search": "lestari"})).text
    assert "Ayu &lt;Lestari&gt;" in listed
    assert "Budi" not in listed
    assert "1 in all" in listed
    shown = (await agent.get(f"/live/customers/{ayu['id']}")).text
    assert f"#{order['orderNumber']}" in shown
    assert "+62 812-3456-789" in shown
    assert "Ayu" not in (await agent.get("/test/customers")).text


async def test_points_are_adjusted_and_a_refusal_is_shown_in_place(
    api: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    id = (await make_customer(api))["id"]
    token = await read_token(agent)
    form = {"token": token, "direction": "add", "points": "50", "reason": "sorry"}
    assert (await agent.post(f"/live/customers/{id}/points", data=form)).status_code == 303
    refused = await agent.post(f"/live/customers/{id}/points", data=form | {"direction": "deduct", "points": "51"})
    assert refused.status_code == 409
    assert 'value="51"' in refused.text
    wallet = (await api.get(f"/loyalty/customers/{id}/wallet")).json()["data"]
    assert wallet["availablePoints"] == "50"


async def test_consent_is_shown_and_a_persons_stop_is_lifted_only_with_proof(
    installation: Installation, database: Database, company: Environments, agent: httpx.AsyncClient
) -> None:
    key = (await make_key(database, company.test)).raw
    async with connect(installation, key) as shop, connect_messaging(installation, key) as messaging:
        customer = await make_customer(shop, phoneNumber="+628123456777")
        await make_promo(messaging)
        await write(messaging, database, company.test, "STOP", "+628123456777")
        page = f"/test/customers/{customer['id']}"
        shown = (await agent.get(f"{page}?tab=consent")).text
        assert "WhatsApp: unsubscribe" in shown
        assert "by keyword" in shown
        form = {"token": await read_token(agent), "app": "MSGAPP_CLOUD", "status": "subscribe"}
        refused = await agent.post(f"{page}/consents", data=form)
        assert refused.status_code == 409
        assert "unsubscribed in person" in refused.text
        assert await is_refused(messaging, "+628123456777")
        proved = await agent.post(
            f"{page}/consents", data=form | {"proof.text": "Mau <lagi>", "proof.place": "Telepon"}
        )
        assert proved.status_code == 303
        assert not await is_refused(messaging, "+628123456777")
        newest = (await shop.get(f"/customers/{customer['id']}/consents")).json()["data"][0]
        assert (newest["source"], newest["byPerson"], newest["actor"]["type"]) == ("console", False, "user")
        assert newest["proof"]["text"] == "Mau <lagi>"
        assert "Mau &lt;lagi&gt;" in (await agent.get(f"{page}?tab=consent")).text


async def test_an_order_moves_on_and_a_wrong_move_is_explained(
    api: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    id = (await make_order(api))["id"]
    token = await read_token(agent)
    assert (await agent.post(f"/live/orders/{id}", data={"token": token, "financialStatus": "paid"})).status_code == 303
    assert (await api.get(f"/orders/{id}")).json()["data"]["financialStatus"] == "paid"
    await agent.post(f"/live/orders/{id}", data={"token": token, "fulfillmentStatus": "fulfilled"})
    refused = await agent.post(f"/live/orders/{id}", data={"token": token, "status": "cancelled"})
    assert refused.status_code == 409
    assert "The order can&#39;t become cancelled: it is shipped. Refund it" in refused.text


async def test_an_order_is_paid_refunded_fulfilled_and_edited_in_parts(
    api: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    order = await make_order(api)
    id, line = order["id"], order["lineItems"][0]["id"]
    token, path = await read_token(agent), f"/live/orders/{order['id']}"

    async def send(what: str, **form: str) -> None:
        response = await agent.post(f"{path}/{what}", data={"token": token, **form})
        assert response.status_code == 303, response.text

    async def read() -> dict[str, Any]:
        found: dict[str, Any] = (await api.get(f"/orders/{id}")).json()["data"]
        return found

    await send("payments", amount="50000", method="cash", reference="K-1")
    await send("payments", amount="100000", method="bank_transfer", once="a" * 32)
    await send("payments", amount="100000", method="bank_transfer", once="a" * 32)
    assert [payment["amount"] for payment in (await read())["payments"]] == [50000, 100000]
    await send("fulfillments", **{f"fulfil-{line}": "1"})
    await send("refunds", **{f"refund-{line}": "1", "restock": "1", "reason": "Rusak"})
    after = await read()
    assert (after["lineItems"][0]["fulfilledQuantity"], after["lineItems"][0]["refundedQuantity"]) == (1, 1)
    edited = {f"quantity-{line}": "3", "title": "Tas", "price": "20000", "quantity": "1", "shippingTitle": "JNE",
              "shippingPrice": "9000", "discount": "10%"}  # fmt: skip
    await send("edit", **edited)
    after = await read()
    assert (after["total"], after["shippingTotal"], after["discountTotal"]) == (229500, 9000, 24500)
    page = (await agent.get(path)).text
    for text in ("K-1", "Rusak", "payment recorded", "refund recorded", "contents edited", "partially refunded", "Tas"):
        assert text in page
    actors = [entry["actor"]["type"] for entry in (await api.get(f"/orders/{id}/history")).json()["data"]]
    assert actors == ["user"] * 5 + ["api_key"]
    assert "payment recorded" in (await agent.get(f"{path}/history")).text
    refused = await agent.post(f"{path}/refunds", data={"token": token, "amount": "999999"})
    assert refused.status_code == 409
    assert 'value="999999"' in refused.text
    assert "You can refund up to Rp 75,000 , and the refund is Rp 999,999 ." in read_page(refused.text)
    await agent.post("/language", data={"token": token, "language": "id"})
    refused = await agent.post(f"{path}/refunds", data={"token": token, "amount": "999999"})
    assert "Paling banyak Rp 75.000 bisa dikembalikan, bukan Rp 999.999 ." in read_page(refused.text)
    await agent.post("/language", data={"token": token, "language": "en"})
    wrong = await agent.post(f"{path}/payments", data={"token": token, "amount": "", "method": "cash"})
    assert (wrong.status_code, "Enter an amount" in wrong.text) == (400, True)
    assert wrong.text.count('id="amount-problem"') == 1
    for name in ("discount", "shippingPrice", "price", "amount", "shipping"):
        assert re.search(rf'name="{name}"[^>]+inputmode="decimal"', wrong.text), name
    assert '<option value="percentage" selected>%</option>' in wrong.text
    await send(
        "edit", **edited | {"title": "", f"quantity-{line}": "3", "discount": "20", "discountKind": "percentage"}
    )
    assert (await read())["discountTotal"] == 49000
    await send("edit", **edited | {"title": "", f"quantity-{line}": "3", "discount": "20000", "discountKind": "amount"})
    assert (await read())["discountTotal"] == 20000


async def test_an_edit_keeps_what_the_form_does_not_show(api: httpx.AsyncClient, agent: httpx.AsyncClient) -> None:
    order = await make_order(
        api,
        shippingLines=[
            {"title": "JNE", "price": 9000, "code": "REG", "discount": {"percentage": 50, "title": "Promo"}}
        ],
        fees=[{"title": "Asuransi", "amount": 2500}],
        taxLines=[{"title": "PPN", "rate": 11, "included": True}],
    )
    path = f"/live/orders/{order['id']}"
    form = {"token": await read_token(agent), f"quantity-{order['lineItems'][0]['id']}": "1", "shippingTitle": "JNE",
            "shippingPrice": "9000", "discount": "", "title": "", "quantity": "1"}  # fmt: skip
    assert (await agent.post(f"{path}/edit", data=form)).status_code == 303
    after = (await api.get(f"/orders/{order['id']}")).json()["data"]
    same = ("shippingLines", "fees", "shippingTotal", "feeTotal")
    assert {name: after[name] for name in same} == {name: order[name] for name in same}
    assert [tax["rate"] for tax in after["taxLines"]] == [11]
    refused = await agent.post(f"{path}/edit", data=form | {"discount": "999999999"})
    assert refused.status_code == 400
    assert len(re.findall(r"<details[^>]* open>", refused.text)) == 1


async def test_a_draft_is_made_changed_and_completed(
    api: httpx.AsyncClient, agent: httpx.AsyncClient, owner: httpx.AsyncClient
) -> None:
    token = await read_token(agent)
    form = {"token": token, "title": ["Kopi", ""], "price": ["75000", ""], "quantity": ["2", "1"],
            "shippingPrice": "10000", "firstName": "Ayu", "phoneNumber": "08123456789"}  # fmt: skip
    refused = await agent.post("/live/draft-orders/new", data=form | {"phoneNumber": "12"})
    assert refused.status_code == 400
    assert 'name="title" value="Kopi"' in refused.text
    assert 'name="price" value="75000"' in refused.text
    made = await agent.post("/live/draft-orders/new", data=form)
    assert made.status_code == 303, made.text
    path = made.headers["location"].removeprefix("/console")
    id = path.rpartition("/")[2]
    draft = (await api.get(f"/draft-orders/{id}")).json()["data"]
    line = draft["lineItems"][0]["id"]
    assert (draft["total"], draft["customer"]["firstName"]) == (160000, "Ayu")
    edited = {
        "token": token,
        f"quantity-{line}": "1",
        "shippingTitle": "JNE",
        "shippingPrice": "9000",
        "discount": "5000",
    }
    assert (await agent.post(path, data=edited)).status_code == 303
    assert "Rp\u00a079,000" in (await agent.get(path)).text
    listed = (await agent.get("/live/draft-orders?status=open")).text
    assert listed.count("/console/live/draft-orders/dord_") == 1
    done = await agent.post(f"{path}/complete", data={"token": token})
    assert done.headers["location"].startswith("/console/live/orders/order_")
    again = await agent.post(f"{path}/complete", data={"token": token})
    assert again.status_code == 409
    other = (await api.post("/draft-orders", json={"lineItems": [{"title": "x", "price": 1, "quantity": 1}]})).json()
    gone = f"/live/draft-orders/{other['data']['id']}/delete"
    assert (await agent.post(gone, data={"token": token})).status_code == 403
    assert (await owner.post(gone, data={"token": await read_token(owner)})).status_code == 303
    assert (await api.get("/draft-orders")).json()["meta"]["total"] == 1


async def test_lists_can_be_filtered_and_turned(api: httpx.AsyncClient, agent: httpx.AsyncClient) -> None:
    for _ in range(26):
        await make_order(api)
    await make_product(api, name="Kopi Gayo", variants=[{"title": "M", "price": 1, "inventoryQuantity": 7}])
    first, second = (await agent.get("/live/orders")).text, (await agent.get("/live/orders?page=2")).text
    assert (first.count("/console/live/orders/order_"), second.count("/console/live/orders/order_")) == (25, 1)
    assert 'rel="next"' in first
    assert 'rel="prev"' in second
    assert (await agent.get("/live/orders?status=cancelled")).text.count("/console/live/orders/order_") == 0
    assert "7" in (await agent.get("/live/products?search=gayo")).text
    assert "use 1 to" in (await agent.get("/live/orders?page=0")).text


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("createdFrom=yesterday", "must be an ISO 8601 date-time"),
        ("createdFrom=2026-11-01T00:00:00+07:00", "from 1 Nov 2026, 00:00 WIB to –"),
        ("createdTo=9999-12-31T23:59:59Z", "No "),
    ],
    ids=["unreadable", "unencoded", "endless"],
)
async def test_a_period_that_cannot_be_shown_is_explained(agent: httpx.AsyncClient, query: str, words: str) -> None:
    for path in ("/live/orders", "/live/shipments"):
        listed = await agent.get(f"{path}?{query}")
        assert (listed.status_code, words in listed.text) == (200, True), listed.text
        assert f'<input type="hidden" name="{query[:9]}' in listed.text, "a search keeps the period"


async def test_decimals_are_written_in_the_readers_language(api: httpx.AsyncClient, agent: httpx.AsyncClient) -> None:
    await agent.post("/language", data={"token": await read_token(agent), "language": "id"})
    taxes, discounts = [{"title": "PPN", "rate": 11.5, "included": True}], [{"percentage": 2.5}]
    order = await make_order(api, taxLines=taxes, discounts=discounts)
    package = {"weight": 1.5, "length": 10.5, "width": 20, "height": 4.5}
    parcel = await parcels.create(api, "custom", package=package)
    page = read_page((await agent.get(f"/live/orders/{order['id']}")).text)
    assert ("PPN 11,5%" in page, "2,5%" in page) == (True, True), page
    assert "10,5 × 20 × 4,5 cm" in read_page((await agent.get(f"/live/shipments/{parcel['id']}")).text)


async def test_a_file_comes_in_and_goes_out(api: httpx.AsyncClient, owner: httpx.AsyncClient) -> None:
    token = await read_token(owner)
    file = ("c.csv", b"email,firstName\nayu@example.com,Ayu\nnobody,Budi\n", "text/csv")
    sent = await owner.post("/live/imports", data={"token": token, "resource": "customers"}, files={"file": file})
    assert sent.status_code == 303
    for _ in range(150):
        page = (await owner.get(sent.headers["location"].removeprefix("/console"))).text
        if "data-refresh" not in page:
            break
        await asyncio.sleep(0.2)
    assert "1 created" in page
    assert "What failed" in page
    out = await owner.get("/live/exports/customers.csv")
    assert out.headers["content-disposition"] == 'attachment; filename="customers.csv"'
    assert "ayu@example.com" in out.text
    assert (await owner.get("/live/exports/keys.csv")).status_code == 404
    wrong = await owner.post(
        "/live/imports", data={"token": token, "resource": "customers"}, files={"file": ("c.pdf", b"x", "text/csv")}
    )
    assert "choose a .csv, .xlsx or .ndjson file" in wrong.text


async def test_another_companys_things_are_out_of_reach(
    installation: Installation, database: Database, owner: httpx.AsyncClient
) -> None:
    other = await make_company(database)
    async with connect(installation, (await make_key(database, other.live)).raw) as api:
        created = {
            "customers": (await make_customer(api))["id"],
            "orders": (await make_order(api))["id"],
            "products": (await make_product(api))["id"],
            "imports": (await make_import(api))["id"],
        }
    token = await read_token(owner)
    for kind, id in created.items():
        unknown = await owner.get(f"/live/{kind}/{id[:-4]}0000")
        found = await owner.get(f"/live/{kind}/{id}")
        assert (found.status_code, found.text.count("resource not found")) == (
            404,
            unknown.text.count("resource not found"),
        )
    for path in (f"/live/orders/{created['orders']}", f"/live/customers/{created['customers']}/points"):
        form = {"token": token, "status": "archived", "direction": "add", "points": "1"}
        assert (await owner.post(path, data=form)).status_code == 404


async def test_pages_stay_small_however_much_they_show(api: httpx.AsyncClient, agent: httpx.AsyncClient) -> None:
    address = dict.fromkeys(("address1", "address2", "city", "province", "country", "zip"), "y" * 500)
    tags = [f"{number:03d}".ljust(100, "x") for number in range(250)]
    for _ in range(25):
        customer = await make_customer(api, tags=tags, addresses=[address] * 50)
    variants = [
        {"title": f"{number:03d}".ljust(255, "v"), "price": 1, "sku": f"{number:03d}".ljust(255, "k")}
        for number in range(100)
    ]
    product = await make_product(api, name="n" * 255, description="d" * 20_000, variants=variants)
    lines = [{"title": f"{number:03d}".ljust(255, "t"), "price": 1, "quantity": 1} for number in range(500)]
    order = await make_order(api, customerId=customer["id"], lineItems=lines, notes="o" * 5_000)
    pages = ["/customers", "/orders", "/products", "/loyalty"]
    pages += [f"/customers/{customer['id']}", f"/products/{product['id']}", f"/orders/{order['id']}"]
    sizes = {path: len((await agent.get(f"/live{path}")).content) for path in pages}
    assert {path: size for path, size in sizes.items() if size >= 200_000} == {}
    assert "The first 100 of 500; the API has all." in (await agent.get(f"/live/orders/{order['id']}")).text


async def test_a_file_that_is_too_large_is_refused(owner: httpx.AsyncClient) -> None:
    form = {"token": await read_token(owner), "resource": "customers"}
    file = ("c.csv", b"email\n" + b"a@example.com\n" * 2_400_000, "text/csv")
    refused = await owner.post("/live/imports", data=form, files={"file": file})
    assert refused.status_code == 413
    assert "The file is larger than 32 MiB." in refused.text


@pytest.mark.parametrize("path", ["/live/customers", "/live/orders", "/live/products", "/live/loyalty"])
async def test_an_empty_list_links_to_the_import_for_those_who_may_import(
    owner: httpx.AsyncClient, agent: httpx.AsyncClient, path: str
) -> None:
    way_on = '<a href="/console/live/imports">Import a file</a>'
    assert way_on in (await owner.get(path)).text
    assert way_on not in (await agent.get(path)).text
    assert way_on not in (await owner.get(f"{path}?search=nobody")).text


async def test_columns_of_a_spreadsheet_are_mapped_in_a_form(api: httpx.AsyncClient, owner: httpx.AsyncClient) -> None:
    token = await read_token(owner)
    file = ("pelanggan.csv", "Pelanggan;Nomor;Hobi\nAyu Lestari;0812345678;catur\n".encode("cp1252"), "text/csv")
    sent = await owner.post("/live/imports", data={"token": token, "resource": "customers"}, files={"file": file})
    assert sent.status_code == 303, sent.text
    path = sent.headers["location"].removeprefix("/console")
    assert path.endswith("/mapping")
    page = (await owner.get(path)).text
    assert "Choose a column for an email or a phone number." in page
    assert '<option value="phoneNumber">Phone number</option>' in page
    assert "UTF-8, separated by semicolons" in page
    form = {
        "token": token,
        "source": "spreadsheet",
        "shown_source": "spreadsheet",
        "column": ["Pelanggan", "Nomor", "Hobi"],
        "field": ["name", "phoneNumber", ""],
        "keep_columns": "1",
        "name": "Daftar toko",
    }
    shown = await owner.post(path, data=form | {"action": "preview"})
    assert shown.status_code == 200
    assert "+62812345678" in shown.text
    assert '<span class="quiet">Hobi</span> catur' in shown.text
    started = await owner.post(path, data=form | {"action": "start"})
    assert started.status_code == 303, started.text
    for _ in range(150):
        page = (await owner.get(started.headers["location"].removeprefix("/console"))).text
        if "data-refresh" not in page:
            break
        await asyncio.sleep(0.2)
    assert "1 created" in page
    [mapping] = (await api.get("/import-mappings")).json()["data"]
    assert (mapping["name"], mapping["mapping"]["columns"]["Nomor"]) == ("Daftar toko", "phoneNumber")
    again = await owner.post("/live/imports", data={"token": token, "resource": "customers"}, files={"file": file})
    page = (await owner.get(again.headers["location"].removeprefix("/console"))).text
    assert "Choose a column" not in page
    assert '<option value="phoneNumber" selected>' in page


async def test_a_failed_line_names_the_column_as_the_file_does(owner: httpx.AsyncClient) -> None:
    token = await read_token(owner)
    file = ("pelanggan.csv", b"Pelanggan,Nomor Toko\nAyu Lestari,besok\n", "text/csv")
    sent = await owner.post("/live/imports", data={"token": token, "resource": "customers"}, files={"file": file})
    path = sent.headers["location"].removeprefix("/console")
    form: dict[str, str | list[str]] = {"token": token, "source": "spreadsheet", "shown_source": "spreadsheet"}
    form |= {"column": ["Pelanggan", "Nomor Toko"], "field": ["name", "phoneNumber"]}
    assert "Nomor Toko: " in read_page((await owner.post(path, data=form | {"action": "preview"})).text)
    started = await owner.post(path, data=form | {"action": "start"})
    address = started.headers["location"].removeprefix("/console")

    async def find_failed() -> str | None:
        return (await owner.get(address)).text.partition("What failed")[2] or None

    failed = await eventually(find_failed)
    assert '<td data-name="Field">Nomor Toko</td>' in failed
    assert "\r\n2,Nomor Toko," in (await owner.get(f"{address}/errors.csv")).text


async def test_a_recognised_export_is_shown_before_it_is_imported(owner: httpx.AsyncClient) -> None:
    token = await read_token(owner)
    content = b"Name,Email,Financial Status,Total,Lineitem quantity,Lineitem name,Lineitem price,Risk Level\n"
    file = ("orders.csv", content + b"#1001,ayu@example.com,paid,50000.00,1,Kopi,50000.00,Low\n", "text/csv")
    sent = await owner.post("/live/imports", data={"token": token, "resource": "orders"}, files={"file": file})
    page = (await owner.get(sent.headers["location"].removeprefix("/console"))).text
    assert "Read as: Shopify (UTF-8, separated by commas)" in page
    assert "Columns that are not read: Risk Level" in page
    assert '<span class="quiet">Order number</span> #1001' in page
    wrong = await owner.get(sent.headers["location"].removeprefix("/console") + "?source=shopee")
    assert "not an export of orders from Shopee" in wrong.text


async def test_what_was_chosen_for_a_file_stays_chosen(owner: httpx.AsyncClient) -> None:
    """Only a file from elsewhere is history by itself."""
    token = await read_token(owner)
    effects, check = 'name="effects" value="1" checked', 'name="dry_run" value="1" checked'
    own = ("c.xlsx", write_xlsx([["email", "firstName"], ["ayu@example.com", "Ayu"]]), "application/octet-stream")
    form = {"token": token, "resource": "customers"}
    sent = await owner.post("/live/imports", data=form | {"dry_run": "1"}, files={"file": own})
    path = sent.headers["location"].removeprefix("/console")
    page = (await owner.get(path)).text
    assert (effects in page, check in page) == (True, True)
    shown = (await owner.post(path, data={"token": token, "action": "preview", "dry_run": "1"})).text
    assert (effects in shown, check in shown) == (False, True)
    foreign = ("c.csv", b"Nama;No HP\nAyu;08123456789\n", "text/csv")
    sent = await owner.post("/live/imports", data=form, files={"file": foreign})
    page = (await owner.get(sent.headers["location"].removeprefix("/console"))).text
    assert (effects in page, check in page) == (False, False)
