"""Carriers' callbacks: verified, stored as received, applied once, and never moving a shipment back."""

import asyncio
from itertools import permutations
from typing import Any

import httpx
import msgspec
import pytest

from sapa.db.pool import Database
from tests.cli.command import sapa
from tests.conftest import TLS, Installation
from tests.factories import Environments
from tests.shipping.parcels import (
    PATIENCE,
    advance,
    cancel,
    change,
    create,
    get,
    kinds,
    list_events,
    track,
    until_status,
)

Call = tuple[str, dict[str, str], bytes]


async def planned_callbacks(database: Database, company_id: int) -> list[Call]:
    """The simulator's pending callbacks, taken from it, in order."""
    async with database.connection() as db:
        rows = await db.fetch(
            "DELETE FROM sandbox_callbacks WHERE company_id = $1 RETURNING id, path, headers::text, body", company_id
        )
    return [
        (row["path"], msgspec.json.decode(row["headers"]), row["body"])
        for row in sorted(rows, key=lambda row: row["id"])
    ]


async def post(installation: Installation, call: Call) -> httpx.Response:
    path, headers, body = call
    async with httpx.AsyncClient(base_url=installation.address, timeout=120, verify=TLS) as client:
        return await client.post(path, headers=headers, content=body)


async def until_processed(database: Database, company_id: int) -> None:
    for _ in range(PATIENCE * 10):
        async with database.connection() as db:
            left = await db.fetchval(
                "SELECT count(*) FROM carrier_callbacks WHERE company_id = $1 AND processed_at IS NULL", company_id
            )
        if not left:
            return
        await asyncio.sleep(0.1)
    raise AssertionError("callbacks were left")


async def book_quietly(
    installation: Installation, sandbox: httpx.AsyncClient, database: Database, company_id: int, provider: str
) -> tuple[dict[str, Any], list[Call]]:
    """A booked shipment whose carrier sends nothing by itself; the test posts its callbacks."""
    created = await create(sandbox, provider, autoBook=True)
    if provider == "instant_carrier":
        sapa(installation.data, "shipment", "book", created["id"], "--company", str(company_id), "--json").json()
    calls = await planned_callbacks(database, company_id)
    return await get(sandbox, created["id"]), calls


@pytest.mark.parametrize("provider", ["aggregator_carrier", "instant_carrier", "ev_courier"])
async def test_callbacks_twice_and_backwards_end_where_they_should(
    installation: Installation, sandbox: httpx.AsyncClient, database: Database, company: Environments, provider: str
) -> None:
    created, calls = await book_quietly(installation, sandbox, database, company.test, provider)
    for call in [*reversed(calls), *calls]:
        assert (await post(installation, call)).status_code == 200
    await until_status(sandbox, created["id"], "delivered")
    await until_processed(database, company.test)
    shipment = await get(sandbox, created["id"])
    assert shipment["shippingStatus"] == "delivered"
    events = kinds(await list_events(database, company.test, created["id"]))
    async with database.connection() as db:
        stored = await db.fetchval("SELECT count(*) FROM carrier_callbacks WHERE company_id = $1", company.test)
    assert stored == len(calls), "the same callback again is no news"
    history = (await track(sandbox, created["id"]))["history"]
    assert any(not event["applied"] for event in history), "what came late is kept"
    assert events.count("shipment.status.updated") <= len(calls) + 2


