"""The way of a delivery: from the event to its receiver, in order, and beside others."""

import asyncio
import random
from collections import defaultdict

import httpx
import msgspec
import pytest

from sapa.db.pool import Database
from sapa.settings import WebhookSettings
from sapa.values.sealing import Vault
from sapa.webhooks import verify
from sapa.webhooks.dispatch import queries
from sapa.webhooks.dispatch.lanes import queue_transaction
from sapa.webhooks.endpoints import actions
from sapa.webhooks.types import Missed, WebhookEndpointPatch
from tests.conftest import TLS, Installation, connect
from tests.factories import Environments, make_customer, make_endpoint, make_key
from tests.webhooks.station import (
    Arrival,
    Station,
    Thing,
    answer_with,
    attempts,
    count,
    happen,
    things,
    until,
    waiting,
)

LOCAL = WebhookSettings(allow_insecure=True, allowed_networks=())


async def settled(post: Database, company_id: int) -> None:
    async def is_empty() -> bool:
        return await waiting(post, company_id) == 0

    await until(is_empty, "something is still in the queue")


async def test_a_change_arrives_as_the_api_shows_it(
    post_office: Installation, post: Database, seal: Vault, client: Environments, station: Station
) -> None:
    made = await make_endpoint(post, seal, client.live, station.url("shop"), ["customer.created"])
    key = await make_key(post, client.live)
    async with connect(post_office, key.raw) as api:
        customer = await make_customer(api, firstName="Ayu")
    (arrival,) = await until(lambda: station.arrivals)
    assert msgspec.json.decode(arrival.body) == customer
    verify(arrival.headers, arrival.body, made.secret)
    await settled(post, client.live)
    (attempt,) = await attempts(post, client.live)
    assert (attempt["outcome"], attempt["number"], attempt["status"], attempt["error"]) == ("delivered", 1, 200, None)
    assert (attempt["event_id"], attempt["kind"]) == (arrival.event_id, "customer.created")
    assert attempt["address"] == "127.0.0.1"


async def test_only_what_was_asked_for_arrives_and_only_at_the_own_company(
    post: Database, seal: Vault, client: Environments, station: Station
) -> None:
    await make_endpoint(post, seal, client.live, station.url("updates"), ["customer.updated"])
    await make_endpoint(post, seal, client.live, station.url("creations"), ["customer.created"])
    await make_endpoint(post, seal, client.test, station.url("other"))
    await happen(post, client.live, things(3))
    await until(lambda: len(station.at("updates")) == 3)
    await settled(post, client.live)
    assert len(station.arrivals) == 3


async def test_changes_of_one_resource_arrive_in_order_one_at_a_time_and_others_beside_them(
    post: Database, seal: Vault, client: Environments, station: Station
) -> None:
    """Many of them in the same millisecond."""
    await make_endpoint(post, seal, client.live, station.url("shop"))
    busy: dict[str, int] = defaultdict(int)
    most, broken = 0, []

    async def answer(arrival: Arrival) -> int:
        nonlocal most
        busy[arrival.resource] += 1
        broken.extend([arrival] if busy[arrival.resource] > 1 else [])
        most = max(most, sum(busy.values()))
        await asyncio.sleep(random.random() * 0.01)
        busy[arrival.resource] -= 1
        return 200

    station.answer = answer
    await happen(post, client.live, things(300, resources=12))
    await until(lambda: len(station.arrivals) == 300)
    assert broken == []
    assert most == 4
    order: dict[str, list[int]] = defaultdict(list)
    for arrival in station.arrivals:
        order[arrival.resource].append(arrival.number)
    assert [numbers for numbers in order.values() if numbers != sorted(numbers)] == []


async def test_a_retry_goes_to_the_address_and_with_the_secret_of_its_time(
    post: Database, seal: Vault, client: Environments, station: Station
) -> None:
    made = await make_endpoint(post, seal, client.test, station.url("old"))
    station.answer = answer_with(500, 200)
    await happen(post, client.test, things(1))
    await until(lambda: station.at("old"))
    async with post.transaction() as tx:
        id = made.endpoint.id
        await actions.update(tx, seal, LOCAL, client.test, id, WebhookEndpointPatch(url=station.url("new")))
        rotated = await actions.rotate(tx, seal, client.test, id)
    await until_retrying(post, client.test)
    await move(post, client.test, 30)
    (arrival,) = await until(lambda: station.at("new"))
    assert arrival.event_id == station.at("old")[0].event_id
    for secret in (rotated.secret, made.secret):
        verify(arrival.headers, arrival.body, secret)
    await move(post, client.test, 25 * 3600)
    await happen(post, client.test, [Thing("cust_later", 2)])
    arrival = (await until(lambda: station.at("new")[1:]))[0]
    verify(arrival.headers, arrival.body, rotated.secret)
    assert arrival.headers["X-Service-Webhook-Signature"].count("v1=") == 1


