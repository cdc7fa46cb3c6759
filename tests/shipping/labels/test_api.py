"""Labels over HTTP: one at once, many through the worker, and what cannot be printed."""

import asyncio
import time
from typing import Any

import httpx
import msgspec
import pytest

from sapa.db.pool import Database
from tests.conftest import Installation, connect
from tests.factories import Environments, make_company, make_key, make_order
from tests.shipping import parcels
from tests.shipping.labels.reader import read_barcodes, read_sizes, read_texts
from tests.shipping.quotes.quote_steps import connect_live

PATIENCE = 120


async def book(api: httpx.AsyncClient, **fields: Any) -> dict[str, Any]:
    created = await parcels.create(api, "aggregator_carrier", autoBook=True, **fields)
    return await parcels.until_status(api, created["id"], awb=...)


async def fetch(api: httpx.AsyncClient, id: str, document: str = "label", **params: str) -> httpx.Response:
    return await api.get(f"/shipping/shipments/{id}/{document}", params=params)


async def order_file(api: httpx.AsyncClient, ids: list[str], **fields: Any) -> dict[str, Any]:
    response = await api.post("/shipping/labels", json={"ids": ids, **fields})
    assert response.status_code == 201, response.text
    created: dict[str, Any] = response.json()["data"]
    return created


async def await_file(api: httpx.AsyncClient, id: str) -> httpx.Response:
    deadline = time.monotonic() + PATIENCE
    while True:
        response = await api.get(f"/shipping/labels/{id}")
        if response.status_code != 202:
            return response
        assert response.json()["data"]["status"] in {"queued", "running"}
        assert time.monotonic() < deadline, response.text
        await asyncio.sleep(0.1)


@pytest.mark.smoke
async def test_the_label_of_a_booked_shipment_is_a_pdf_with_its_awb(sandbox: httpx.AsyncClient) -> None:
    order = await make_order(sandbox, lineItems=[{"title": "Kopi Gayo", "price": 85000, "quantity": 2}])
    shipment = await book(sandbox, orderId=order["id"])
    response = await fetch(sandbox, shipment["id"])
    assert (response.status_code, response.headers["content-type"]) == (200, "application/pdf")
    assert response.headers["content-disposition"] == f'inline; filename="label-{shipment["awb"]}.pdf"'
    assert read_barcodes(response.content) == [shipment["awb"]]
    (text,) = read_texts(response.content)
    assert text.removeprefix("TEST - JANGAN DIKIRIM").split()[0] == "JNE", "the courier, not the aggregator"
    assert all(words in text for words in ("Ayu Lestari", f"Pesanan {order['orderNumber']}", "2 × Kopi Gayo"))
    roll = await fetch(sandbox, shipment["id"], format="roll80")
    assert read_sizes(roll.content)[0][0] == 80
    slip = await fetch(sandbox, shipment["id"], "packing-slip")
    assert "Kopi Gayo" in read_texts(slip.content)[0]


async def test_areas_without_names_are_printed_with_the_names_of_the_coverage(sandbox: httpx.AsyncClient) -> None:
    ends = {
        "sender": {**parcels.SENDER, "city": None},
        "delivery": {**parcels.DELIVERY, "city": None, "zip": None, "kelurahanId": 3174071001},
    }
    shipment = await book(sandbox, **ends)
    (text,) = read_texts((await fetch(sandbox, shipment["id"])).content)
    assert "Kota Jakarta Selatan" in text
    assert "Kota Jakarta Pusat" in text
    (slip,) = read_texts((await fetch(sandbox, shipment["id"], "packing-slip")).content)
    assert "Kota Jakarta Selatan" in slip
    assert (await parcels.get(sandbox, shipment["id"]))["delivery"]["city"] is None, "what was sent stays as it was"


