"""Carriers that hang, disconnect, send malformed responses or fail."""

import asyncio
import socket
from collections.abc import Callable
from typing import Any

import pytest

from sapa.outbound.client import NotSent, Unclear
from sapa.shipping.carriers import calls
from sapa.shipping.carriers.dash.carrier import Dash
from sapa.shipping.carriers.interface import CannotTell, CarrierAway, Rejected
from sapa.shipping.carriers.registry import CARRIERS
from tests.shipping.carriers.cases import CREDENTIALS, DASH, REFERENCE, SHIPPED
from tests.shipping.carriers.peer import Peer, Reply, open_connection, open_peer
from tests.shipping.carriers.simulated import EXPRESS, build_request

ADAPTERS = list(CARRIERS)
TOKEN = Reply(body={"token": "dash-token"})
PRICES = Reply(body={"status": True, "results": [{"service": "jne", "service_type": "reg", "cost": "12000"}]})

BAD = {
    "rubbish": Reply(text="<html>hello</html>"),
    "empty": Reply(text=""),
    "another_shape": Reply(body={"hello": "world"}),
    "list": Reply(body=[1, 2]),
    "500": Reply(500, {"message": "oops"}),
    "502": Reply(502, text="Bad Gateway"),
    "broken_off": Reply(breaks_off=True),
    "endless": Reply(body={"orderNo": "x" * 3_000_000, "status": "confirmed"}),
    "elsewhere": Reply(302, text="", headers={"location": "/login"}),
}
HALF = Reply(body={"status": True, "text": "success"})


def prepare(peer: Peer, adapter: str, *replies: Reply) -> None:
    """Dash's token comes first; the last reply is repeated."""
    peer.replies = [*([TOKEN] if adapter == "dash" else []), *replies]


def service(adapter: str) -> dict[str, Any]:
    named = {"service_code": "jne:reg", "fee": 12000} if adapter in EXPRESS else {}
    return {"service_type": None if named else "INSTANT", "pickup_city": "3171", **named}


async def fail(adapter: str, reply: Reply, do: Callable[[Any, Any], Any], *before: Reply) -> tuple[Any, int]:
    """The outcome, and how often the carrier was asked."""
    async with open_peer() as peer, open_connection(adapter, peer.address, CREDENTIALS[adapter]) as connection:
        prepare(peer, adapter, *before, reply)
        try:
            outcome = await do(CARRIERS[adapter], connection)
        except Exception as error:
            outcome = error
        return outcome, len(peer.asked) - len(before) - (adapter == "dash")


async def fail_to_book(adapter: str, reply: Reply) -> tuple[Any, int]:
    shipment, before = build_request(**service(adapter)), [PRICES] if adapter == "kiriminaja" else []
    return await fail(adapter, reply, lambda carrier, c: carrier.book(c, shipment, REFERENCE), *before)


@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize("kind", BAD)
async def test_a_booking_with_an_empty_response_is_unclear_and_never_sent_again(adapter: str, kind: str) -> None:
    outcome, times = await fail_to_book(adapter, BAD[kind])
    assert (type(outcome), times) == (Unclear, 1)


@pytest.mark.parametrize("adapter", ADAPTERS)
async def test_a_booking_that_the_response_does_not_name_is_unclear(adapter: str) -> None:
    outcome, times = await fail_to_book(adapter, HALF)
    assert (type(outcome), times) == (Unclear, 1)


@pytest.mark.parametrize("adapter", ADAPTERS)
async def test_a_booking_that_a_carrier_takes_its_time_over_is_unclear(
    adapter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "BOOK_SECONDS", 0.2)
    outcome, times = await fail_to_book(adapter, Reply(after_seconds=3))
    assert (type(outcome), times) == (Unclear, 1)


@pytest.mark.parametrize("adapter", ADAPTERS)
async def test_a_booking_that_never_left_says_so(adapter: str) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        closed = f"http://127.0.0.1:{probe.getsockname()[1]}"
        async with open_connection(adapter, closed, CREDENTIALS[adapter]) as connection:
            with pytest.raises(NotSent):
                await CARRIERS[adapter].book(connection, build_request(**service(adapter)), REFERENCE)


