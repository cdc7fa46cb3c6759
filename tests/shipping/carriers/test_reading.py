"""Empty values in many forms: null for a list, an empty text for a number, bytes for text."""

import asyncio
from typing import Any

import msgspec
import pytest

from sapa.outbound.client import Unclear
from sapa.shipping.carriers.interface import (
    Booked,
    CannotTell,
    CarrierEvent,
    Quote,
    Rejected,
    TrackingResult,
)
from sapa.shipping.carriers.registry import CARRIERS
from tests.shipping.carriers.cases import CREDENTIALS, REFERENCE, SHIPPED
from tests.shipping.carriers.peer import Reply, open_connection, open_peer
from tests.shipping.carriers.simulated import build_request
from tests.shipping.carriers.test_callbacks import DASH, GOSEND, KIRIMINAJA, read
from tests.shipping.carriers.test_failures import PRICES, TOKEN, service

TAKEN: dict[str, dict[str, Any]] = {
    "kiriminaja": {"status": True, "details": [{"order_id": REFERENCE, "kj_order_id": "", "awb": " "}]},
    "gosend": {"id": 7, "orderNo": ""},
    "dash": {"deliveryID": " ", "status": "ALLOCATING"},
    "biteship": {"success": True, "id": "", "status": "confirmed"},
}


async def do(adapter: str, operation: str, reply: dict[str, Any], *given: Any) -> Any:
    before = [TOKEN] if adapter == "dash" else [PRICES] if (adapter, operation) == ("kiriminaja", "book") else []
    async with open_peer() as peer, open_connection(adapter, peer.address, CREDENTIALS[adapter]) as connection:
        peer.replies = [*before, Reply(body=reply)]
        try:
            return await getattr(CARRIERS[adapter], operation)(connection, *given)
        except Unclear as error:
            return error


def one(events: list[CarrierEvent]) -> CarrierEvent:
    (event,) = events
    return event


@pytest.mark.parametrize("adapter", [adapter for adapter in TAKEN if adapter != "kiriminaja"])
async def test_a_booking_without_a_number_is_unclear(adapter: str) -> None:
    outcome = await do(adapter, "book", TAKEN[adapter], build_request(**service(adapter)), REFERENCE)
    assert isinstance(outcome, Unclear)


async def test_an_empty_waybill_counts_as_missing() -> None:
    """KiriminAja knows it by our reference; its own numbers come later."""
    outcome = await do("kiriminaja", "book", TAKEN["kiriminaja"], build_request(**service("kiriminaja")), REFERENCE)
    assert isinstance(outcome, Booked)
    assert (outcome.order_no, outcome.awb) == (None, None)


@pytest.mark.parametrize("number", ["", " ", None])
async def test_gosend_has_not_found_a_booking_that_it_cannot_name(number: str | None) -> None:
    outcome = await do("gosend", "find", {"orderNo": number, "status": "confirmed"}, REFERENCE, None)
    assert isinstance(outcome, CannotTell)


def test_a_callback_without_a_number_clears_none() -> None:
    assert one(read("gosend", {**GOSEND, "booking_id": "", "driver_name": ""})).order_no is None


async def test_a_null_is_an_empty_list() -> None:
    refused = {"status": False, "text": "Saldo kredit tidak mencukupi", "code": 4002, "details": None}
    outcome = await do("kiriminaja", "book", refused, build_request(**service("kiriminaja")), REFERENCE)
    assert outcome == Rejected("4002", "Saldo kredit tidak mencukupi")
    prices = await do("kiriminaja", "quote", {"status": True, "results": None}, build_request())
    assert isinstance(prices, Quote)
    assert [note.code for note in prices.notes] == ["no_service"]
    order = {"id": "o-1", "status": "confirmed", "courier": {"history": None}}
    assert await do("biteship", "track", order, SHIPPED["biteship"]) == TrackingResult([])
    assert await do("kiriminaja", "list_areas", {"status": True, "datas": None}, "cities", "31", None) == []


@pytest.mark.parametrize("packages", [None, []])
def test_a_callback_with_one_list_and_a_null_counts(packages: Any) -> None:
    assert len(read("kiriminaja", {**KIRIMINAJA, "packages": packages})) == 2
    assert len(read("kiriminaja", {**KIRIMINAJA, "data": packages, "packages": KIRIMINAJA["data"]})) == 2
    assert read("kiriminaja", {**KIRIMINAJA, "data": packages, "packages": None}) == []


def test_an_unreadable_photo_hides_neither_the_others_nor_the_status() -> None:
    assert one(read("dash", {**DASH, "media": None})).status == "driver_assigned"
    media = [{"type": "PICKUP_PROOF"}, {"type": "PICKUP_PROOF", "url": "https://img.example/p.jpg"}, 7]
    event = one(read("dash", {**DASH, "status": "FAILED", "media": media}))
    assert (event.status, event.proof) == ("returning", ["https://img.example/p.jpg"])


async def book_at(said: bytes) -> Any:
    """The outcome of a booking with such a server."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(said)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        address = "http://{}:{}".format(*server.sockets[0].getsockname())
        async with open_connection("gosend", address, CREDENTIALS["gosend"]) as connection:
            try:
                return await CARRIERS["gosend"].book(connection, build_request(**service("gosend")), REFERENCE)
            except Unclear as error:
                return error


async def test_text_in_an_unknown_encoding_can_be_stored() -> None:
    outcome = await book_at(b"HTTP/1.1 400 No\r\nError-Message: Saldo kurang \xe9\xff\r\ncontent-length: 0\r\n\r\n")
    assert isinstance(outcome, Rejected)
    assert "Saldo kurang" in outcome.reason
    assert msgspec.json.encode(outcome)


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"what?\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{",
        b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 4\r\n\r\nnope",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    ],
)
async def test_what_is_hardly_http_is_unclear(said: bytes) -> None:
    assert isinstance(await book_at(said), Unclear)
