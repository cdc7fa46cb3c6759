"""A suspended endpoint is probed on schedule; a receiver that works again gets everything without anyone's help."""

import asyncio
from datetime import datetime

import msgspec
import pytest

from sapa.db.pool import Database
from sapa.values.sealing import Vault
from sapa.webhooks.deliveries import actions as deliveries
from sapa.webhooks.dispatch.slots import MAX_PER_ENDPOINT
from sapa.webhooks.dispatch.types import MAX_FAILURES
from sapa.webhooks.endpoints import actions
from sapa.webhooks.types import (
    PROBE_SECONDS,
    DeliveryDetails,
    DeliveryFilter,
    Missed,
    WebhookEndpoint,
    WebhookEndpointPatch,
)
from tests.factories import Environments, make_endpoint
from tests.webhooks.dispatch.test_dispatcher import LOCAL, move, settled
from tests.webhooks.station import Arrival, Station, answer_with, attempts, count, happen, things, until, waiting

HOUR = 3600


async def find(post: Database, seal: Vault, company_id: int, id: str) -> WebhookEndpoint:
    async with post.connection() as db:
        return await actions.get(db, seal, company_id, id)


async def make_suspended(
    post: Database, seal: Vault, company_id: int, station: Station, kinds: list[str] | None = None
) -> str:
    """An endpoint that was suspended with changes 0–11 held, and then missed 12–19."""
    made = await make_endpoint(post, seal, company_id, station.url("shop"), kinds or ["customer.updated"])
    station.answer = answer_with(503)
    await happen(post, company_id, things(12))
    await until_status(post, seal, company_id, made.endpoint.id, "suspended")
    await happen(post, company_id, things(8, start=12))
    await until_free(post, company_id)
    station.arrivals.clear()
    return made.endpoint.id


async def until_status(post: Database, seal: Vault, company_id: int, id: str, status: str) -> None:
    async def has_it() -> bool:
        return (await find(post, seal, company_id, id)).status == status

    await until(has_it, f"it is not {status}")


async def until_free(post: Database, company_id: int) -> None:
    """No worker serves the lane any more."""

    async def is_free() -> bool:
        return not await count(
            post, "SELECT count(*) FROM webhook_lanes WHERE company_id = $1 AND owner_until > now()", company_id
        )

    await until(is_free)


async def until_probed(post: Database, company_id: int, number: int) -> None:
    async def is_recorded() -> bool:
        return len([row for row in await attempts(post, company_id) if row["is_probe"]]) == number

    await until(is_recorded, f"no probe {number}")
    await until_free(post, company_id)


async def make_retries_due(post: Database, company_id: int) -> None:
    """Held retries keep their schedule; the test does not wait for it."""
    await move(post, company_id, 2 * HOUR)


async def test_a_probe_is_the_oldest_delivery_and_a_success_brings_everything_in_order(
    post: Database, seal: Vault, client: Environments, station: Station
) -> None:
    id = await make_suspended(post, seal, client.test, station)
    station.answer = answer_with(200)
    await asyncio.sleep(1.5)
    assert station.arrivals == []  # the first probe is due after a minute

    await move(post, client.test, 60)
    await until_status(post, seal, client.test, id, "active")
    assert [arrival.number for arrival in station.arrivals[:1]] == [0]
    await make_retries_due(post, client.test)
    await settled(post, client.test)
    numbers = {arrival.event_id: arrival.number for arrival in station.arrivals}
    assert sorted(numbers.values()) == list(range(20)) == sorted(arrival.number for arrival in station.arrivals)
    delivered = [row["event_id"] for row in await attempts(post, client.test) if row["outcome"] == "delivered"]
    first_attempts = [numbers[event_id] for event_id in delivered if numbers[event_id] >= MAX_FAILURES]
    # They start in order, and a few are under way at once.
    assert all(abs(number - MAX_FAILURES - place) < MAX_PER_ENDPOINT for place, number in enumerate(first_attempts))
    endpoint = await find(post, seal, client.test, id)
    assert (endpoint.failures, endpoint.reason, endpoint.suspended_at, endpoint.next_probe_at) == (0, None, None, None)