async def until_retrying(post: Database, company_id: int) -> None:
    async def is_later() -> bool:
        return bool(await count(post, "SELECT max(attempt) > 1 FROM webhook_queue WHERE company_id = $1", company_id))

    await until(is_later)


async def move(post: Database, company_id: int, seconds: int) -> None:
    async with post.connection() as db:
        await db.execute(
            "UPDATE companies SET clock_offset = clock_offset + make_interval(secs => $2) WHERE company_id = $1",
            company_id,
            seconds,
        )


async def test_a_paused_endpoint_gets_nothing_until_it_is_resumed(
    post: Database, seal: Vault, client: Environments, station: Station
) -> None:
    """Also what was read before the pause stays where it is."""
    made = await make_endpoint(post, seal, client.live, station.url("shop"))
    gate = asyncio.Event()

    async def answer(_: Arrival) -> int:
        await gate.wait()
        return 200

    station.answer = answer
    await happen(post, client.live, things(20))
    await until(lambda: station.arrivals)
    async with post.transaction() as tx:
        await actions.pause(tx, seal, client.live, made.endpoint.id)
    await asyncio.sleep(0.3)
    gate.set()
    await until_released(post, client.live)
    before = len(station.arrivals)
    assert before < 20
    assert await waiting(post, client.live) == 20 - before
    async with post.transaction() as tx:
        await actions.resume(tx, seal, client.live, made.endpoint.id, Missed.ALL)
    await until(lambda: len(station.arrivals) == 20)


async def until_released(post: Database, company_id: int) -> None:
    async def is_free() -> bool:
        return not await count(
            post, "SELECT count(*) FROM webhook_lanes WHERE company_id = $1 AND owner IS NOT NULL", company_id
        )

    await until(is_free, "the lane was not given back")


async def test_what_is_queued_for_an_endpoint_that_is_gone_is_dropped(
    post: Database, seal: Vault, client: Environments, station: Station
) -> None:
    made = await make_endpoint(post, seal, client.live, station.url("shop"))
    async with post.transaction() as tx:
        await actions.delete(tx, client.live, made.endpoint.id)
    async with post.connection() as db:
        await db.execute(
            """INSERT INTO webhook_queue (company_id, id, endpoint_id, due_at, event_id, event_at)
               VALUES ($1, 'whd_late', $2, now(), 'evt_late', now())""",
            client.live,
            made.endpoint.id,
        )
    await settled(post, client.live)
    assert station.arrivals == []


async def test_an_event_past_its_retention_fails_with_a_message_and_does_not_count(
    post: Database, seal: Vault, client: Environments, station: Station
) -> None:
    made = await make_endpoint(post, seal, client.live, station.url("shop"))
    async with post.connection() as db:
        await db.execute(
            """INSERT INTO webhook_queue (company_id, id, endpoint_id, due_at, event_id, event_at)
               VALUES ($1, 'whd_old', $2, now(), 'evt_old', now() - interval '40 days')""",
            client.live,
            made.endpoint.id,
        )
    await settled(post, client.live)
    (attempt,) = await attempts(post, client.live)
    assert (attempt["outcome"], attempt["error"]) == ("failed", "expired")
    assert "past its retention" in attempt["message"]
    assert await count(post, "SELECT failures FROM webhook_lanes WHERE company_id = $1", client.live) == 0
    assert station.arrivals == []


@pytest.mark.parametrize(("size", "is_whole"), [(65_536, True), (65_537, False)])
async def test_a_body_over_64_kb_is_replaced_by_a_link(
    post_office: Installation,
    post: Database,
    seal: Vault,
    client: Environments,
    station: Station,
    size: int,
    is_whole: bool,
) -> None:
    await make_endpoint(post, seal, client.live, station.url("shop"))
    bare = len(msgspec.json.encode(Thing("cust_big", 1)))
    await happen(post, client.live, [Thing("cust_big", 1, "x" * (size - bare))])
    (arrival,) = await until(lambda: station.arrivals)
    body = msgspec.json.decode(arrival.body)
    if is_whole:
        assert len(arrival.body) == size
    else:
        address = f"{post_office.address}/customer/v1/customers/cust_big"
        assert body == {"id": "cust_big", "truncated": True, "url": address}


async def test_endpoints_that_hang_keep_nobody_waiting(
    post: Database, seal: Vault, client: Environments, station: Station
) -> None:
    """Nine of the same company hang with a backlog each; the tenth gets all of its own meanwhile."""
    gate = asyncio.Event()

    async def answer(arrival: Arrival) -> int:
        if arrival.path.startswith("hanging"):
            await gate.wait()
        return 200

    station.answer = answer
    for number in range(9):
        await make_endpoint(post, seal, client.live, station.url(f"hanging-{number}"))
    await happen(post, client.live, things(20))
    await until(lambda: len({arrival.path for arrival in station.arrivals}) == 9)
    await make_endpoint(post, seal, client.live, station.url("healthy"))
    await happen(post, client.live, things(100))
    await until(lambda: len(station.at("healthy")) == 100)
    assert sum(station.under_way.values()) == 9
    gate.set()
    await until(lambda: len(station.arrivals) == 9 * 120 + 100)


