"""Connections that are kept: used again, and no failure of the receiver's when they turn out to be stale."""

import asyncio

import pytest

from tests.webhooks import zoo
from tests.webhooks.zoo import (
    OK,
    Behaviour,
    Reader,
    Receiver,
    Writer,
    answering,
    answering_and,
    close,
    read_request,
    reset,
    send,
    sending,
    serve,
)


async def test_a_connection_is_used_again() -> None:
    async with serve(answering(OK)) as receiver, sending() as sender:
        for _ in range(5):
            assert (await send(sender, receiver.url())).delivered
    assert receiver.connections == 1


def fickle(second: Behaviour) -> Behaviour:
    """Answers the first request of its first connection, and does something else with the second one."""

    async def behave(receiver: Receiver, reader: Reader, writer: Writer) -> None:
        if receiver.connections > 1:
            await answering(OK)(receiver, reader, writer)
        receiver.requests.append(await read_request(reader))
        writer.write(OK)
        await writer.drain()
        await second(receiver, reader, writer)

    return behave


@pytest.mark.parametrize("drop", [close, reset])
async def test_a_kept_alive_connection_that_was_dropped_is_retried_at_once(drop: zoo.Drop) -> None:
    async with serve(fickle(answering_and(drop))) as receiver, sending() as sender:
        assert (await send(sender, receiver.url())).delivered
        outcome = await send(sender, receiver.url())
        assert outcome.delivered
        assert [request.body for request in receiver.requests] == [zoo.BODY] * 3
        assert receiver.connections == 2


async def test_a_receiver_may_close_right_after_its_response() -> None:
    async with serve(answering_and(close, OK)) as receiver, sending() as sender:
        for _ in range(20):
            assert (await send(sender, receiver.url())).delivered


async def test_a_receiver_that_responds_before_it_read_the_request_gets_the_next_one_on_another_connection() -> None:
    async def behave(receiver: Receiver, reader: Reader, writer: Writer) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK)
        await zoo.hang(reader, writer)

    async with serve(behave) as receiver, sending(deadline=5) as sender:
        for _ in range(2):
            assert (await send(sender, receiver.url(), b"x" * 20_000_000)).delivered
        assert receiver.connections == 2


async def test_a_kept_alive_connection_that_fails_in_its_response_is_not_retried() -> None:
    async with serve(fickle(answering_and(close, b"HTTP/1.1 200 OK\r\n"))) as receiver, sending() as sender:
        assert (await send(sender, receiver.url())).delivered
        outcome = await send(sender, receiver.url())
    assert outcome.error == "reset"
    assert len(receiver.requests) == 2


async def test_several_stale_connections_cost_no_failure() -> None:
    """All of them wait to be used again, and all are dropped at their next use."""
    fresh = asyncio.Event()

    async def behave(receiver: Receiver, reader: Reader, writer: Writer) -> None:
        is_stale = not fresh.is_set()
        receiver.requests.append(await read_request(reader))
        if is_stale and len(receiver.requests) == 4:
            fresh.set()
        await fresh.wait()
        writer.write(OK)
        await writer.drain()
        if not is_stale:
            await answering(OK)(receiver, reader, writer)
        await read_request(reader)

    async with serve(behave) as receiver, sending() as sender:
        await asyncio.gather(*(send(sender, receiver.url()) for _ in range(4)))
        assert receiver.connections == 4
        for _ in range(4):
            assert (await send(sender, receiver.url())).delivered