async def test_a_failed_probe_counts_neither_as_an_attempt_nor_as_a_failure(
    post: Database, seal: Vault, client: Environments, station: Station
) -> None:
    id = await make_suspended(post, seal, client.test, station)
    before = await find(post, seal, client.test, id)
    await move(post, client.test, 60)
    await until_probed(post, client.test, 1)

    after = await find(post, seal, client.test, id)
    assert (after.status, after.failures, after.reason) == ("suspended", before.failures, before.reason)
    (arrival,) = station.arrivals
    probed = await find_delivery(post, seal, client.test, arrival)
    assert (probed.delivery.status, probed.delivery.attempts) == ("held", 1)
    assert [(attempt.number, attempt.is_probe, attempt.outcome) for attempt in probed.attempts] == [
        (1, False, "retrying"), (2, True, "retrying"),
    ]  # fmt: skip
    assert "503" in (probed.attempts[1].message or "")

    station.answer = answer_with(200)
    await move(post, client.test, 4 * 60)
    await until_status(post, seal, client.test, id, "active")
    probed = await find_delivery(post, seal, client.test, arrival)
    assert (probed.delivery.status, probed.delivery.attempts) == ("delivered", 1)
    assert probed.attempts[-1].is_probe


async def find_delivery(post: Database, seal: Vault, company_id: int, arrival: Arrival) -> DeliveryDetails:
    async with post.connection() as db:
        (found,) = await deliveries.list_deliveries(db, company_id, DeliveryFilter(event_id=arrival.event_id))
        return await deliveries.get_delivery(db, seal, company_id, found.id, "")


def test_probes_come_after_1_5_15_and_60_minutes_and_then_hourly_for_three_days() -> None:
    times = [sum(PROBE_SECONDS[: number + 1]) / 60 for number in range(len(PROBE_SECONDS))]
    assert times == [1, 5, 15, 60, *(hour * 60 for hour in range(2, 73))]


@pytest.mark.long
async def test_the_schedule_is_kept_and_ends_and_the_endpoint_can_still_be_resumed(
    post: Database, seal: Vault, client: Environments, station: Station
) -> None:
    id = await make_suspended(post, seal, client.test, station)
    for number, seconds in enumerate(PROBE_SECONDS[:5], start=1):
        await move(post, client.test, seconds - 30)
        await asyncio.sleep(1.2)
        assert len(station.arrivals) == number - 1
        await move(post, client.test, 30)
        await until_probed(post, client.test, number)
    async with post.connection() as db:
        await db.execute(
            "UPDATE webhook_endpoints SET probes = $3, next_probe_at = now() WHERE company_id = $1 AND id = $2",
            client.test, id, len(PROBE_SECONDS) - 1,
        )  # fmt: skip
    await until_probed(post, client.test, 6)
    endpoint = await find(post, seal, client.test, id)
    assert (endpoint.status, endpoint.auto_resume, endpoint.next_probe_at) == ("suspended", True, None)
    assert {arrival.number for arrival in station.arrivals} == {0}

    station.answer = answer_with(200)
    async with post.transaction() as tx:
        await actions.resume(tx, seal, client.test, id, Missed.ALL)
    await make_retries_due(post, client.test)
    await settled(post, client.test)
    assert {arrival.number for arrival in station.arrivals} == set(range(20))


async def test_with_nothing_queued_the_oldest_missed_event_is_the_probe(
    post: Database, seal: Vault, client: Environments, station: Station
) -> None:
    """Two deliveries with five failures each suspend an endpoint and leave nothing in its queue."""
    made = await make_endpoint(post, seal, client.test, station.url("shop"), ["customer.updated"])
    station.answer = answer_with(500)
    await happen(post, client.test, things(2))
    for number, seconds in enumerate((30, 5 * 60, 30 * 60, 2 * HOUR), start=1):
        await until(station.has(2 * number))
        await until_rescheduled(post, client.test, number + 1)
        await move(post, client.test, seconds)
    await until_status(post, seal, client.test, made.endpoint.id, "suspended")
    await settled(post, client.test)
    await until_free(post, client.test)
    station.arrivals.clear()
    station.answer = answer_with(200)

    await move(post, client.test, 60)
    await asyncio.sleep(1.5)
    assert station.arrivals == []  # there is nothing to send, and no probe is used up
    await happen(post, client.test, things(3, start=2))
    await move(post, client.test, 60)
    await until_status(post, seal, client.test, made.endpoint.id, "active")
    await until(station.has(3))
    assert [arrival.number for arrival in station.arrivals] == [2, 3, 4]


async def until_rescheduled(post: Database, company_id: int, attempt: int) -> None:
    async def are_both() -> bool:
        both = "SELECT count(*) = 2 FROM webhook_queue WHERE company_id = $1 AND attempt = $2"
        return bool(await count(post, both, company_id, attempt))

    await until(are_both)