async def test_endpoints_that_begin_to_hang_at_full_width_keep_nobody_waiting(
    post: Database, seal: Vault, client: Environments, station: Station
) -> None:
    """Nine of the same company with four under way each, which is more than a company's share of the slow places."""
    gate, is_shut = asyncio.Event(), False

    async def answer(arrival: Arrival) -> int:
        if is_shut and arrival.path.startswith("hanging"):
            await gate.wait()
        return 200

    station.answer = answer
    for number in range(9):
        await make_endpoint(post, seal, client.live, station.url(f"hanging-{number}"))
    await happen(post, client.live, things(8))
    await until(station.has(9 * 8))
    is_shut = True
    await happen(post, client.live, things(20, start=8))
    await until(lambda: sum(station.under_way.values()) == 9 * 4)
    await make_endpoint(post, seal, client.live, station.url("healthy"))
    await happen(post, client.live, things(100, start=28))
    await until(lambda: len(station.at("healthy")) == 100)
    assert sum(station.under_way.values()) == 9 * 4
    gate.set()
    await until(station.has(9 * 128 + 100))


async def hold_lane(post: Database, company_id: int) -> None:
    """Nobody serves it until it is let go."""
    async with post.connection() as db:
        await db.execute("UPDATE webhook_lanes SET owner_until = 'infinity' WHERE company_id = $1", company_id)


async def let_lane_go(post: Database, company_id: int) -> None:
    async with post.connection() as db:
        await db.execute("UPDATE webhook_lanes SET owner_until = '-infinity' WHERE company_id = $1", company_id)


async def make_retries(post: Database, company_id: int, number: int) -> None:
    """The last deliveries of the queue failed once, and have just become due."""
    async with post.connection() as db:
        await db.execute(
            """UPDATE webhook_queue SET attempt = 2, due_at = now()
                WHERE company_id = $1 AND id IN (
                      SELECT id FROM webhook_queue WHERE company_id = $1 ORDER BY event_at DESC, id DESC LIMIT $2)""",
            company_id,
            number,
        )


async def test_a_due_retry_does_not_wait_for_the_end_of_a_backlog(
    post: Database, seal: Vault, client: Environments, station: Station
) -> None:
    await make_endpoint(post, seal, client.live, station.url("shop"))
    await hold_lane(post, client.live)
    await happen(post, client.live, things(1500))
    await make_retries(post, client.live, 1)
    async with post.connection() as db:
        retry = await db.fetchval(
            "SELECT event_id FROM webhook_queue WHERE company_id = $1 AND attempt = 2", client.live
        )
    await let_lane_go(post, client.live)
    await until(station.has(1500))
    assert [arrival.event_id for arrival in station.arrivals].index(retry) < 10


async def test_retries_and_first_attempts_share_the_slots(
    post: Database, seal: Vault, client: Environments, station: Station
) -> None:
    """And whatever the ones do not need, the others get."""
    made = await make_endpoint(post, seal, client.live, station.url("shop"))
    await hold_lane(post, client.live)
    await happen(post, client.live, things(60, resources=3))
    await make_retries(post, client.live, 30)
    async with queue_transaction(post) as tx:
        found = await queries.list_due(tx, client.live, {made.endpoint.id: 12}, [])
        rest = await queries.list_due(tx, client.live, {made.endpoint.id: 48}, [delivery.id for delivery in found])
    assert [delivery.attempt for delivery in found] == [2, 1, 1, 1] * 3
    assert sorted(delivery.attempt for delivery in rest) == [1] * 21 + [2] * 27
    first = [msgspec.json.decode(d.body or b"")["number"] for d in found + rest if d.attempt == 1]
    assert first == sorted(first)


async def test_operators_see_attempts_and_the_queue(
    post_office: Installation, post: Database, seal: Vault, client: Environments, station: Station
) -> None:
    await make_endpoint(post, seal, client.live, station.url("shop"))
    before = await metrics(post_office)
    station.answer = answer_with(200, 503)
    await happen(post, client.live, things(2, resources=1))

    async def are_counted() -> bool:
        now = await metrics(post_office)
        return all(
            now.get(name, 0) == before.get(name, 0) + 1
            for name in (
                'sapa_webhook_attempts_total{error="",outcome="delivered"}',
                'sapa_webhook_attempts_total{error="http_5xx",outcome="retrying"}',
            )
        )

    await until(are_counted)
    assert (await metrics(post_office))["sapa_webhook_waiting"] >= 1
    assert "sapa_webhook_oldest_due_seconds" in await metrics(post_office)
    assert "sapa_webhook_suspended" in await metrics(post_office)


async def metrics(installation: Installation) -> dict[str, float]:
    async with httpx.AsyncClient(verify=TLS, timeout=120) as http:
        text = (await http.get(installation.metrics)).text
    lines = [line.rsplit(" ", 1) for line in text.splitlines() if line.startswith("sapa_webhook")]
    return {name: float(value) for name, value in lines}
