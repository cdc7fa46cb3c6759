"""Customers, products and orders made, changed and deleted by form, without a script."""

import re
from collections.abc import AsyncIterator
from html import unescape
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from sapa.db.pool import Database
from sapa.people.types import Role
from tests.conftest import Installation
from tests.console.people import make_person, open_browser, read_token
from tests.factories import Environments, make_customer, make_order, make_product
from tests.messaging.files.corpus import PDF, make_image

Json = dict[str, Any]


@pytest.fixture
async def owner(
    installation: Installation, database: Database, company: Environments
) -> AsyncIterator[httpx.AsyncClient]:
    async with open_browser(installation, await make_person(database, company)) as client:
        yield client


@pytest.fixture
async def agent(
    installation: Installation, database: Database, company: Environments
) -> AsyncIterator[httpx.AsyncClient]:
    async with open_browser(installation, await make_person(database, company, Role.AGENT)) as client:
        yield client


async def send(browser: httpx.AsyncClient, path: str, **form: Any) -> httpx.Response:
    names = {name.replace("__", "."): value for name, value in form.items()}
    return await browser.post(f"/live{path}", data={"token": await read_token(browser), **names})


def name_made(response: httpx.Response) -> str:
    """The id of what a form made."""
    assert response.status_code == 303, response.text
    return response.headers["location"].rpartition("/")[2]


@pytest.mark.smoke
async def test_a_customer_is_added_changed_and_deleted(api: httpx.AsyncClient, owner: httpx.AsyncClient) -> None:
    id = name_made(
        await send(
            owner, "/customers/new", firstName="Ayu", phoneNumber="0812 3456 7801", tags="vip, reseller, vip",
            address__id="", address__address1="Jl. Merdeka 17", address__address2="", address__city="Bandung",
            address__province="", address__zip="40111", address__country="", mainAddress="0",
        )
    )  # fmt: skip
    made = (await api.get(f"/customers/{id}")).json()["data"]
    assert (made["phoneNumber"], made["tags"]) == ("+6281234567801", ["vip", "reseller"])
    assert (made["addresses"][0]["city"], made["addresses"][0]["mainAddress"]) == ("Bandung", True)
    assert "Jl. Merdeka 17" in (await owner.get(f"/live/customers/{id}/edit")).text
    blank = {f"address__{name}": "" for name in ("id", "address1", "address2", "province", "zip", "country")}
    lost = await send(owner, f"/customers/{id}/edit", email="ayu@toko.example", address__city="Garut", **blank)
    assert lost.status_code == 400, "an address without its street is not dropped"
    assert "enter the street and number, or empty the address" in lost.text
    assert 'value="Garut"' in lost.text
    empty = {f"address__{name}": ["Jl. Braga", ""] for name in ("address1", "city")} | {
        f"address__{name}": ["", ""] for name in ("id", "address2", "province", "zip", "country")
    }
    again = await send(owner, f"/customers/{id}/edit", **empty)
    assert (again.status_code, again.text.count('name="address.address1"')) == (400, 2), "one empty row is enough"
    changed = await send(owner, f"/customers/{id}/edit", firstName="Ayunda", email="ayu@toko.example", tags="")
    assert changed.status_code == 303
    after = (await api.get(f"/customers/{id}")).json()["data"]
    assert (after["firstName"], after["phoneNumber"], after["addresses"]) == ("Ayunda", None, [])
    timeline = (await owner.get(f"/live/customers/{id}")).text
    assert "by Sari owner" in timeline
    assert "First name: Ayu → Ayunda; Labels: vip, reseller → –; Addresses changed" in timeline
    refused = await send(owner, f"/customers/{id}/edit", firstName="Ayunda")
    assert refused.status_code == 400
    assert "Enter a phone number or an email" in refused.text.replace(">e", ">E")
    assert (await send(owner, f"/customers/{id}/delete")).status_code == 303
    assert (await api.get(f"/customers/{id}")).status_code == 404