@pytest.mark.long
async def test_an_endpoint_that_must_not_resume_by_itself_is_not_probed_until_that_changes(
    post: Database, seal: Vault, client: Environments, station: Station
) -> None:
    made = await make_endpoint(post, seal, client.test, station.url("shop"), ["customer.updated"])
    id = made.endpoint.id
    await set_auto_resume(post, seal, client.test, id, False)
    station.answer = answer_with(500)
    await happen(post, client.test, things(12))
    await until_status(post, seal, client.test, id, "suspended")
    station.answer = answer_with(200)
    await move(post, client.test, HOUR)
    await asyncio.sleep(1.5)
    assert len(station.arrivals) == MAX_FAILURES

    await set_auto_resume(post, seal, client.test, id, True)
    await move(post, client.test, 60)
    await until_status(post, seal, client.test, id, "active")


async def set_auto_resume(post: Database, seal: Vault, company_id: int, id: str, auto_resume: bool) -> None:
    async with post.transaction() as tx:
        changed = await actions.update(tx, seal, LOCAL, company_id, id, WebhookEndpointPatch(auto_resume=auto_resume))
    assert changed.auto_resume is auto_resume


@pytest.mark.long
async def test_an_endpoint_that_is_paused_meanwhile_stays_paused_and_the_delivery_is_settled(
    post: Database, seal: Vault, client: Environments, station: Station
) -> None:
    id = await make_suspended(post, seal, client.test, station)
    arrived, may_answer = asyncio.Event(), asyncio.Event()

    async def answer(_: Arrival) -> int:
        arrived.set()
        await may_answer.wait()
        return 200

    station.answer = answer
    await move(post, client.test, 60)
    await asyncio.wait_for(arrived.wait(), 30)
    async with post.transaction() as tx:
        await actions.pause(tx, seal, client.test, id)
    may_answer.set()
    await until_probed(post, client.test, 1)
    assert (await find(post, seal, client.test, id)).status == "paused"
    assert await waiting(post, client.test) == 11


async def test_other_endpoints_are_told_of_a_suspension_and_the_suspended_one_is_not(
    post: Database, seal: Vault, client: Environments, station: Station
) -> None:
    secret_url = station.url("shop/very-secret?token=hidden")
    made = await make_endpoint(post, seal, client.test, secret_url)
    await make_endpoint(post, seal, client.test, station.url("other"), ["webhook.suspended"])

    async def answer(arrival: Arrival) -> int:
        return 200 if arrival.path == "other" else 503

    station.answer = answer
    await happen(post, client.test, things(12))
    (told,) = await until(lambda: station.at("other"))
    assert told.headers["X-Service-Webhook-Event"] == "webhook.suspended"
    body = msgspec.json.decode(told.body)
    endpoint = await find(post, seal, client.test, made.endpoint.id)
    assert body == {
        "id": made.endpoint.id,
        "origin": station.address,
        "description": None,
        "status": "suspended",
        "failures": 10,
        "error": "http_5xx",
        "responseStatus": 503,
        "autoResume": True,
        "suspendedAt": endpoint.suspended_at,
        "nextProbeAt": endpoint.next_probe_at,
    }

    await until_free(post, client.test)
    station.answer = answer_with(200)
    await move(post, client.test, 60)
    await until_status(post, seal, client.test, made.endpoint.id, "active")
    await make_retries_due(post, client.test)
    await settled(post, client.test)
    assert (
        await deliveries.replay(post, client.test, made.endpoint.id, datetime.fromisoformat(made.endpoint.created_at))
        == 12
    )
    await settled(post, client.test)
    kinds = {arrival.headers["X-Service-Webhook-Event"] for arrival in station.arrivals if arrival.path != "other"}
    assert kinds == {"customer.updated"}


async def test_probes_of_endpoints_that_hang_keep_no_other_waiting(
    post: Database, seal: Vault, client: Environments, station: Station
) -> None:
    hanging = [
        (await make_endpoint(post, seal, client.test, station.url(f"hangs-{number}"))).endpoint.id
        for number in range(9)
    ]
    works = (await make_endpoint(post, seal, client.test, station.url("works"))).endpoint.id
    station.answer = answer_with(500)
    await happen(post, client.test, things(10))
    for id in [*hanging, works]:
        await until_status(post, seal, client.test, id, "suspended")
    await until_free(post, client.test)
    released = asyncio.Event()

    async def answer(arrival: Arrival) -> int:
        if arrival.path != "works":
            await released.wait()
        return 200

    station.answer = answer
    await move(post, client.test, 60)
    await until_status(post, seal, client.test, works, "active")
    assert (await find(post, seal, client.test, hanging[0])).status == "suspended"
    released.set()
    for id in hanging:
        await until_status(post, seal, client.test, id, "active")
