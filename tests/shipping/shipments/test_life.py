"""The whole life of a shipment with every provider, from the quote to the end, with its webhooks."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import msgspec
import pytest

from sapa.db.pool import Database
from sapa.values.sealing import Vault
from tests.cli.command import sapa
from tests.conftest import Installation
from tests.factories import Environments, make_endpoint, make_order
from tests.shipping.parcels import (
    DELIVERY,
    PACKAGE,
    SENDER,
    advance,
    cancel,
    change,
    create,
    get,
    list_events,
    track,
    until_status,
)
from tests.webhooks.station import Station, open_station, until

ALL = ["aggregator_carrier", "instant_carrier", "ev_courier", "custom", "parcel_carrier"]
LOCAL = {"custom", "parcel_carrier"}


@pytest.fixture(scope="module")
def installation(post_office: Installation) -> Installation:
    return post_office


@pytest.fixture(scope="module")
def database(post: Database) -> Database:
    return post


@pytest.fixture
async def station() -> AsyncIterator[Station]:
    async with open_station() as station:
        yield station


@pytest.fixture
async def receiver(installation: Installation, database: Database, company: Environments, station: Station) -> Station:
    """A receiver of the test company's webhooks."""
    await make_endpoint(database, Vault(installation.server.secret_key), company.test, station.url("hooks"))
    return station


async def quote(api: httpx.AsyncClient, provider: str) -> dict[str, Any]:
    """The cheapest offer, in the fields of a shipment."""
    if provider in LOCAL:
        return {}
    body = {
        "provider": provider, "origin": SENDER, "destination": DELIVERY, "package": PACKAGE,
        "options": {"pickupCity": "Jakarta Pusat"} if provider == "ev_courier" else {},
    }  # fmt: skip
    response = await api.post("/shipping/calculate-fee", json=body)
    assert response.status_code == 200, response.text
    offer = response.json()["options"][0]
    names = ("serviceCode", "serviceName", "serviceType")
    return {"fee": offer["price"], **{name: offer[name] for name in names}}


async def book(
    installation: Installation, api: httpx.AsyncClient, company: Environments, provider: str, **fields: Any
) -> dict[str, Any]:
    """From the quote to a booked shipment."""
    created = await create(api, provider, **{**await quote(api, provider), "autoBook": True, **fields})
    if provider == "instant_carrier":
        assert created["shippingStatus"] == "awaiting"
        sapa(installation.data, "shipment", "book", created["id"], "--company", str(company.test), "--json").json()
    if provider in {"aggregator_carrier", "ev_courier"}:
        created = await until_status(api, created["id"], awb=...)
    return await get(api, created["id"])


async def go(api: httpx.AsyncClient, shipment: dict[str, Any], status: str) -> dict[str, Any]:
    if shipment["provider"] in LOCAL:
        assert (await change(api, shipment["id"], shippingStatus=status)).status_code == 200
    else:
        await advance(api, shipment["id"], status)
    return await until_status(api, shipment["id"], status)


def arrivals_of(receiver: Station, id: str) -> list[tuple[str, str]]:
    """Kind and status of the webhooks received for a shipment."""
    return [
        (arrival.headers["X-Service-Webhook-Event"], str(msgspec.json.decode(arrival.body)["shippingStatus"]))
        for arrival in receiver.arrivals
        if arrival.resource == id
    ]


@pytest.mark.parametrize("provider", ALL)
async def test_from_a_quote_to_the_door(
    installation: Installation,
    sandbox: httpx.AsyncClient,
    database: Database,
    company: Environments,
    receiver: Station,
    provider: str,
) -> None:
    order = await make_order(sandbox)
    created = await book(installation, sandbox, company, provider, orderId=order["id"])
    await go(sandbox, created, "picked_up")
    assert (await sandbox.get(f"/orders/{order['id']}")).json()["data"]["fulfillmentStatus"] == "fulfilled"
    done = await go(sandbox, created, "delivered")
    if provider not in LOCAL:
        assert done["eventTimestamp"] is not None
    if provider in {"instant_carrier", "ev_courier"}:
        assert done["driver"]["name"]
        assert done["driver"]["phone"]
    events = await list_events(database, company.test, created["id"])
    assert events[-1] == ("shipment.status.updated", done)
    await until(lambda: len(arrivals_of(receiver, created["id"])) == len(events))
    arrivals = arrivals_of(receiver, created["id"])
    assert arrivals == [(kind, body["shippingStatus"]) for kind, body in events]
    assert arrivals[0][0] == "shipment.created"
    assert [kind for kind, _ in arrivals].count("shipment.booked") == 1
    assert arrivals[-1] == ("shipment.status.updated", "delivered")


