"""The whole life of cash on delivery with both aggregators: quote, booking, delivery, payment, statement."""

import asyncio
from typing import Any

import httpx
import pytest

from sapa.context import AppContext
from sapa.db.pool import Database
from sapa.shipping.connections import actions as connections
from sapa.values.company import Company
from tests.factories import Environments, make_order
from tests.shipping.parcels import (
    DELIVERY,
    PACKAGE,
    SENDER,
    advance,
    body_of,
    create,
    get,
    move_clock,
    until_status,
)

AGGREGATORS = ("kiriminaja", "biteship")
CASH = 150_000


@pytest.fixture(params=AGGREGATORS)
async def aggregator(request: pytest.FixtureRequest, context: AppContext, tester: Company) -> str:
    """The company's aggregator, connected in its test environment."""
    adapter = str(request.param)
    await connections.connect(context, tester, "aggregator_carrier", adapter, {})
    return adapter


async def quote(api: httpx.AsyncClient, **options: Any) -> dict[str, Any]:
    body = {
        "provider": "aggregator_carrier", "origin": SENDER, "destination": DELIVERY, "package": PACKAGE,
        "options": options,
    }  # fmt: skip
    response = await api.post("/shipping/calculate-fee", json=body)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()["data"]
    return found


async def deliver(api: httpx.AsyncClient, **fields: Any) -> dict[str, Any]:
    """A delivered parcel that collected cash."""
    booked = await create(api, "aggregator_carrier", autoBook=True, codAmount=CASH, **fields)
    assert booked["shippingStatus"] == "confirmed", booked["problem"]
    await until_status(api, booked["id"], awb=...)
    await advance(api, booked["id"], "delivered")
    return await until_status(api, booked["id"], "delivered")


async def statement(api: httpx.AsyncClient) -> dict[str, Any]:
    response = await api.get("/shipping/sandbox/cod-statement", params={"provider": "aggregator_carrier"})
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()["data"]
    return found


async def settle(api: httpx.AsyncClient, body: dict[str, Any], status: int = 201) -> dict[str, Any]:
    response = await api.post("/shipping/settlements", json=body)
    assert response.status_code == status, response.text
    settled: dict[str, Any] = response.json()["data"]
    return settled


async def differences(api: httpx.AsyncClient, **params: str) -> list[dict[str, Any]]:
    response = await api.get("/shipping/cod-differences", params=params)
    assert response.status_code == 200, response.text
    assert response.json()["meta"]["total"] == len(response.json()["data"])
    found: list[dict[str, Any]] = response.json()["data"]
    return found


async def test_from_the_quote_to_the_money(sandbox: httpx.AsyncClient, aggregator: str) -> None:
    quoted = await quote(sandbox, codAmount=CASH, insurance=True)
    assert quoted["options"], quoted
    assert all(option["cod"] and option["codFee"] > 0 for option in quoted["options"])
    assert "cod_not_offered" in {message["code"] for message in quoted["messages"]}, "the fastest collects nothing"
    option = next(option for option in quoted["options"] if option["serviceName"] == "JNE Reguler")

    order = await make_order(sandbox)
    assert order["total"] == CASH
    done = await deliver(sandbox, orderId=order["id"], serviceCode=option["serviceCode"], insurance=True)
    assert (done["codAmount"], done["codFee"]) == (CASH, option["codFee"])
    assert (done["carrierFee"], done["insuranceFee"]) == (option["price"], option["insuranceFee"])
    assert (done["insuranceAmount"], done["estimate"]) == (PACKAGE["itemValue"], option["estimate"])
    assert done["codCollectedAt"] == done["eventTimestamp"]
    paid = (await sandbox.get(f"/orders/{order['id']}")).json()["data"]
    assert (paid["financialStatus"], paid["fulfillmentStatus"]) == ("paid", "fulfilled")
    assert await differences(sandbox) == []

    collected = (await sandbox.get("/shipping/shipments", params={"codState": "collected"})).json()["data"]
    assert [one["id"] for one in collected] == [done["id"]]
    said = await statement(sandbox)
    settled = await settle(sandbox, said)
    assert (settled["parcels"], settled["differing"], settled["difference"]) == (1, 0, 0)
    assert await differences(sandbox) == []
    after = await get(sandbox, done["id"])
    assert after["codRemittedAmount"] == said["lines"][0]["amount"] == settled["expectedAmount"]
    assert after["codRemittedAt"] == said["remittedAt"]
    remitted = (await sandbox.get("/shipping/shipments", params={"codState": "remitted"})).json()["data"]
    assert [one["id"] for one in remitted] == [done["id"]]


