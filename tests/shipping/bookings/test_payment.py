"""Bookings that wait for a payment: their QRIS code, and how its state is found out."""

from binascii import crc_hqx
from typing import Any

import httpx
import pytest
import segno

from sapa.db.pool import Database
from tests.factories import Environments
from tests.shipping.parcels import advance, cancel, change, create, error_of, get, move_clock, until_status


async def ask(api: httpx.AsyncClient, id: str) -> dict[str, Any]:
    response = await api.get(f"/shipping/shipments/{id}/payment")
    assert response.status_code == 200, response.text
    payment: dict[str, Any] = response.json()["data"]
    return payment


async def test_a_booking_waits_for_its_payment(sandbox: httpx.AsyncClient) -> None:
    booked = await create(sandbox, "aggregator_carrier", sim="unpaid", autoBook=True)
    assert (booked["shippingStatus"], booked["paymentStatus"], booked["awb"]) == ("confirmed", "pending", None)
    code = booked["paymentQr"]
    assert crc_hqx(code[:-4].encode(), 0xFFFF) == int(code[-4:], 16), "banking apps check it"
    assert f"54{len(str(booked['carrierFee'])):02d}{booked['carrierFee']}" in code
    assert segno.make(code, micro=False).symbol_size()[0] > 20
    payment = await ask(sandbox, booked["id"])
    assert payment == {
        "shipmentId": booked["id"], "paymentId": booked["paymentId"], "status": "pending", "qr": code,
        "amount": booked["carrierFee"], "live": True, "error": None,
    }  # fmt: skip
    await advance(sandbox, booked["id"], "paid")
    paid = await until_status(sandbox, booked["id"], paymentStatus="paid")
    assert paid["paymentQr"] is None
    assert (await until_status(sandbox, booked["id"], awb=...))["shippingStatus"] == "confirmed"
    assert (await ask(sandbox, booked["id"]))["live"] is False, "there is nothing to ask any more"
    await advance(sandbox, booked["id"], "delivered")
    await until_status(sandbox, booked["id"], "delivered")


async def test_asking_finds_out_that_it_was_paid(
    sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    """Without a callback."""
    booked = await create(sandbox, "aggregator_carrier", sim="unpaid", autoBook=True)
    async with database.connection() as db:
        await db.execute("DELETE FROM sandbox_callbacks WHERE company_id = $1", company.test)
    await move_clock(database, company.test, 130)
    payment = await ask(sandbox, booked["id"])
    assert (payment["status"], payment["qr"], payment["live"]) == ("paid", None, True)
    assert (await get(sandbox, booked["id"]))["paymentStatus"] == "paid"


async def test_the_worker_finds_out_that_it_was_paid(
    sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    booked = await create(sandbox, "aggregator_carrier", sim="unpaid", autoBook=True)
    async with database.connection() as db:
        await db.execute("DELETE FROM sandbox_callbacks WHERE company_id = $1", company.test)
    await move_clock(database, company.test, 130)  # an unpaid booking is polled every minute
    paid = await until_status(sandbox, booked["id"], paymentStatus="paid")
    assert (paid["paymentQr"], paid["awb"] is not None) == (None, True)


async def test_a_new_booking_has_a_payment_of_its_own(sandbox: httpx.AsyncClient) -> None:
    first = await create(sandbox, "aggregator_carrier", sim="unpaid", autoBook=True)
    await advance(sandbox, first["id"], "paid")
    await until_status(sandbox, first["id"], awb=..., paymentStatus="paid")
    assert (await cancel(sandbox, first["id"])).json()["data"]["shippingStatus"] == "cancelled"
    again = await change(sandbox, first["id"], triggerBooking=True)
    assert again.status_code == 200, again.text
    second = again.json()["data"]
    assert (second["shippingStatus"], second["paymentStatus"]) == ("confirmed", "pending")
    assert second["paymentId"] != first["paymentId"]
    assert second["paymentQr"] not in {None, first["paymentQr"]}


async def test_cash_on_delivery_needs_no_payment(sandbox: httpx.AsyncClient) -> None:
    booked = await create(sandbox, "aggregator_carrier", sim="unpaid", autoBook=True, codAmount=150_000)
    assert (booked["paymentStatus"], booked["paymentQr"]) == ("paid", None)


@pytest.mark.parametrize("provider", ["custom", "aggregator_carrier"])
async def test_a_shipment_without_a_payment(sandbox: httpx.AsyncClient, provider: str) -> None:
    created = await create(sandbox, provider)
    payment = await ask(sandbox, created["id"])
    assert (payment["paymentId"], payment["status"], payment["qr"], payment["error"]) == (None, None, None, None)
    unknown = await sandbox.get("/shipping/shipments/shp_01jc9y3q5me8w92v7x4t6r0n1k/payment")
    assert error_of(unknown) == (404, "NOT_FOUND")


async def test_a_carrier_that_cannot_be_asked(
    sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    booked = await create(sandbox, "aggregator_carrier", sim="unpaid", autoBook=True)
    async with database.connection() as db:
        await db.execute("UPDATE sandbox_bookings SET scenario = 'carrier_down' WHERE company_id = $1", company.test)
    payment = await ask(sandbox, booked["id"])
    assert (payment["status"], payment["qr"], payment["live"]) == ("pending", booked["paymentQr"], False)
    assert payment["error"]