@pytest.mark.parametrize("provider", ALL)
async def test_what_comes_back(
    installation: Installation, sandbox: httpx.AsyncClient, company: Environments, receiver: Station, provider: str
) -> None:
    created = await book(installation, sandbox, company, provider, sim="returned")
    await go(sandbox, created, "picked_up")
    if provider in {"instant_carrier", "ev_courier"}:
        await go(sandbox, created, "returning")  # the carrier reports no more: a person confirms the return
        response = await change(sandbox, created["id"], shippingStatus="returned")
        assert response.status_code == 200, response.text
        done = response.json()["data"]
    else:
        done = await go(sandbox, created, "returned")
    assert done["shippingStatus"] == "returned"
    assert (await get(sandbox, created["id"])) == done
    await until(lambda: ("shipment.status.updated", "returned") in arrivals_of(receiver, created["id"]))


@pytest.mark.parametrize("provider", ALL)
async def test_what_is_called_off(
    installation: Installation,
    sandbox: httpx.AsyncClient,
    database: Database,
    company: Environments,
    receiver: Station,
    provider: str,
) -> None:
    created = await book(installation, sandbox, company, provider)
    response = await cancel(sandbox, created["id"], "Out of stock")
    assert response.status_code == 200, response.text
    end = "cancelled_by_business" if provider == "ev_courier" else "cancelled"
    assert response.json()["data"]["shippingStatus"] == end
    await until(lambda: ("shipment.cancelled", end) in arrivals_of(receiver, created["id"]))
    assert ("shipment.status.updated", end) in arrivals_of(receiver, created["id"])


async def test_a_new_driver_replaces_the_old_one(sandbox: httpx.AsyncClient) -> None:
    created = await create(sandbox, "ev_courier", sim="reassign", autoBook=True)
    await until_status(sandbox, created["id"], awb=...)
    await advance(sandbox, created["id"], "picking_up")
    first = (await until_status(sandbox, created["id"], "picking_up"))["driver"]
    await advance(sandbox, created["id"], "picked_up")
    second = (await until_status(sandbox, created["id"], "picked_up"))["driver"]
    assert first["name"] != second["name"]


@pytest.mark.parametrize(("scenario", "end"), [("lost", "lost"), ("delivery_failed", "delivery_failed")])
async def test_a_failed_delivery_has_a_problem(sandbox: httpx.AsyncClient, scenario: str, end: str) -> None:
    created = await create(sandbox, "aggregator_carrier", sim=scenario, autoBook=True)
    await until_status(sandbox, created["id"], awb=...)
    await advance(sandbox, created["id"], end)
    done = await until_status(sandbox, created["id"], end)
    assert done["problem"]
    assert done["needsAction"] is (end == "lost")


async def test_callbacks_of_the_same_second_take_effect_in_their_order(sandbox: httpx.AsyncClient) -> None:
    """A parcel goes back to its way after a failed delivery: the wrong order would leave it there."""
    parcels = [await create(sandbox, "aggregator_carrier", sim="delivery_failed", autoBook=True) for _ in range(8)]
    for parcel in parcels:
        await until_status(sandbox, parcel["id"], awb=...)
    await asyncio.gather(*(advance(sandbox, parcel["id"], "delivery_failed") for parcel in parcels))
    for parcel in parcels:
        await until_status(sandbox, parcel["id"], "delivery_failed")
        moves = [event["status"] for event in (await track(sandbox, parcel["id"]))["history"]]
        assert moves[-3:] == ["picked_up", "in_transit", "delivery_failed"]