async def test_the_next_statement_has_what_is_not_paid_out_yet(sandbox: httpx.AsyncClient, aggregator: str) -> None:
    first = await deliver(sandbox)
    said = await statement(sandbox)
    await settle(sandbox, said)
    assert (await statement(sandbox))["lines"] == []
    second = await deliver(sandbox)
    following = await statement(sandbox)
    assert [line["parcel"] for line in following["lines"]] == [second["awb"]]
    assert following["reference"] != said["reference"]
    assert (await settle(sandbox, following))["differing"] == 0
    assert (await get(sandbox, first["id"]))["codRemittedAt"] == said["remittedAt"]
    assert await differences(sandbox) == []


async def test_a_rupiah_less_is_found(sandbox: httpx.AsyncClient, aggregator: str) -> None:
    parcels = [await deliver(sandbox) for _ in range(3)]
    said = await statement(sandbox)
    assert sorted(line["parcel"] for line in said["lines"]) == sorted(one["awb"] for one in parcels)
    said["lines"][1]["amount"] -= 1
    settled = await settle(sandbox, said)
    assert (settled["parcels"], settled["differing"], settled["difference"]) == (3, 1, -1)
    (found,) = await differences(sandbox, state="open")
    assert (found["kind"], found["difference"]) == ("remitted_amount", -1)
    assert (found["parcel"], found["line"]) == (said["lines"][1]["parcel"], 2)
    assert found["actual"] == found["expected"] - 1
    lines = (await sandbox.get(f"/shipping/settlements/{settled['id']}/lines")).json()["data"]
    assert [line["difference"] for line in lines] == [0, -1, 0]


async def test_a_parcel_that_comes_back_collects_nothing(sandbox: httpx.AsyncClient, aggregator: str) -> None:
    order = await make_order(sandbox)
    booked = await create(
        sandbox, "aggregator_carrier", sim="returned", autoBook=True, codAmount=CASH, orderId=order["id"]
    )
    await until_status(sandbox, booked["id"], awb=...)

    async def count_expected() -> int:
        return int((await sandbox.get("/shipping/shipments", params={"codState": "expected"})).json()["meta"]["total"])

    assert await count_expected() == 1
    await advance(sandbox, booked["id"], "returned")
    done = await until_status(sandbox, booked["id"], "returned")
    assert (done["codCollectedAt"], await count_expected()) == (None, 0)
    assert (await sandbox.get(f"/orders/{order['id']}")).json()["data"]["financialStatus"] == "pending"
    line = {"parcel": done["awb"], "amount": -done["carrierFee"]}
    body = {"provider": "aggregator_carrier", "reference": "R1", "remittedAt": "2026-01-31T09:30:00Z", "lines": [line]}
    await settle(sandbox, body)
    (found,) = await differences(sandbox)
    assert (found["kind"], found["difference"]) == ("not_delivered", -done["carrierFee"])


@pytest.mark.parametrize(
    ("amount", "status", "outstanding"),
    [(100_000, "partially_paid", 50_000), (150_000, "paid", 0), (200_000, "paid", 0)],
)
async def test_the_order_owes_another_amount(
    sandbox: httpx.AsyncClient, amount: int, status: str, outstanding: int
) -> None:
    """What the order owes is paid; the rest of the cash is a difference."""
    order = await make_order(sandbox)
    created = await deliver_ourselves(sandbox, orderId=order["id"], codAmount=amount)
    paid = (await sandbox.get(f"/orders/{order['id']}")).json()["data"]
    assert (paid["financialStatus"], paid["outstanding"]) == (status, outstanding)
    ((payment,),) = [paid["payments"]]
    assert (payment["amount"], payment["method"]) == (min(amount, CASH), "cod")
    assert payment["reference"] == created["id"]
    found = [(one["kind"], one["expected"], one["actual"], one["difference"]) for one in await differences(sandbox)]
    assert found == ([("order_amount", CASH, amount, amount - CASH)] if amount > CASH else [])


async def test_an_order_that_was_paid_before(sandbox: httpx.AsyncClient) -> None:
    order = await make_order(sandbox)
    body = {"amount": 40_000, "method": "bank_transfer"}
    assert (await sandbox.post(f"/orders/{order['id']}/payments", json=body)).status_code == 201
    created = await deliver_ourselves(sandbox, orderId=order["id"], codAmount=CASH)
    paid = (await sandbox.get(f"/orders/{order['id']}")).json()["data"]
    assert [payment["amount"] for payment in paid["payments"]] == [40_000, 110_000]
    assert (paid["financialStatus"], paid["outstanding"]) == ("paid", 0)
    (found,) = await differences(sandbox, shipmentId=created["id"])
    assert (found["kind"], found["difference"], found["orderId"]) == ("order_amount", 40_000, order["id"])