async def test_a_live_shipment_without_a_city_prints_what_is_known(
    installation: Installation, database: Database, company: Environments
) -> None:
    """The names of the carrier's lists, as far as they were fetched; else the nearest area that the caller sent."""
    delivery = {**parcels.DELIVERY, "city": None, "kecamatanId": 4713, "kelurahanId": None}
    sender = {**parcels.SENDER, "city": None, "kecamatanId": 4799, "kecamatan": "Menteng"}
    lists = {"districts": [{"id": 4713, "name": "Kebayoran Baru", "parent_id": 5}],
             "cities": [{"id": 5, "name": "Jaksel Raya", "parent_id": 6}]}  # fmt: skip
    key = await make_key(database, company.live)
    async with connect(installation, key.raw) as api:
        shipment = await parcels.create(api, "custom", sender=sender, delivery=delivery)
        (text,) = read_texts((await fetch(api, shipment["id"])).content)
        assert text.split("Kota asal")[1].split()[0] == "Menteng"
        await connect_live(installation, database, company.live, "aggregator_carrier", api_key="some-key")
        async with database.connection() as db:
            for level, areas in lists.items():
                await db.execute(
                    """INSERT INTO coverage_cache (company_id, adapter, level, parent, areas)
                       VALUES ($1, 'kiriminaja', $2, '', $3)""",
                    company.live, level, msgspec.json.encode(areas),
                )  # fmt: skip
        for document in ("label", "packing-slip"):
            (text,) = read_texts((await fetch(api, shipment["id"], document)).content)
            assert "Jaksel Raya" in text
        batch = await order_file(api, [shipment["id"]], document="manifest")
        assert "Jaksel Raya" in read_texts((await await_file(api, batch["id"])).content)[0]


@pytest.mark.parametrize("provider", ["custom", "parcel_carrier"])
async def test_a_shipment_without_a_carrier_prints_its_id_or_its_own_awb(
    sandbox: httpx.AsyncClient, provider: str
) -> None:
    shipment = await parcels.create(sandbox, provider)
    assert read_barcodes((await fetch(sandbox, shipment["id"])).content) == [shipment["id"]]
    await parcels.change(sandbox, shipment["id"], awb="RESI-0042")
    assert read_barcodes((await fetch(sandbox, shipment["id"])).content) == ["RESI-0042"]
    await parcels.change(sandbox, shipment["id"], awb="résumé")
    assert read_barcodes((await fetch(sandbox, shipment["id"])).content) == [shipment["id"]]


@pytest.mark.parametrize("provider", parcels.WITH_API)
async def test_a_shipment_that_is_not_booked_has_no_label(sandbox: httpx.AsyncClient, provider: str) -> None:
    shipment = await parcels.create(sandbox, provider)
    assert parcels.error_of(await fetch(sandbox, shipment["id"])) == (409, "NOT_BOOKED")
    refused = await sandbox.post("/shipping/labels", json={"ids": [shipment["id"]]})
    assert parcels.error_of(refused) == (409, "NOT_BOOKED")
    assert shipment["id"] in refused.json()["error"]["message"]


@pytest.mark.parametrize(
    ("scenario", "status", "reason"),
    [("unpaid", 201, "is not paid yet"), ("booking_timeout", 202, "has not confirmed the booking")],
)
async def test_a_booking_without_an_awb_says_what_it_waits_for(
    sandbox: httpx.AsyncClient, scenario: str, status: int, reason: str
) -> None:
    to = {**parcels.DELIVERY, "notes": f"#sim:{scenario}"}
    waiting = await parcels.create(sandbox, "aggregator_carrier", status=status, autoBook=True, delivery=to)
    refused = await fetch(sandbox, waiting["id"])
    assert parcels.error_of(refused) == (409, "NOT_BOOKED")
    assert reason in refused.json()["error"]["message"]


async def test_the_sorting_code_of_the_carrier_is_on_the_label(sandbox: httpx.AsyncClient) -> None:
    created = await parcels.create(sandbox, "aggregator_carrier", autoBook=True)
    shipment = await parcels.until_status(sandbox, created["id"], sortingCode=...)
    (text,) = read_texts((await fetch(sandbox, shipment["id"])).content)
    assert shipment["sortingCode"] in text


