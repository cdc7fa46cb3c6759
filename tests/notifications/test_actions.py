"""Customers are told of chosen steps, once each, over a channel and by a template; and not when there is a reason."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapa.db.pool import Database
from sapa.notifications.content import STATUSES, find_step
from sapa.shipping.states import STATUSES as ALL_STATUSES
from tests.conftest import Installation, connect
from tests.factories import Environments, make_customer, make_key, make_order
from tests.messaging.conftest import connect_messaging
from tests.messaging.conversation_steps import read_outbox
from tests.messaging.send_steps import make_template
from tests.shipping import parcels

PATIENCE = 120
NUMBER = "+628123456701"


@pytest.fixture
async def sandbox(
    installation: Installation, database: Database, company: Environments
) -> AsyncIterator[httpx.AsyncClient]:
    async with connect(installation, (await make_key(database, company.test)).raw) as client:
        yield client


@pytest.fixture
async def messaging(
    installation: Installation, database: Database, company: Environments
) -> AsyncIterator[httpx.AsyncClient]:
    async with connect_messaging(installation, (await make_key(database, company.test)).raw) as client:
        yield client


async def set_up(sandbox: httpx.AsyncClient, *steps: str, **rule: Any) -> httpx.Response:
    fields = {"templateName": "parcel_update", "params": ["awb", "trackingUrl"], "sources": "MSGAPP_CLOUD", **rule}
    rules = [{"step": step, **fields} for step in steps]
    return await sandbox.put("/shipping/notifications", json={"enabled": True, "rules": rules})


async def make_parcel_template(messaging: httpx.AsyncClient, **fields: Any) -> None:
    await make_template(
        messaging, name="parcel_update", body="Kabar paket {{1}} Anda ada di {{2}} setiap saat.", **fields
    )


async def ship_to_customer(sandbox: httpx.AsyncClient, **fields: Any) -> dict[str, Any]:
    customer = await make_customer(sandbox, phoneNumber=NUMBER, **fields)
    order = await make_order(sandbox, customerId=customer["id"])
    return await parcels.create(sandbox, "custom", orderId=order["id"], awb="RESI-1", autoBook=True)


async def await_notification(sandbox: httpx.AsyncClient, id: str, step: str) -> dict[str, Any]:
    deadline = time.monotonic() + PATIENCE
    while True:
        response = await sandbox.get(f"/shipping/shipments/{id}/notifications")
        assert response.status_code == 200, response.text
        for found in response.json()["data"]:
            if found["step"] == step and found["status"] not in {"queued", "sending"}:
                return dict(found)
        assert time.monotonic() < deadline, response.text
        await asyncio.sleep(0.1)


async def count_sent(messaging: httpx.AsyncClient) -> int:
    """Without the templates that were submitted."""
    return sum(entry["path"].endswith("/messages") for entry in await read_outbox(messaging))


async def move(sandbox: httpx.AsyncClient, id: str, *statuses: str) -> None:
    for status in statuses:
        response = await parcels.change(sandbox, id, shippingStatus=status)
        assert response.status_code == 200, response.text


@pytest.mark.smoke
async def test_a_customer_is_notified_of_a_chosen_step_with_the_link(
    sandbox: httpx.AsyncClient, messaging: httpx.AsyncClient, installation: Installation
) -> None:
    await make_parcel_template(messaging)
    assert (await set_up(sandbox, "out_for_delivery", "delivered")).status_code == 200
    shipment = await ship_to_customer(sandbox)
    await move(sandbox, shipment["id"], "picked_up", "out_for_delivery")
    notification = await await_notification(sandbox, shipment["id"], "out_for_delivery")
    assert (notification["status"], notification["reason"]) == ("sent", None)
    message = (await messaging.get(f"/messages/{notification['messageId2']}")).json()["data"]
    page = installation.address + shipment["trackingPage"]
    assert (message["body"], message["clientNumber"]) == (f"Kabar paket RESI-1 Anda ada di {page} setiap saat.", NUMBER)
    assert message["featureSource"] == "AUTOMATION"
    assert message["metadata"] == {"shipmentId": shipment["id"], "step": "out_for_delivery"}
    await move(sandbox, shipment["id"], "delivered")
    await await_notification(sandbox, shipment["id"], "delivered")
    listed = (await sandbox.get(f"/shipping/shipments/{shipment['id']}/notifications")).json()["data"]
    assert [one["step"] for one in listed] == ["out_for_delivery", "delivered"]


async def test_a_message_names_the_city_of_a_receiver_who_has_area_ids_only(
    sandbox: httpx.AsyncClient, messaging: httpx.AsyncClient
) -> None:
    await make_parcel_template(messaging)
    await set_up(sandbox, "delivered", params=["awb", "city"])
    delivery = {**parcels.DELIVERY, "city": None, "phone": NUMBER}
    shipment = await parcels.create(sandbox, "custom", delivery=delivery, awb="RESI-1", autoBook=True)
    await move(sandbox, shipment["id"], "picked_up", "delivered")
    notification = await await_notification(sandbox, shipment["id"], "delivered")
    message = (await messaging.get(f"/messages/{notification['messageId2']}")).json()["data"]
    assert message["body"] == "Kabar paket RESI-1 Anda ada di Kota Jakarta Selatan setiap saat."


async def test_a_step_that_is_taken_twice_is_notified_once(
    sandbox: httpx.AsyncClient, messaging: httpx.AsyncClient
) -> None:
    await make_parcel_template(messaging)
    await set_up(sandbox, "out_for_delivery")
    shipment = await ship_to_customer(sandbox)
    await move(sandbox, shipment["id"], "picked_up", "out_for_delivery")
    first = await await_notification(sandbox, shipment["id"], "out_for_delivery")
    await move(sandbox, shipment["id"], "delivery_failed", "out_for_delivery")
    assert await await_notification(sandbox, shipment["id"], "out_for_delivery") == first
    assert await count_sent(messaging) == 1


async def test_nothing_is_sent_until_the_company_turns_it_on(
    sandbox: httpx.AsyncClient, messaging: httpx.AsyncClient
) -> None:
    assert (await sandbox.get("/shipping/notifications")).json()["data"] == {
        "enabled": False, "rules": [], "updatedAt": None,
    }  # fmt: skip
    await make_parcel_template(messaging)
    await set_up(sandbox, "delivered")
    rules = (await sandbox.get("/shipping/notifications")).json()["data"]["rules"]
    await sandbox.put("/shipping/notifications", json={"enabled": False, "rules": rules})
    shipment = await ship_to_customer(sandbox)
    await move(sandbox, shipment["id"], "picked_up", "delivered")
    assert (await sandbox.get(f"/shipping/shipments/{shipment['id']}/notifications")).json()["data"] == []


@pytest.mark.parametrize(
    ("marketing_goes_to", "category", "subscriptions", "outcome"),
    [
        ("subscribed", "MARKETING", [{"app": "CRM", "status": "unsubscribe"}], ("skipped", "CONSENT_MISSING")),
        ("subscribed", "MARKETING", [{"app": "MAIL", "status": "subscribe"}], ("skipped", "CONSENT_MISSING")),
        ("subscribed", "MARKETING", [], ("skipped", "CONSENT_MISSING")),
        ("subscribed", "MARKETING", [{"app": "CRM", "status": "subscribe"}], ("sent", None)),
        ("subscribed", "MARKETING", [{"app": "MSGAPP_CLOUD", "status": "subscribe"}], ("sent", None)),
        ("subscribed", "UTILITY", [{"app": "CRM", "status": "unsubscribe"}], ("sent", None)),
        (
            "not_refused",
            "MARKETING",
            [{"app": "MSGAPP_CLOUD", "status": "unsubscribe"}],
            ("skipped", "CONSENT_MISSING"),
        ),
        ("not_refused", "MARKETING", [{"app": "MAIL", "status": "unsubscribe"}], ("sent", None)),
        ("not_refused", "MARKETING", [{"app": "Loyalty app", "status": "unsubscribe"}], ("sent", None)),
        ("not_refused", "MARKETING", [], ("sent", None)),
    ],
)
async def test_a_marketing_template_needs_consent(
    sandbox: httpx.AsyncClient,
    messaging: httpx.AsyncClient,
    marketing_goes_to: str,
    category: str,
    subscriptions: list[dict[str, str]],
    outcome: tuple[str, str | None],
) -> None:
    await sandbox.put("/consent-settings", json={"automaticMarketing": marketing_goes_to})
    await make_parcel_template(messaging, category=category)
    await set_up(sandbox, "delivered")
    shipment = await ship_to_customer(sandbox, subscriptionStatus=subscriptions)
    await move(sandbox, shipment["id"], "picked_up", "delivered")
    notification = await await_notification(sandbox, shipment["id"], "delivered")
    assert (notification["status"], notification["code"]) == outcome


async def test_who_unsubscribed_from_any_channel_gets_no_marketing_over_an_unnamed_one(
    sandbox: httpx.AsyncClient, messaging: httpx.AsyncClient
) -> None:
    """Without sources the send chooses the channel, which may be the one."""
    await make_parcel_template(messaging, category="MARKETING")
    await set_up(sandbox, "delivered", sources=None)
    status = [{"app": "MSGAPP_CLOUD", "status": "unsubscribe"}]
    shipment = await ship_to_customer(sandbox, subscriptionStatus=status)
    await move(sandbox, shipment["id"], "picked_up", "delivered")
    notification = await await_notification(sandbox, shipment["id"], "delivered")
    assert (notification["status"], notification["code"]) == ("skipped", "CONSENT_MISSING")


async def test_a_channel_whose_window_is_closed_is_not_used(
    sandbox: httpx.AsyncClient, messaging: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    """Channels without approved templates send them as text, for which the window must be open."""
    await make_parcel_template(messaging)
    await set_up(sandbox, "delivered", sources="SOCIAL_NETWORK")
    known, unknown = await ship_to_customer(sandbox), await parcels.create(sandbox, "custom", autoBook=True)
    order = (await sandbox.get(f"/orders/{known['orderId']}")).json()["data"]
    async with database.transaction() as tx:
        await tx.execute(
            "INSERT INTO contacts (company_id, id, customer_id) VALUES ($1, 'con_1', $2)",
            company.test, order["customer"]["id"],
        )  # fmt: skip
        await tx.execute(
            "INSERT INTO contact_identities (company_id, kind, key, contact_id, spellings)"
            " VALUES ($1, 'psid', 'sim_window_closed', 'con_1', '{sim_window_closed}')",
            company.test,
        )
    for shipment, code in ((known, "WINDOW_CLOSED"), (unknown, "NO_ADDRESS")):
        await move(sandbox, shipment["id"], "picked_up", "delivered")
        notification = await await_notification(sandbox, shipment["id"], "delivered")
        assert (notification["status"], notification["code"]) == ("skipped", code)


async def test_the_first_channel_with_an_address_is_used(
    sandbox: httpx.AsyncClient, messaging: httpx.AsyncClient
) -> None:
    await make_parcel_template(messaging)
    await set_up(sandbox, "delivered", sources=["SOCIAL_NETWORK", "MAIL", "MSGAPP_CLOUD"])
    shipment = await ship_to_customer(sandbox, email="ayu.parcel@example.com")
    await move(sandbox, shipment["id"], "picked_up", "delivered")
    notification = await await_notification(sandbox, shipment["id"], "delivered")
    message = (await messaging.get(f"/messages/{notification['messageId2']}")).json()["data"]
    assert (message["source"], message["clientNumber"]) == ("MAIL", "ayu.parcel@example.com")


async def test_a_step_that_is_left_late_or_turned_off_is_no_news(
    sandbox: httpx.AsyncClient, messaging: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    shipment = await ship_to_customer(sandbox)
    await make_parcel_template(messaging)
    await set_up(sandbox, "booked", "picked_up")
    async with database.transaction() as tx:
        await tx.execute(
            "INSERT INTO shipment_notifications (company_id, shipment_id, step, occurred_at) VALUES"
            " ($1, $2, 'booked', now() - interval '13 hours'), ($1, $2, 'picked_up', now()),"
            " ($1, $2, 'delivered', now())",
            company.test, shipment["id"],
        )  # fmt: skip
    for step, code in (("booked", "STALE"), ("picked_up", "OVERTAKEN"), ("delivered", "TURNED_OFF")):
        notification = await await_notification(sandbox, shipment["id"], step)
        assert (notification["status"], notification["code"]) == ("skipped", code)


async def test_what_a_dead_worker_was_sending_is_not_sent_again(
    sandbox: httpx.AsyncClient, messaging: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    await make_parcel_template(messaging)
    await set_up(sandbox, "booked")
    shipment = await parcels.create(sandbox, "custom")
    async with database.transaction() as tx:
        await tx.execute(
            "INSERT INTO shipment_notifications (company_id, shipment_id, step, occurred_at, status, due_at)"
            " VALUES ($1, $2, 'booked', now(), 'sending', now())",
            company.test, shipment["id"],
        )  # fmt: skip
    notification = await await_notification(sandbox, shipment["id"], "booked")
    assert (notification["status"], notification["messageId2"]) == ("unknown", None)
    assert await count_sent(messaging) == 0


async def test_a_template_that_does_not_fit_is_refused_when_it_is_chosen(
    sandbox: httpx.AsyncClient, messaging: httpx.AsyncClient
) -> None:
    assert parcels.error_of(await set_up(sandbox, "delivered")) == (409, "TEMPLATE_NOT_FOUND")
    await make_parcel_template(messaging)
    assert parcels.error_of(await set_up(sandbox, "delivered", params=["awb"])) == (409, "TEMPLATE_PARAMS_MISMATCH")
    assert parcels.field_of(await set_up(sandbox, "delivered", "delivered")) == "rules[1].step"
    assert parcels.field_of(await set_up(sandbox, "delivered", sources="PIGEON")) == "rules[0].sources"


@given(st.sampled_from(ALL_STATUSES), st.sampled_from(ALL_STATUSES))
def test_a_step_is_taken_when_a_parcel_enters_it(before: str, after: str) -> None:
    step = find_step(before, after)
    if step is not None:
        assert after in STATUSES[step]
        assert before not in STATUSES[step]
    elif after in {"delivered", "out_for_delivery", "returned"}:
        assert before == after