async def test_two_parcels_of_one_order_at_the_same_time(sandbox: httpx.AsyncClient) -> None:
    order = await make_order(sandbox)
    parcels = [await create(sandbox, "custom", orderId=order["id"], codAmount=75_000) for _ in range(2)]
    for status in ("confirmed", "delivered"):
        bodies = [(one["id"], {"shippingStatus": status}) for one in parcels]
        responses = await asyncio.gather(
            *(sandbox.patch(f"/shipping/shipments/{id}", json=body) for id, body in bodies)
        )
        assert [response.status_code for response in responses] == [200, 200]
    paid = (await sandbox.get(f"/orders/{order['id']}")).json()["data"]
    assert (paid["financialStatus"], len(paid["payments"])) == ("paid", 2)
    assert await differences(sandbox) == []


async def test_a_parcel_that_comes_back_after_its_delivery(sandbox: httpx.AsyncClient) -> None:
    """The order stays paid until a person has found out who has the cash."""
    order = await make_order(sandbox)
    created = await deliver_ourselves(sandbox, orderId=order["id"], codAmount=CASH)
    for status in ("returning", "returned"):
        response = await sandbox.patch(f"/shipping/shipments/{created['id']}", json={"shippingStatus": status})
        assert response.status_code == 200, response.text
    (found,) = await differences(sandbox)
    assert (found["kind"], found["expected"], found["actual"]) == ("returned", 0, CASH)
    assert (await sandbox.get(f"/orders/{order['id']}")).json()["data"]["financialStatus"] == "paid"


async def deliver_ourselves(api: httpx.AsyncClient, **fields: Any) -> dict[str, Any]:
    created = await create(api, "custom", **fields)
    for status in ("confirmed", "delivered"):
        response = await api.patch(f"/shipping/shipments/{created['id']}", json={"shippingStatus": status})
        assert response.status_code == 200, response.text
    return await get(api, created["id"])


async def test_callbacks_that_come_twice_pay_once(sandbox: httpx.AsyncClient, aggregator: str) -> None:
    order = await make_order(sandbox)
    await deliver(sandbox, sim="webhook_duplicate", orderId=order["id"])
    paid = (await sandbox.get(f"/orders/{order['id']}")).json()["data"]
    assert [payment["amount"] for payment in paid["payments"]] == [CASH]
    assert await differences(sandbox) == []