async def test_no_order_of_arrival_turns_a_delivery_back(
    installation: Installation, sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    created, calls = await book_quietly(installation, sandbox, database, company.test, "aggregator_carrier")
    delivered = calls[-1]
    await post(installation, delivered)
    await until_status(sandbox, created["id"], "delivered")
    for order in list(permutations(calls[:-1]))[:3]:
        for call in order:
            await post(installation, call)
    await until_processed(database, company.test)
    assert (await get(sandbox, created["id"]))["shippingStatus"] == "delivered"


@pytest.mark.parametrize("provider", ["aggregator_carrier", "instant_carrier", "ev_courier"])
async def test_only_the_carrier_can_call(
    installation: Installation, sandbox: httpx.AsyncClient, database: Database, company: Environments, provider: str
) -> None:
    created, calls = await book_quietly(installation, sandbox, database, company.test, provider)
    path, headers, body = calls[-1]
    assert (await post(installation, ("/hooks/carriers/nobody", headers, body))).status_code == 404
    assert (await post(installation, (path[:-1] + "x", headers, body))).status_code == 404
    unsigned = {name: value for name, value in headers.items() if name.lower() != "authorization"}
    refused = await post(installation, (path, unsigned, body))
    assert (refused.status_code, refused.json()["error"]["code"]) == (401, "UNAUTHORIZED")
    forged = await post(installation, (path, {**headers, "authorization": "Bearer x"}, body))
    assert (forged.status_code, forged.json()["error"]["code"]) == (401, "UNAUTHORIZED")
    assert (await post(installation, (path, headers, b"x" * 300_000))).status_code == 413
    async with httpx.AsyncClient(base_url=installation.address, verify=TLS, timeout=120) as client:
        assert (await client.get(path)).status_code == 405
    assert (await post(installation, (path, headers, b""))).status_code == 200, "an empty trial call is answered"
    assert (await post(installation, (path, headers, b"\xff rubbish"))).status_code == 200, "kept for people to look at"
    await until_processed(database, company.test)
    assert await get(sandbox, created["id"]) == created
    async with database.connection() as db:
        bodies = await db.fetch("SELECT body FROM carrier_callbacks WHERE company_id = $1", company.test)
    assert [row["body"] for row in bodies] == [b"\xff rubbish"]


async def test_a_callback_settles_the_payment_and_does_not_reopen_it(
    installation: Installation, sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    created, calls = await book_quietly(installation, sandbox, database, company.test, "aggregator_carrier")
    assert created["paymentStatus"] == "paid", "as the booking's response says"
    async with database.connection() as db:
        await db.execute("UPDATE shipments SET payment_status = 'pending' WHERE company_id = $1", company.test)
    reports = ((9, "pending"), (0, "paid"), (9, "paid"))
    for (path, headers, body), (status_code, expected) in zip(calls, reports, strict=False):
        paid = msgspec.json.encode({**msgspec.json.decode(body), "payment": {"status_code": status_code}})
        assert (await post(installation, (path, headers, paid))).status_code == 200
        await until_processed(database, company.test)
        assert (await get(sandbox, created["id"]))["paymentStatus"] == expected


async def test_no_token_of_a_callback_is_stored(
    installation: Installation, sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    _, calls = await book_quietly(installation, sandbox, database, company.test, "instant_carrier")
    path, headers, _ = calls[0]
    secrets = [value for name, value in headers.items() if name.lower() == "authorization"]
    assert secrets
    for call in calls:
        await post(installation, call)
    await until_processed(database, company.test)
    async with database.connection() as db:
        text = await db.fetchval(
            """SELECT string_agg(c::text || convert_from(body, 'UTF8'), '') FROM carrier_callbacks c
                WHERE company_id = $1""",
            company.test,
        )
    for secret in [*secrets, path.rpartition("/")[2]]:
        assert secret.removeprefix("Bearer ") not in text


async def test_a_callback_of_another_companys_carrier_is_not_theirs_to_use(
    installation: Installation, sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    created, calls = await book_quietly(installation, sandbox, database, company.test, "aggregator_carrier")
    other_calls = []
    async with database.connection() as db:
        other = await db.fetchval("SELECT min(company_id) FROM companies WHERE environment = 'test'")
    assert other != company.test
    token = calls[0][0].replace(f"sbx_{company.test}_", f"sbx_{other}_")
    for _, headers, body in calls:
        other_calls.append(await post(installation, (token, headers, body)))
    assert {response.status_code for response in other_calls} == {404}
    assert await get(sandbox, created["id"]) == created


async def test_a_callback_that_was_given_up_is_applied_when_it_is_repeated(
    installation: Installation, sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    """The booking was not known when the first callback arrived."""
    created, calls = await book_quietly(installation, sandbox, database, company.test, "aggregator_carrier")
    _, _, body = calls[-1]
    async with database.connection() as db:
        await db.execute(
            """INSERT INTO carrier_callbacks (company_id, adapter, digest, body, events, tries, due_at, processed_at,
                                              note)
               VALUES ($1, 'kiriminaja', sha256($2), $2, '[]', 9, NULL, now(), '1 not known')""",
            company.test, body,
        )  # fmt: skip
    assert (await post(installation, calls[-1])).status_code == 200
    await until_status(sandbox, created["id"], "delivered")
    await until_processed(database, company.test)
    assert (await post(installation, calls[-1])).status_code == 200
    async with database.connection() as db:
        rows = await db.fetch("SELECT tries, note FROM carrier_callbacks WHERE company_id = $1", company.test)
    assert [tuple(row) for row in rows] == [(1, None)], "what was applied is no news"


async def test_scenarios_of_carriers_end_as_they_should(
    sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    twice = await create(sandbox, "aggregator_carrier", sim="webhook_duplicate", autoBook=True)
    mixed = await create(sandbox, "ev_courier", sim="webhook_out_of_order", autoBook=True)
    for created in (twice, mixed):
        await until_status(sandbox, created["id"], awb=...)
        await advance(sandbox, created["id"], "delivered")
    for created in (twice, mixed):
        await until_status(sandbox, created["id"], "delivered")
    await until_processed(database, company.test)
    for created in (twice, mixed):
        assert (await get(sandbox, created["id"]))["shippingStatus"] == "delivered"
        events = await list_events(database, company.test, created["id"])
        assert [body["shippingStatus"] for _, body in events].count("delivered") >= 1


async def rebook(
    installation: Installation, sandbox: httpx.AsyncClient, database: Database, company_id: int, provider: str
) -> tuple[dict[str, Any], str, str, list[Call]]:
    """A shipment on its second booking, or waiting for it; of the first its reference, the carrier's plan and calls."""
    created, calls = await book_quietly(installation, sandbox, database, company_id, provider)
    async with database.connection() as db:
        old = await db.fetchrow("SELECT reference, steps::text FROM sandbox_bookings WHERE company_id = $1", company_id)
    assert old is not None
    assert (await cancel(sandbox, created["id"])).status_code == 200
    assert (await change(sandbox, created["id"], triggerBooking=True)).status_code == 200
    await planned_callbacks(database, company_id)
    return await get(sandbox, created["id"]), old["reference"], old["steps"], calls


async def find_attempt(database: Database, company_id: int, reference: str) -> tuple[str, str]:
    """The outcome of a booking, here and at the carrier."""
    async with database.connection() as db:
        row = await db.fetchrow(
            """SELECT b.state, s.steps->-1->>'state' AS there
                 FROM shipment_bookings b JOIN sandbox_bookings s USING (company_id, reference)
                WHERE company_id = $1 AND reference = $2""",
            company_id, reference,
        )  # fmt: skip
    assert row is not None
    return row["state"], row["there"]


async def until_closed(database: Database, company_id: int, reference: str) -> str:
    for _ in range(PATIENCE * 10):
        state, there = await find_attempt(database, company_id, reference)
        if state == "closed":
            return there
        await asyncio.sleep(0.1)
    raise AssertionError(f"it is {state}")


@pytest.mark.parametrize("provider", ["instant_carrier", "ev_courier"])
async def test_a_carrier_that_goes_on_with_an_earlier_booking_is_stopped(
    installation: Installation, sandbox: httpx.AsyncClient, database: Database, company: Environments, provider: str
) -> None:
    anew, reference, steps, calls = await rebook(installation, sandbox, database, company.test, provider)
    async with database.connection() as db:  # as if the carrier had never cancelled it
        await db.execute(
            "UPDATE sandbox_bookings SET steps = $3::text::jsonb WHERE company_id = $1 AND reference = $2",
            company.test, reference, steps,
        )  # fmt: skip
    assert (await post(installation, calls[0])).status_code == 200
    flagged = await until_status(sandbox, anew["id"], needsAction=True)
    assert reference in flagged["problem"]
    assert await until_closed(database, company.test, reference) == "cancelled"
    after = await get(sandbox, anew["id"])
    assert (after["orderNo"], after["shippingStatus"]) == (anew["orderNo"], anew["shippingStatus"])
    assert "was cancelled there" in after["problem"]


async def test_old_events_of_a_cancelled_booking_do_not_need_action(
    installation: Installation, sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    anew, reference, _, calls = await rebook(installation, sandbox, database, company.test, "ev_courier")
    assert (await post(installation, calls[0])).status_code == 200
    await until_processed(database, company.test)
    assert await until_closed(database, company.test, reference) == "cancelled"
    assert await get(sandbox, anew["id"]) == anew


@pytest.mark.parametrize("provider", ["instant_carrier", "ev_courier"])
async def test_a_rejection_after_the_pickup_is_a_return(
    installation: Installation, sandbox: httpx.AsyncClient, database: Database, company: Environments, provider: str
) -> None:
    """Even if the carrier does not repeat that it was picked up."""
    created, calls = await book_quietly(installation, sandbox, database, company.test, provider)
    for call in calls[:3]:
        await post(installation, call)
    await until_status(sandbox, created["id"], "picked_up")
    path, headers, body = calls[3]
    callback = {**msgspec.json.decode(body), "event_id": "gave-up", "media": [], "pop_url": None, "pod_url": None}
    callback["status"] = "FAILED" if provider == "ev_courier" else "rejected"
    assert (await post(installation, (path, headers, msgspec.json.encode(callback)))).status_code == 200
    await until_status(sandbox, created["id"], "returning")