@pytest.mark.parametrize("adapter", ADAPTERS)
async def test_a_carrier_that_takes_no_more_took_nothing(adapter: str) -> None:
    outcome, times = await fail_to_book(adapter, Reply(429))
    assert (type(outcome), times) == (NotSent, 1)


@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize("status", [400, 404, 422])
async def test_a_plain_refusal_is_certain_even_without_a_reason(adapter: str, status: int) -> None:
    outcome, _ = await fail_to_book(adapter, Reply(status, text="<html>no</html>"))
    assert isinstance(outcome, Rejected)
    assert outcome.reason


@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("operation", ["quote", "track"])
async def test_what_may_be_asked_again_calls_the_carrier_away(adapter: str, kind: str, operation: str) -> None:
    async def do(carrier: Any, connection: Any) -> Any:
        if operation == "quote":
            return await carrier.quote(connection, build_request(pickup_city="3171"))
        return await carrier.track(connection, SHIPPED[adapter])

    outcome, _ = await fail(adapter, BAD[kind], do)
    assert isinstance(outcome, CarrierAway), outcome


@pytest.mark.parametrize("adapter", [name for name in ADAPTERS if CARRIERS[name].finds_by_reference])
@pytest.mark.parametrize("reply", [*BAD.values(), Reply(400, {"errors": ["no"]}), Reply(401), Reply(429)])
async def test_a_search_that_fails_never_means_that_there_is_nothing(adapter: str, reply: Reply) -> None:
    outcome, _ = await fail(adapter, reply, lambda carrier, c: carrier.find(c, REFERENCE, None))
    assert isinstance(outcome, CannotTell)


@pytest.mark.parametrize("adapter", ADAPTERS)
async def test_a_busy_carrier_is_asked_again(adapter: str) -> None:
    async with open_peer() as peer, open_connection(adapter, peer.address, CREDENTIALS[adapter]) as connection:
        prepare(peer, adapter, Reply(503), Reply(400, {"status": False, "text": "no"}))
        quote = await CARRIERS[adapter].quote(connection, build_request(pickup_city="3171"))
        assert quote.notes
        assert len(peer.asked) == 2 + (adapter == "dash")


async def test_dash_is_asked_for_one_token_however_many_need_it() -> None:
    async with open_peer() as peer, open_connection("dash", peer.address, CREDENTIALS["dash"]) as connection:
        prepare(peer, "dash", Reply(body={"deliveryID": "dlv-77", "status": "ALLOCATING"}))
        await asyncio.gather(*(Dash().track(connection, DASH) for _ in range(10)))
        paths = [asked["path"] for asked in peer.asked]
        assert paths.count("/v1/auth/providers/token") == 1
        assert len(paths) == 11


async def test_dashs_token_is_replaced_when_it_has_ended() -> None:
    async with open_peer() as peer, open_connection("dash", peer.address, CREDENTIALS["dash"]) as connection:
        delivery = Reply(body={"deliveryID": "dlv-77", "status": "ALLOCATING"})
        peer.replies = [TOKEN, Reply(401), Reply(body={"token": "second"}), delivery]
        await Dash().track(connection, DASH)
        assert peer.asked[-1]["headers"]["authorization"] == "Bearer second"


async def test_a_booking_with_a_token_that_has_ended_was_not_made_and_gets_another_token_next_time() -> None:
    async with open_peer() as peer, open_connection("dash", peer.address, CREDENTIALS["dash"]) as connection:
        delivery = Reply(201, {"deliveryID": "dlv-77", "status": "ALLOCATING"})
        peer.replies = [TOKEN, Reply(401), Reply(body={"token": "second"}), delivery]
        shipment = build_request(**service("dash"))
        with pytest.raises(NotSent):
            await Dash().book(connection, shipment, REFERENCE)
        assert not isinstance(await Dash().book(connection, shipment, REFERENCE), Rejected)
