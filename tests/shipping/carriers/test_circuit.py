"""The circuit breaker: opens after repeated failures, then lets one call through."""

import asyncio
from types import SimpleNamespace

import msgspec
import pytest

from sapa.outbound.client import NotSent, ProviderResponse, Unclear
from sapa.shipping.carriers import calls, circuit
from sapa.shipping.carriers.calls import (
    Request,
    Timeouts,
    ask,
    send_once,
)
from sapa.shipping.carriers.interface import CarrierAccount, CarrierAway
from tests.shipping.carriers.cases import CREDENTIALS
from tests.shipping.carriers.peer import Reply, open_connection, open_peer

DOWN, UP = Reply(500, text="down"), Reply(body={"status": True})
REQUEST = Request("POST", "/anything", body={})
ONCE = Timeouts(seconds=2, tries=1)


async def fail(connection: CarrierAccount, times: int) -> None:
    for _ in range(times):
        with pytest.raises(CarrierAway, match="it answered 500"):
            await ask(connection, REQUEST, ONCE)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The circuit's clock, which stands still until a test moves it."""
    standing = SimpleNamespace(now=1_000.0)
    standing.monotonic = lambda: standing.now
    monkeypatch.setattr(circuit, "time", standing)
    return standing


async def test_five_failures_in_a_row_open_it_and_one_call_closes_it(clock: SimpleNamespace) -> None:
    async with (
        open_peer() as peer,
        open_connection("kiriminaja", peer.address, CREDENTIALS["kiriminaja"]) as connection,
    ):
        peer.replies = [DOWN] * 4 + [UP] + [DOWN]
        await fail(connection, 4)
        await ask(connection, REQUEST, ONCE)
        await fail(connection, circuit.MAX_FAILURES)
        known = len(peer.asked)
        with pytest.raises(CarrierAway, match="failed 5 times in a row and is called again in 30 seconds"):
            await ask(connection, REQUEST, ONCE)
        with pytest.raises(NotSent, match="failed 5 times in a row"):
            await send_once(connection, REQUEST)
        assert len(peer.asked) == known, "the carrier heard nothing of them"
        other = msgspec.structs.replace(connection, id="carr_2")
        await fail(other, 1)

        clock.now += circuit.OPEN_SECONDS
        await fail(connection, 1)
        with pytest.raises(CarrierAway, match="failed 6 times"):
            await ask(connection, REQUEST, ONCE)
        clock.now += circuit.OPEN_SECONDS
        peer.replies, peer.asked = [UP], []
        responses = await asyncio.gather(*(ask(connection, REQUEST, ONCE) for _ in range(5)), return_exceptions=True)
        assert sum(isinstance(response, ProviderResponse) for response in responses) == 1
        assert len(peer.asked) == 1, "one goes ahead"
        await ask(connection, REQUEST, ONCE)


async def test_bookings_count_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "BOOK_SECONDS", 0.1)
    async with open_peer() as peer, open_connection("gosend", peer.address, CREDENTIALS["gosend"]) as connection:
        peer.replies = [DOWN, Reply(breaks_off=True), Reply(after_seconds=1), Reply(408), DOWN]
        for _ in range(circuit.MAX_FAILURES):
            with pytest.raises(Unclear):
                await send_once(connection, REQUEST)
        with pytest.raises(NotSent):
            await send_once(connection, REQUEST)
        assert len(peer.asked) == circuit.MAX_FAILURES


@pytest.mark.parametrize("reply", [Reply(404), Reply(401), Reply(429), Reply(400, {"status": False})])
async def test_a_refusal_counts_as_a_response(reply: Reply) -> None:
    async with open_peer() as peer, open_connection("dash", peer.address, CREDENTIALS["dash"]) as connection:
        peer.replies = [DOWN] * 4 + [reply, DOWN]
        await fail(connection, 4)
        if reply.status == 429:
            with pytest.raises(NotSent, match="no more bookings"):
                await send_once(connection, REQUEST)
        else:
            assert (await ask(connection, REQUEST, ONCE)).status == reply.status
        await fail(connection, circuit.MAX_FAILURES)


async def test_an_account_without_a_circuit_is_always_called() -> None:
    async with open_peer() as peer, open_connection("dash", peer.address, CREDENTIALS["dash"]) as live:
        peer.replies = [DOWN]
        await fail(msgspec.structs.replace(live, breaks_circuit=False), 8)