async def test_a_lost_response_leaves_the_fees_to_the_statement(
    sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    """The booking is found again by our reference, without what it costs."""
    unknown = await create(
        sandbox, "aggregator_carrier", status=202, sim="booking_timeout", autoBook=True, codAmount=CASH
    )
    assert (unknown["shippingStatus"], unknown["codFee"]) == ("booking_unknown", None)
    await move_clock(database, company.test, 6)
    await until_status(sandbox, unknown["id"], "confirmed", awb=...)
    await advance(sandbox, unknown["id"], "delivered")
    await until_status(sandbox, unknown["id"], "delivered")
    said = await statement(sandbox)
    settled = await settle(sandbox, said)
    assert (settled["differing"], settled["expectedAmount"]) == (0, said["lines"][0]["amount"])
    after = await get(sandbox, unknown["id"])
    assert (after["codFee"], after["carrierFee"]) == (said["lines"][0]["codFee"], said["lines"][0]["carrierFee"])


async def test_what_cannot_be_collected(sandbox: httpx.AsyncClient) -> None:
    for provider, fields, field in (
        ("aggregator_carrier", {"codAmount": 0}, "codAmount"),
        ("aggregator_carrier", {"codAmount": 150000.5}, "codAmount"),
        ("aggregator_carrier", {"codAmount": 10, "currency": "USD"}, "codAmount"),
        ("instant_carrier", {"codAmount": 150000}, "codAmount"),
        ("ev_courier", {"codAmount": 150000}, "codAmount"),
        ("custom", {"refundId": "rfd_01jc9y3q5me8w92v7x4t6r0n1k"}, "refundId"),
    ):
        response = await sandbox.post("/shipping/shipments", json=body_of(provider, **fields))
        assert response.status_code == 400, (provider, fields, response.text)
        assert response.json()["error"]["details"][0]["field"] == field
    assert (await create(sandbox, "custom", codAmount=150000.5))["codAmount"] == 150000.5
    response = await sandbox.post(
        "/shipping/calculate-fee",
        json={
            "provider": "instant_carrier", "origin": SENDER, "destination": DELIVERY, "package": PACKAGE,
            "options": {"codAmount": CASH},
        },
    )  # fmt: skip
    assert response.json()["error"]["details"][0]["field"] == "options.codAmount"


LIMITS = {
    ("kiriminaja", "JNE Reguler"): (10_000, 3_000_000),
    ("kiriminaja", "SiCepat Reguler"): (10_000, 3_000_000),
    ("biteship", "JNE Reguler"): (25_000, 5_000_000),
    ("biteship", "SiCepat Reguler"): (1_000, 2_500_000),
}


async def test_an_amount_within_the_limits_of_the_courier_is_collected(
    sandbox: httpx.AsyncClient, aggregator: str
) -> None:
    for (adapter, service), limits in LIMITS.items():
        for amount in limits if adapter == aggregator else ():
            options = {option["serviceName"]: option for option in (await quote(sandbox, codAmount=amount))["options"]}
            assert (options[service]["codMinimum"], options[service]["codMaximum"]) == limits
            booked = await create(sandbox, "aggregator_carrier", autoBook=True, serviceName=service, codAmount=amount)
            assert booked["shippingStatus"] == "confirmed", booked["problem"]


async def test_an_amount_beyond_the_limits_of_the_courier_is_refused_with_them(
    sandbox: httpx.AsyncClient, aggregator: str
) -> None:
    for (adapter, service), (least, most) in LIMITS.items():
        for amount in (least - 1, most + 1) if adapter == aggregator else ():
            said = f"{service} collects {least:,} to {most:,} IDR on delivery"
            quoted = await quote(sandbox, codAmount=amount)
            assert service not in {option["serviceName"] for option in quoted["options"]}
            assert ("cod_out_of_range", f"{said}.") in {(one["code"], one["text"]) for one in quoted["messages"]}
            refused = await create(sandbox, "aggregator_carrier", autoBook=True, serviceName=service, codAmount=amount)
            assert (refused["shippingStatus"], refused["needsAction"]) == ("booking_failed", True)
            assert said in refused["problem"]


async def test_cash_is_collected_by_a_delivery_that_code_of_before_had_recorded(
    sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    """Such code does not know of cash. The statement makes up for it."""
    order = await make_order(sandbox)
    parcel = await create(sandbox, "custom", orderId=order["id"], codAmount=CASH, autoBook=True)
    async with database.connection() as db:
        await db.execute(
            "UPDATE shipments SET shipping_status = 'delivered' WHERE company_id = $1 AND id = $2",
            company.test, parcel["id"],
        )  # fmt: skip
    line = {"parcel": parcel["id"], "amount": CASH}
    body = {"provider": "custom", "reference": "S", "remittedAt": "2026-01-31T09:30:00Z", "lines": [line]}
    assert (await settle(sandbox, body))["differing"] == 0
    after = await get(sandbox, parcel["id"])
    assert after["codCollectedAt"] is not None
    assert (await sandbox.get(f"/orders/{order['id']}")).json()["data"]["financialStatus"] == "paid"


async def test_money_that_arrives_before_the_news_of_the_delivery(sandbox: httpx.AsyncClient) -> None:
    order = await make_order(sandbox)
    parcel = await create(sandbox, "custom", orderId=order["id"], codAmount=CASH, autoBook=True)
    line = {"parcel": parcel["id"], "amount": CASH}
    body = {"provider": "custom", "reference": "S", "remittedAt": "2026-01-31T09:30:00Z", "lines": [line]}
    assert (await settle(sandbox, body))["differing"] == 0
    refused = await sandbox.patch(f"/shipping/shipments/{parcel['id']}", json={"codAmount": CASH + 1})
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "NOT_EDITABLE")
    await sandbox.patch(f"/shipping/shipments/{parcel['id']}", json={"shippingStatus": "delivered"})
    assert (await sandbox.get(f"/orders/{order['id']}")).json()["data"]["financialStatus"] == "paid"
    assert await differences(sandbox) == []


async def test_more_than_the_carrier_insures(sandbox: httpx.AsyncClient, aggregator: str) -> None:
    dear = {**PACKAGE, "itemValue": 30_000_000}
    refused = await create(sandbox, "aggregator_carrier", autoBook=True, insurance=True, package=dear)
    assert refused["shippingStatus"] == "booking_failed"
    fastest = await create(sandbox, "aggregator_carrier", autoBook=True, codAmount=CASH, serviceName="JNE Besok Sampai")
    assert "does not collect cash on delivery" in fastest["problem"]
