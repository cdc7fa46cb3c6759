"""The rate of each connection over all processes; no connection waits for another."""

import asyncio
import time
from itertools import pairwise

import pytest

from sapa.context import AppContext
from sapa.db.pool import Database
from sapa.messaging.channels.interface import (
    Media,
    OutgoingMessage,
    Source,
    Text,
)
from sapa.messaging.channels.registry import CHANNELS
from sapa.messaging.connections.accounts import ConnectedChannel
from sapa.messaging.sending.pacing import (
    get_gap,
    reserve_slot,
    wait_until_free,
)
from sapa.messaging.sending.types import ChannelBusy
from sapa.outbound.client import Client
from sapa.values.company import Company
from tests.factories import Environments
from tests.messaging.channels.accounts import RECIPIENTS, REFERENCE, build_connection
from tests.messaging.channels.contents import CONTENTS
from tests.messaging.channels.peer import Peer, open_peer

ID, OTHER = "chan_01jc9y3q5me8w92v7x4t6r0n1k", "chan_01jc9y3q5me8w92v7x4t6r0n1m"


async def test_slots_are_reserved_in_order(database: Database, company: Environments) -> None:
    """Concurrent reservations over separate connections: no slot is reserved twice."""

    async def take(gap: float = 1.0) -> float:
        async with database.connection() as db:
            return await reserve_slot(db, company.live, ID, gap, max_seconds=1000)

    assert await take() == 0
    waits = sorted(await asyncio.gather(*(take() for _ in range(20))))
    apart = [later - sooner for sooner, later in pairwise(waits)]
    assert all(0.5 < gap < 1.5 for gap in apart), waits
    assert 19 < waits[-1] <= 20


async def test_an_idle_connection_does_not_wait(database: Database, company: Environments) -> None:
    async with database.connection() as db:
        assert await reserve_slot(db, company.live, ID, 0.001) == 0
        await asyncio.sleep(0.01)
        assert await reserve_slot(db, company.live, ID, 0.001) == 0
        assert await reserve_slot(db, company.live, OTHER, 100.0) == 0
        assert await reserve_slot(db, company.test, ID, 100.0) == 0


async def test_a_call_that_would_wait_too_long_gets_retry_after(database: Database, company: Environments) -> None:
    async with database.connection() as db:
        await reserve_slot(db, company.live, ID, 10.0)
        assert 9 < await reserve_slot(db, company.live, ID, 10.0) <= 10
        for _ in range(3):
            with pytest.raises(ChannelBusy) as busy:
                await reserve_slot(db, company.live, ID, 10.0)
            assert busy.value.status == 429
            assert 18 <= int(busy.value.headers["retry-after"]) <= 20


@pytest.mark.parametrize(
    ("source", "text", "media"),
    [
        (Source.MSGAPP_CLOUD, 80, 80),
        (Source.MSGAPP_COEX, 20, 20),
        (Source.SOCIAL_NETWORK, 300, 10),
        (Source.PHOTO_SOCIAL, 300, 10),
    ],
)
def test_each_channel_has_its_own_rate(source: Source, text: float, media: float) -> None:
    capabilities = CHANNELS[source].capabilities
    assert get_gap(capabilities, Text("x")) == pytest.approx(1 / text)
    assert get_gap(capabilities, Media("image", "https://x.example")) == pytest.approx(1 / media)


@pytest.mark.parametrize(
    ("source", "throughput", "rate"),
    [
        (Source.MSGAPP_CLOUD, "HIGH", 1_000),
        (Source.MSGAPP_CLOUD, "STANDARD", 80),
        (Source.MSGAPP_CLOUD, "NOT_APPLICABLE", 80),
        (Source.MSGAPP_COEX, "HIGH", 20),
        (Source.PHOTO_SOCIAL, "HIGH", 300),
    ],
)
def test_only_a_number_that_can_be_upgraded_gets_a_higher_rate(source: Source, throughput: str, rate: float) -> None:
    assert get_gap(CHANNELS[source].capabilities, Text("x"), throughput) == pytest.approx(1 / rate)


async def test_a_slow_channel_delays_no_other(
    context: AppContext, client: Client, peer: Peer, company: Environments
) -> None:
    """200 sends hang on one channel; a send on another completes while all of them wait."""
    live = Company(company.live, "live", "ID", "IDR")
    peer.answers = [300.0]

    async def send(source: Source, address: str) -> float:
        connection = build_connection(source, address, client, live)
        channel = CHANNELS[source]
        await wait_until_free(context, ConnectedChannel(channel, connection), CONTENTS["text"])
        begun = time.monotonic()
        await channel.send(connection, OutgoingMessage(REFERENCE, RECIPIENTS[source], CONTENTS["text"]))
        return time.monotonic() - begun

    slow = [asyncio.create_task(send(Source.MSGAPP_CLOUD, peer.address)) for _ in range(200)]
    deadline = time.monotonic() + 120
    while len(peer.requests) < 200 and time.monotonic() < deadline:  # noqa: ASYNC110
        await asyncio.sleep(0.02)
    assert len(peer.requests) == 200
    assert context.database.open_count == context.database.idle
    async with open_peer() as quick:
        quick.answers = [(200, {"message_id": "m_1"})]
        await send(Source.SOCIAL_NETWORK, quick.address)
    assert not all(task.done() for task in slow)
    for task in slow:
        task.cancel()
    await asyncio.gather(*slow, return_exceptions=True)


async def test_the_rate_holds_for_real_requests(
    context: AppContext, client: Client, peer: Peer, company: Environments
) -> None:
    """40 messages at once over a connection that takes 20 a second: at least two seconds less one gap."""
    live = Company(company.live, "live", "ID", "IDR")
    peer.answers = [(200, {"messages": [{"id": "wamid.1"}]})]
    channel = CHANNELS[Source.MSGAPP_COEX]
    connection = build_connection(Source.MSGAPP_COEX, peer.address, client, live)

    async def send() -> float:
        await wait_until_free(context, ConnectedChannel(channel, connection), CONTENTS["text"])
        return time.monotonic()

    begun = time.monotonic()
    ends = await asyncio.gather(*(send() for _ in range(40)))
    assert max(ends) - begun >= 1.9


async def test_simulators_are_not_paced(context: AppContext, client: Client, company: Environments) -> None:
    tester = Company(company.test, "test", "ID", "IDR")
    connection = build_connection(Source.MSGAPP_COEX, "", client, tester)
    for _ in range(50):
        await wait_until_free(context, ConnectedChannel(CHANNELS[Source.MSGAPP_COEX], connection), CONTENTS["text"])
    async with context.database.connection() as db:
        assert await db.fetchval("SELECT count(*) FROM channel_paces WHERE company_id = $1", company.test) == 0