async def test_the_carriers_own_label_is_fetched_where_it_has_one(sandbox: httpx.AsyncClient) -> None:
    shipment, own = await book(sandbox), await parcels.create(sandbox, "custom")
    response = await fetch(sandbox, shipment["id"], source="carrier")
    assert "KiriminAja (sandbox)" in read_texts(response.content)[0]
    assert read_barcodes(response.content) == [shipment["awb"]]
    assert read_barcodes((await fetch(sandbox, own["id"], source="carrier")).content) == [own["id"]]
    batch = await order_file(sandbox, [own["id"], shipment["id"]], source="carrier")
    assert read_barcodes((await await_file(sandbox, batch["id"])).content) == [own["id"], shipment["awb"]]


async def test_the_worker_makes_one_file_of_many_in_the_order_of_the_ids(sandbox: httpx.AsyncClient) -> None:
    created = [await parcels.create(sandbox, "custom") for _ in range(4)]
    ids = [shipment["id"] for shipment in reversed(created)]
    batch = await order_file(sandbox, [*ids, ids[0]], format="roll80")
    assert (batch["status"], batch["shipments"], batch["format"]) == ("queued", 4, "roll80")
    response = await await_file(sandbox, batch["id"])
    assert (response.status_code, response.headers["content-type"]) == (200, "application/pdf")
    assert read_barcodes(response.content) == ids
    slips = await order_file(sandbox, ids, document="packing_slip")
    assert len(read_texts((await await_file(sandbox, slips["id"])).content)) == 4
    manifest = await order_file(sandbox, ids, document="manifest")
    (page,) = read_texts((await await_file(sandbox, manifest["id"])).content)
    assert "4 paket" in page


async def test_a_repeated_request_makes_one_file(sandbox: httpx.AsyncClient) -> None:
    shipment = await parcels.create(sandbox, "custom")
    body, headers = {"ids": [shipment["id"]]}, {"idempotency-key": "print-1"}
    first, second = [await sandbox.post("/shipping/labels", json=body, headers=headers) for _ in range(2)]
    assert first.json() == second.json()


async def test_only_known_shipments_up_to_500_are_taken(
    installation: Installation, database: Database, sandbox: httpx.AsyncClient
) -> None:
    shipment = await parcels.create(sandbox, "custom")
    foreign = await make_company(database)
    async with connect(installation, (await make_key(database, foreign.test)).raw) as other:
        theirs = await parcels.create(other, "custom")
    refused = await sandbox.post("/shipping/labels", json={"ids": [shipment["id"], theirs["id"]]})
    assert parcels.field_of(refused) == "ids[1]"
    for ids in ([], ["shp_1"], [shipment["id"]] * 501):
        assert (await sandbox.post("/shipping/labels", json={"ids": ids})).status_code == 400


async def test_each_parcel_of_an_order_lists_what_it_carries(sandbox: httpx.AsyncClient) -> None:
    """By the fulfilment of its shipment, else what is still open, less what was refunded."""
    lines = [{"title": title, "price": 50_000, "quantity": 3} for title in ("Kopi Gayo", "Teh Melati", "Gula Aren")]
    order = await make_order(sandbox, lineItems=lines)
    coffee, _, sugar = (line["id"] for line in order["lineItems"])
    first, second = [await parcels.create(sandbox, "custom", orderId=order["id"]) for _ in range(2)]
    made = {"shipmentId": first["id"], "lineItems": [{"id": coffee, "quantity": 2}]}
    assert (await sandbox.post(f"/orders/{order['id']}/fulfillments", json=made)).status_code == 201
    await sandbox.put(f"/orders/{order['id']}", json={"financialStatus": "paid"})
    back = {"lineItems": [{"id": sugar, "quantity": 3, "restock": True}]}
    refund = await sandbox.post(f"/orders/{order['id']}/refunds", json=back)
    assert refund.status_code == 201, refund.text
    for document in ("label", "packing-slip"):
        (text,) = read_texts((await fetch(sandbox, first["id"], document)).content)
        assert [words in text for words in ("2 × Kopi Gayo", "Teh Melati", "Gula Aren")] == [True, False, False]
        (text,) = read_texts((await fetch(sandbox, second["id"], document)).content)
        assert [words in text for words in ("1 × Kopi Gayo", "3 × Teh Melati", "Gula Aren")] == [True, True, False]