async def test_a_second_customer_with_the_same_number_leads_to_the_first(
    api: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    first = (await make_customer(api, phoneNumber="+6281234567802"))["id"]
    refused = await send(agent, "/customers/new", firstName="Budi", phoneNumber="0812-3456-7802")
    assert refused.status_code == 409
    assert f"/console/live/customers/{first}" in refused.text
    assert 'value="Budi"' in refused.text
    assert (await send(agent, f"/customers/{first}/delete")).status_code == 403


async def test_a_products_options_make_variants_that_keep_their_ids(
    api: httpx.AsyncClient, owner: httpx.AsyncClient
) -> None:
    none = [""] * 1
    step = await send(
        owner, "/products/new", step="variants", name="Kopi Gayo", optionName=["Ukuran"], optionValues=["250 g, 500 g"],
        **variants(title=none, price=["95.000"], sku=none, stock=none),
    )  # fmt: skip
    assert step.status_code == 200
    assert 'value="250 g"' in step.text
    assert 'value="500 g"' in step.text
    made = name_made(
        await send(
            owner, "/products/new", name="Kopi Gayo", status="active", optionName=["Ukuran"],
            optionValues=["250 g, 500 g"], pictures="https://toko.example/1.png\nhttps://toko.example/2.png",
            **variants(title=["250 g", "500 g"], price=["95.000", "180rb"], sku=["G-250", "G-500"], stock=["4", ""]),
        )
    )  # fmt: skip
    product = (await api.get(f"/products/{made}")).json()["data"]
    assert [(one["price"], one["inventoryQuantity"]) for one in product["variants"]] == [(95_000, 4), (180_000, None)]
    assert (product["media"], len(product["medias"])) == ("https://toko.example/1.png", 1)
    ids = [one["id"] for one in product["variants"]]
    await make_order(api, lineItems=[{"productVariantId": ids[0], "quantity": 1}])
    changed = await send(
        owner, f"/products/{made}/edit", name="Kopi Gayo Arabika", status="draft",
        **variants(id=ids, title=["250 g", "500 g"], price=["99.000", "180.000"], sku=["G-250", "G-500"],
                   stock=["4", "12"], stockBefore=["4", ""]),
    )  # fmt: skip
    assert changed.status_code == 303, changed.text
    after = (await api.get(f"/products/{made}")).json()["data"]
    assert [one["id"] for one in after["variants"]] == ids
    assert [one["inventoryQuantity"] for one in after["variants"]] == [3, 12], "what was sold meanwhile stays sold"
    assert (await send(owner, f"/products/{made}/delete")).status_code == 303


async def test_options_without_their_variants_are_not_saved_and_all_combinations_get_a_row(
    api: httpx.AsyncClient, owner: httpx.AsyncClient
) -> None:
    product = await make_product(api, name="Kaus", variants=[{"title": "Kaus", "price": 85_000}])
    path, sizes = f"/products/{product['id']}/edit", [str(number) for number in range(1, 11)]
    form = await open_form(owner, path)
    form |= {"optionName": ["Ukuran", "Warna"], "optionValues": [", ".join(sizes), "a, b, c, d, e, f, g, h, i, j"]}
    refused = await owner.post(f"/live{path}", data=form)
    assert refused.status_code == 400
    assert "The new combinations have rows now" in refused.text
    assert len(refused.content) < 200_000
    rows = read_fields(refused.text[refused.text.index(f'action="/console/live{path}"') :].partition("</form>")[0])
    assert (len(rows["variant.title"]), set(rows["variant.price"])) == (100, {"85,000"})
    rows["variant.title"][7] = rows["variant.price"][7] = ""
    assert (await owner.post(f"/live{path}", data=rows)).status_code == 303, "one that is not sold was removed"
    for sent in ({}, {"step": "variants"}):
        beyond = await owner.post(
            f"/live{path}", data=form | {"optionValues": [", ".join(sizes), "a,b,c,d,e,f,g,h,i,j,k"], **sent}
        )
        assert beyond.status_code == 400
        assert "These options make 110 variants. At most 100 are possible." in beyond.text
    assert len((await api.get(f"/products/{product['id']}")).json()["data"]["variants"]) == 99


async def test_options_that_were_stored_stay_as_they_are(api: httpx.AsyncClient, owner: httpx.AsyncClient) -> None:
    sets = {"Berat": ["1,5 kg", "3 kg"], "Giling": list("abcdefghijk"), "Sangrai": list("abcdefghijk")}
    options = [{"name": name, "values": values} for name, values in sets.items()]
    sizes = [{"title": title, "price": 85_000} for title in sets["Berat"]]
    product = await make_product(api, name="Kopi", options=options, variants=sizes)
    path = f"/products/{product['id']}/edit"
    assert (await owner.post(f"/live{path}", data=await open_form(owner, path) | {"name": "Teh"})).status_code == 303
    after = (await api.get(f"/products/{product['id']}")).json()["data"]
    assert (after["name"], after["options"], len(after["variants"])) == ("Teh", product["options"], 2)


async def test_stored_variants_that_are_no_combination_stay_when_options_change(
    api: httpx.AsyncClient, owner: httpx.AsyncClient
) -> None:
    named = [{"title": f"{colour},S", "price": 85_000, "sku": colour, "inventoryQuantity": 7} for colour in "AB"]
    options = [{"name": "Warna", "values": ["A", "B"]}, {"name": "Ukuran", "values": ["S"]}]
    product = await make_product(api, options=options, variants=named)
    path = f"/products/{product['id']}/edit"
    form = await open_form(owner, path)
    form["optionValues"] = ["A, B, C", "S", ""]
    refused = await owner.post(f"/live{path}", data=form)
    rows = read_fields(refused.text[refused.text.index(f'action="/console/live{path}"') :].partition("</form>")[0])
    assert rows["variant.title"] == ["A / S", "B / S", "C / S", "A,S", "B,S"]
    assert (await owner.post(f"/live{path}", data=rows)).status_code == 303
    after = (await api.get(f"/products/{product['id']}")).json()["data"]["variants"]
    stored = {one["id"]: one["inventoryQuantity"] for one in after}
    assert [stored[one["id"]] for one in product["variants"]] == [7, 7]


async def test_variants_and_addresses_that_others_add_or_delete_meanwhile_are_told_and_kept(
    api: httpx.AsyncClient, owner: httpx.AsyncClient
) -> None:
    product = await make_product(api, variants=[{"title": title, "price": 85_000} for title in ("S", "M")])
    path, resource = f"/products/{product['id']}/edit", f"/products/{product['id']}"
    form = await open_form(owner, path)
    kept = {"id": product["variants"][1]["id"], "title": "M", "price": 85_000}
    await api.put(resource, json={"variants": [kept, {"title": "L", "price": 90_000}]})
    refused = await owner.post(f"/live{path}", data=form | {"name": "Kaus"})
    assert refused.status_code == 409
    assert "Somebody deleted this. Saving adds it again." in refused.text
    assert "Somebody changed this to “L · 90,000”" in unescape(refused.text)
    rows = read_fields(refused.text[refused.text.index(f'action="/console/live{path}"') :].partition("</form>")[0])
    assert (await owner.post(f"/live{path}", data=rows)).status_code == 303
    after = (await api.get(resource)).json()["data"]
    assert (after["name"], [one["title"] for one in after["variants"]]) == ("Kaus", ["S", "M", "L"])
    customer = await make_customer(api, addresses=[{"address1": "Jl. Braga 1"}])
    path, resource = f"/customers/{customer['id']}/edit", f"/customers/{customer['id']}"
    form = await open_form(owner, path)
    await api.put(resource, json={"addresses": [{"address1": "Jl. Merdeka 2"}]})
    refused = await owner.post(f"/live{path}", data=form | {"firstName": "Ayu"})
    assert refused.status_code == 409
    rows = read_fields(refused.text[refused.text.index(f'action="/console/live{path}"') :].partition("</form>")[0])
    assert (await owner.post(f"/live{path}", data=rows)).status_code == 303
    assert [one["address1"] for one in (await api.get(resource)).json()["data"]["addresses"]] == ["Jl. Braga 1"]


def variants(**columns: list[str]) -> Json:
    rows = len(columns["title"])
    names = ("id", "title", "price", "compareAtPrice", "sku", "stock", "stockBefore")
    return {f"variant__{name}": columns.get(name, [""] * rows) for name in names}


async def test_an_order_is_made_of_products_and_articles_and_kept_as_a_draft(
    api: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    ayu = (await make_customer(api, firstName="Ayunda"))["id"]
    variant = {"title": "250 g", "price": 85_000, "sku": "TRJ-250"}
    product = await make_product(api, name="Kopi Toraja", variants=[variant])
    suggested = (await agent.get("/live/suggestions/articles", params={"q": "toraja"})).json()
    assert suggested[0]["value"] == product["variants"][0]["id"]
    assert "85,000" in suggested[0]["hint"]
    assert (await agent.get("/live/suggestions/customers", params={"q": "ayunda"})).json()[0]["value"] == ayu
    begun = (await agent.get("/live/orders/new", params={"customerId": ayu})).text
    assert 'value="Ayunda' in begun
    lines = {"title": ["TRJ-250", "Kartu ucapan"], "price": ["", "5.000"], "quantity": ["2", "1"]}
    form = {**lines, "customer": "ayunda", "shippingPrice": "18.000", "discount": "10%", "to__address1": "Jl. Satu 1"}
    order = (await api.get(f"/orders/{name_made(await send(agent, '/orders/new', **form, isPaid='1'))}")).json()["data"]
    assert [line["price"] for line in order["lineItems"]] == [85_000, 5_000]
    assert (order["customer"]["id"], order["financialStatus"]) == (ayu, "paid")
    assert (order["total"], order["shippingAddress"]["address1"]) == (175_500 + 18_000 - 18_000 + 0, "Jl. Satu 1")
    draft = name_made(await send(agent, "/draft-orders/new", **form))
    assert (await api.get(f"/draft-orders/{draft}")).json()["data"]["customerId"] == ayu
    for path in ("/live/draft-orders", f"/live/draft-orders/{draft}"):
        assert f'{ayu}">Ayunda' in (await agent.get(path)).text, "by name"
    details = await send(agent, f"/draft-orders/{draft}/details", notes="Titip satpam", tags="hadiah")
    assert details.status_code == 303, details.text
    assert (await api.get(f"/draft-orders/{draft}")).json()["data"]["tags"] == ["hadiah"]
    unknown = await send(agent, "/orders/new", title=["Kopi Mars"], price=[""], quantity=["1"])
    assert unknown.status_code == 400
    assert "choose a product, or enter a price" in unknown.text


async def test_an_order_of_a_new_customer_says_whose_the_phone_number_is(
    api: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    await make_customer(api, firstName="Ayunda", lastName="Lestari", phoneNumber="+6281234567811")
    line = {"title": ["Kopi"], "price": ["5.000"], "quantity": ["1"]}
    for name, phone, said in (
        ("Budi", "0812 3456 7811", "created for Ayunda Lestari, who has this phone number or email"),
        ("Citra", "0812 3456 7812", "created</p>"),
    ):
        made = await send(agent, "/orders/new", **line, firstName=name, phoneNumber=phone)
        assert said in (await agent.get(f"/live/orders/{name_made(made)}")).text


async def test_units_that_cannot_be_are_refused_at_their_line(api: httpx.AsyncClient, agent: httpx.AsyncClient) -> None:
    order = await make_order(
        api, lineItems=[{"title": name, "price": 5_000, "quantity": 2} for name in ("Kopi", "Teh")]
    )
    await api.put(f"/orders/{order['id']}", json={"financialStatus": "paid"})
    first, second = (line["id"] for line in order["lineItems"])
    for path, name in (("edit", "quantity"), ("refunds", "refund"), ("fulfillments", "fulfil")):
        for units in ("3", "2.000.000") if name != "quantity" else ("2.000.000",):
            form = {f"{name}-{first}": "2" if name == "quantity" else "", f"{name}-{second}": units}
            refused = await send(agent, f"/orders/{order['id']}/{path}", **form)
            assert f'id="{name}-{second}-problem"' in refused.text, path


async def test_a_cancelled_order_is_not_paid_from_a_page_that_was_open_before(
    api: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    id = (await make_order(api))["id"]
    assert "To ship" in (await agent.get(f"/live/orders/{id}")).text.partition("<h2>")[0].partition("<h1>")[2]
    await api.put(f"/orders/{id}", json={"status": "cancelled"})
    refused = await send(agent, f"/orders/{id}", financialStatus="paid")
    assert refused.status_code == 409
    assert "can&#39;t change like that now" in refused.text
    head = refused.text.partition("<h1>")[2].partition("<h2>")[0]
    assert ("Cancelled" in head, "To ship" in head) == (True, False)
    assert (await api.get(f"/orders/{id}")).json()["data"]["financialStatus"] == "pending"


async def test_only_what_was_paid_is_offered_to_be_refunded(api: httpx.AsyncClient, agent: httpx.AsyncClient) -> None:
    id, offer = (await make_order(api))["id"], '<button name="status" value="refunded"'
    assert offer not in (await agent.get(f"/live/orders/{id}")).text
    assert (await api.put(f"/orders/{id}", json={"financialStatus": "paid"})).status_code == 200
    assert offer in (await agent.get(f"/live/orders/{id}")).text


async def test_the_lines_of_an_order_say_what_each_amount_is(api: httpx.AsyncClient, agent: httpx.AsyncClient) -> None:
    """Also where they are cards, without the table's head: beside the side column, and on phones."""
    line = {"title": "Kopi Toraja", "price": 100_000, "quantity": 1, "discount": {"amount": 10_000}}
    draft = (await api.post("/draft-orders", json={"lineItems": [line]})).json()["data"]["id"]
    page = (await agent.get(f"/live/draft-orders/{draft}")).text
    assert re.search(r'<td data-name="Discount">.{0,40}10,000', page)
    assert page.index(">Complete</button>") < page.index("Change items, shipping and discount")


async def test_an_orders_address_notes_and_tags_are_edited(api: httpx.AsyncClient, agent: httpx.AsyncClient) -> None:
    id = (await make_order(api))["id"]
    changed = await send(
        agent, f"/orders/{id}/details", to__address1="Jl. Dua 2", to__city="Bandung", notes="Pagar hijau", tags="hadiah"
    )
    assert changed.status_code == 303, changed.text
    order = (await api.get(f"/orders/{id}")).json()["data"]
    assert (order["shippingAddress"]["city"], order["notes"], order["tags"]) == ("Bandung", "Pagar hijau", ["hadiah"])
    page = (await agent.get(f"/live/orders/{id}")).text
    for shown in (page, (await agent.get(f"/live/orders/{id}/history")).text):
        assert "· Sari agent<" in shown, "the history says who did it"


async def test_rows_are_changed_together_and_what_cannot_change_is_counted(
    api: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    first, second = (await make_order(api))["id"], (await make_order(api))["id"]
    await api.put(f"/orders/{second}", json={"status": "cancelled"})
    done = await send(agent, "/orders/bulk", change="fulfilled", id=[first, second])
    assert done.status_code == 303
    assert "1%20order%20marked%20as%20shipped%2C%201%20not%20possible" in done.headers["set-cookie"]
    assert (await api.get(f"/orders/{first}")).json()["data"]["fulfillmentStatus"] == "fulfilled"
    customer = (await make_customer(api, tags=["vip"]))["id"]
    await send(agent, "/customers/bulk", change="add", tags="reseller", id=[customer])
    assert (await api.get(f"/customers/{customer}")).json()["data"]["tags"] == ["vip", "reseller"]
    await send(agent, "/customers/bulk", change="remove", tags="vip", id=[customer])
    assert (await api.get(f"/customers/{customer}")).json()["data"]["tags"] == ["reseller"]
    product = (await make_product(api))["id"]
    await send(agent, "/products/bulk", change="archived", id=[product])
    assert (await api.get(f"/products/{product}")).json()["data"]["status"] == "archived"
    assert (await send(agent, "/orders/bulk", change="paid")).status_code == 400


async def test_a_list_is_sorted_its_filter_is_saved_and_its_rows_are_exported(
    api: httpx.AsyncClient, owner: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    for name in ("Citra", "Ayu", "Budi"):
        await make_customer(api, firstName=name, tags=["vip"] if name != "Budi" else [])
    listed = (await owner.get("/live/customers", params={"sort": "firstName:asc"})).text
    assert listed.index(">Ayu") < listed.index(">Budi") < listed.index(">Citra")
    query = "tags=vip&sort=firstName%3Aasc"
    assert (await send(owner, "/filters/customers", name="Setia", query=query)).status_code == 303
    shown = (await owner.get("/live/customers")).text
    assert ">Setia</a>" in shown
    assert ">Setia</a>" not in (await agent.get("/live/customers")).text, "a filter is a person's own"
    file = (await owner.get(f"/live/exports/customers.csv?{query}")).text.splitlines()
    assert [line.split(",")[4] for line in file] == ["firstName", "Ayu", "Citra"]
    saved = shown.partition('name="id" value="flt_')[2].partition('"')[0]
    assert (await send(owner, "/filters/customers/remove", id=f"flt_{saved}")).status_code == 303
    assert ">Setia</a>" not in (await owner.get("/live/customers")).text


async def test_pictures_are_uploaded_with_a_product_and_kept_when_the_form_is_refused(
    api: httpx.AsyncClient, owner: httpx.AsyncClient
) -> None:
    form = {
        "token": await read_token(owner),
        "name": "Kopi Gayo",
        "variant.title": "250 g",
        "pictures": "",
        "once": "a1",
    }
    form |= dict.fromkeys(("variant.id", "variant.compareAtPrice", "variant.sku", "variant.stock"), "")
    form |= {"variant.stockBefore": "", "variant.price": "no price"}
    files = [("files", ("gayo.png", make_image("PNG"), "image/png"))]
    refused = await owner.post("/live/products/new", data=form, files=files)
    assert refused.status_code == 400
    (kept,) = set(re.findall(r"https?://[\w.:]+/pictures/[\w-]+", refused.text))
    made = name_made(
        await owner.post("/live/products/new", data=form | {"variant.price": "85.000", "pictures": kept, "once": "a2"})
    )
    assert (await api.get(f"/products/{made}")).json()["data"]["media"] == kept
    assert f'src="{urlsplit(kept).path}?size=small"' in (await owner.get("/live/products")).text
    files = [("files", ("nota.pdf", PDF, "application/pdf"))]
    wrong = await owner.post(
        f"/live/products/{made}/edit", data=form | {"variant.price": "1", "once": "a3"}, files=files
    )
    assert (wrong.status_code, "JPEG, PNG, WebP" in wrong.text) == (415, True)
    assert 'id="files-problem"' in wrong.text


async def test_a_customers_page_has_figures_and_tabs_and_takes_notes(
    api: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    ayu = await make_customer(api, firstName="Ayu")
    order = await make_order(api, customerId=ayu["id"])
    await api.put(f"/orders/{order['id']}", json={"financialStatus": "paid"})
    noted = await send(agent, f"/customers/{ayu['id']}/notes", notes="Suka <sangrai> medium")
    assert noted.status_code == 303
    shown = (await agent.get(f"/live/customers/{ayu['id']}")).text
    assert "Suka &lt;sangrai&gt; medium" in shown
    assert f"#{order['orderNumber']}" in shown
    assert "Rp\u00a0150,000" in shown
    for tab in ("orders", "conversations", "points", "parcels", "consent"):
        opened = await agent.get(f"/live/customers/{ayu['id']}", params={"tab": tab})
        assert opened.status_code == 200
        assert f'?tab={tab}" aria-current="page"' in opened.text


async def test_lists_are_sorted_by_their_heads(api: httpx.AsyncClient, owner: httpx.AsyncClient) -> None:
    for price in (20_000, 90_000, 50_000):
        await make_order(api, lineItems=[{"title": "Kopi", "price": price, "quantity": 1}])
    shown = (await owner.get("/live/orders", params={"sort": "total:desc"})).text
    assert re.findall(r"Rp\u00a0(\d\d),000", shown) == ["90", "50", "20"]
    assert 'aria-sort="descending"' in shown
    assert "sort=total%3Aasc" in shown
    for path in ("/live/products?sort=name:desc", "/live/customers?sort=email:desc"):
        assert (await owner.get(path)).status_code == 200


async def test_named_filters_say_how_many_rows_they_have(api: httpx.AsyncClient, owner: httpx.AsyncClient) -> None:
    for status, quantity in (("active", 3), ("active", 40), ("draft", 0), ("active", None)):
        await make_product(api, status=status, variants=[{"title": "M", "price": 1, "inventoryQuantity": quantity}])
    paid = await make_order(api)
    assert (await api.put(f"/orders/{paid['id']}", json={"financialStatus": "paid"})).status_code == 200
    await make_order(api)

    def read_tabs(text: str) -> list[str]:
        tabs = text[text.index('<nav class="filters') :].partition("</nav>")[0]
        return [f"{label.strip()} {total}" for label, total in re.findall(r'>([^<>]+)<span class="count">(\d+)', tabs)]

    products = (await owner.get("/live/products")).text
    assert read_tabs(products) == ["All 4", "On sale 3", "Drafts 1", "Archived 0", "Low stock 1"]
    assert "3 left" in products
    assert "Sold out" in products
    assert read_tabs((await owner.get("/live/orders")).text) == [
        "All 2",
        "To pay 1",
        "To ship 1",
        "Shipped 0",
        "Cancelled 0",
    ]
    low = (await owner.get("/live/products", params={"status": "active", "stockAtMost": "5"})).text
    assert low.count('<th scope="row">') == 1
    assert re.search(r'aria-current="true">Low stock ', low)
    assert 'name="stockAtMost" value="5"' in low
    by_stock = (await owner.get("/live/products", params={"sort": "stock:asc"})).text
    assert 'aria-sort="ascending"' in by_stock


async def open_form(browser: httpx.AsyncClient, path: str, action: str = "") -> Json:
    """The fields of a page's form, as a browser would send them."""
    page = (await browser.get(f"/live{path}")).text
    return read_fields(page[page.index(f'action="/console/live{action or path}"') :].partition("</form>")[0])


def read_fields(form: str) -> Json:
    fields: Json = {}
    for tag in re.findall(r"<(?:input|textarea)[^>]*>", form):
        name, value = re.search(r'name="([^"]+)"', tag), re.search(r'value="([^"]*)"', tag)
        if name and 'type="radio"' not in tag and 'type="file"' not in tag:
            fields.setdefault(name[1], []).append(unescape(value[1]) if value else "")
    return fields


async def test_what_somebody_else_changed_meanwhile_is_not_overwritten_unseen(
    api: httpx.AsyncClient, owner: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    line = {"title": "Kopi", "price": 50_000, "quantity": 1}
    order = await make_order(api, lineItems=[line])
    draft = (await api.post("/draft-orders", json={"lineItems": [line]})).json()["data"]
    customer = await make_customer(api, firstName="Ayu", tags=["vip"])
    product = await make_product(api, variants=[{"title": "M", "price": 85_000, "inventoryQuantity": 9}])
    order_path, draft_path = f"/orders/{order['id']}", f"/draft-orders/{draft['id']}"
    order_line, draft_line = f"quantity-{order['lineItems'][0]['id']}", f"quantity-{draft['lineItems'][0]['id']}"
    for page, action, first, second, said in (
        (order_path, f"{order_path}/edit", {order_line: "3"}, {"shippingPrice": "9.000"}, "changed this to “3”"),
        (order_path, f"{order_path}/details", {"notes": "Kado"}, {"tags": "gift"}, "changed this to “Kado”"),
        (draft_path, draft_path, {"discount": "5.000"}, {draft_line: "3"}, "changed this to “Rp 5,000”"),
        (draft_path, f"{draft_path}/details", {"tags": "gift"}, {"notes": "Kado"}, "changed this to “gift”"),
        (f"/customers/{customer['id']}/edit", "", {"tags": ""}, {"lastName": "Lestari"}, "emptied this"),
        (f"/products/{product['id']}/edit", "", {"variant.price": ["90.000", ""]}, {"name": "Kemeja"}, "“M · 90,000”"),
    ):
        action = action or page
        form, other = await open_form(owner, page, action), await open_form(agent, page, action)
        assert (await agent.post(f"/live{action}", data=other | first)).status_code == 303
        refused = await owner.post(f"/live{action}", data=form | second)
        assert refused.status_code == 409, action
        assert "Somebody changed this meanwhile. Look at it and save again." in refused.text
        assert said in unescape(refused.text)
        again = read_fields(
            refused.text[refused.text.index(f'action="/console/live{action}"') :].partition("</form>")[0]
        )
        assert {name: again[name] for name in second} == {name: [value] for name, value in second.items()}
        saved = await owner.post(f"/live{action}", data=again)
        assert saved.status_code == 303, "whoever has seen it can save over it"
        assert (await owner.post(f"/live{action}", data=again)).status_code == 303, "the same form again is no conflict"
    assert (await api.get(order_path)).json()["data"]["shippingTotal"] == 9_000


async def test_stock_that_was_sold_meanwhile_refuses_no_change_of_the_product(
    api: httpx.AsyncClient, owner: httpx.AsyncClient
) -> None:
    product = await make_product(api, variants=[{"title": "M", "price": 85_000, "inventoryQuantity": 9}])
    form = await open_form(owner, f"/products/{product['id']}/edit")
    await make_order(api, lineItems=[{"productVariantId": product["variants"][0]["id"], "quantity": 2}])
    assert (await owner.post(f"/live/products/{product['id']}/edit", data=form | {"name": "Kemeja"})).status_code == 303
    (variant,) = (await api.get(f"/products/{product['id']}")).json()["data"]["variants"]
    assert variant["inventoryQuantity"] == 7