async def test_a_return_has_its_own_number_and_what_was_refunded(sandbox: httpx.AsyncClient) -> None:
    lines = [{"title": title, "price": 50_000, "quantity": 2} for title in ("Kopi Gayo", "Teh Melati")]
    order = await make_order(sandbox, lineItems=lines)
    await sandbox.put(f"/orders/{order['id']}", json={"financialStatus": "paid"})
    sent = await parcels.create(sandbox, "custom", orderId=order["id"], autoBook=True)
    assert (await parcels.change(sandbox, sent["id"], shippingStatus="delivered")).status_code == 200
    body = {"lineItems": [{"id": order["lineItems"][1]["id"], "quantity": 1, "restock": False}]}
    refund = (await sandbox.post(f"/orders/{order['id']}/refunds", json=body)).json()["data"]
    made = await sandbox.post(f"/shipping/shipments/{sent['id']}/return", json={"refundId": refund["id"]})
    for document in ("label", "packing-slip"):
        (page,) = read_texts((await fetch(sandbox, made.json()["data"]["id"], document)).content)
        text = " ".join(page.split())
        assert f"Retur R1001 · Pesanan {order['orderNumber']}" in text
        assert ("1 × Teh Melati" in text, "Kopi Gayo" in text) == (True, False)


async def test_a_file_whose_workers_all_died_fails_in_the_end(
    sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    shipment = await parcels.create(sandbox, "custom")
    batch = await order_file(sandbox, [shipment["id"]])
    await await_file(sandbox, batch["id"])
    async with database.connection() as db:
        await db.execute(
            "UPDATE label_batches SET status = 'running', attempts = 3, finished_at = NULL WHERE company_id = $1",
            company.test,
        )
    failed = await await_file(sandbox, batch["id"])
    assert parcels.error_of(failed) == (409, "PRINTING_FAILED")
    assert "never finished" in failed.json()["error"]["message"]


async def test_a_carrier_that_does_not_answer_leaves_our_own_label(
    sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    shipment = await book(sandbox)
    async with database.transaction() as tx:
        await tx.execute(
            "UPDATE sandbox_bookings SET awb = 'GONE' WHERE company_id = $1 AND awb = $2", company.test, shipment["awb"]
        )
    refused = await fetch(sandbox, shipment["id"], source="carrier")
    assert parcels.error_of(refused) == (502, "CARRIER_UNAVAILABLE")
    assert "source=sapa" in refused.json()["error"]["message"]
    failed = await await_file(sandbox, (await order_file(sandbox, [shipment["id"]], source="carrier"))["id"])
    assert parcels.error_of(failed) == (409, "PRINTING_FAILED")
    assert read_barcodes((await fetch(sandbox, shipment["id"])).content) == [shipment["awb"]]


@pytest.mark.long
async def test_500_labels_are_one_file_and_each_reads_back(sandbox: httpx.AsyncClient) -> None:
    numbers = {}
    for n in range(500):
        shipment = await parcels.create(sandbox, "parcel_carrier", awb=f"RESI{n:08}")
        numbers[shipment["id"]] = shipment["awb"]
    batch = await order_file(sandbox, list(numbers))
    assert read_barcodes((await await_file(sandbox, batch["id"])).content) == list(numbers.values())
