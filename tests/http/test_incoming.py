"""Bodies are read within limits of size, time and memory."""

import asyncio
from typing import Any

import pytest

from sapa.http.errors import Invalid, PayloadTooLarge, RequestTimeout
from sapa.http.incoming import LARGE_BYTES, IncomingBody

SECONDS = 30.0


class Sender:
    """Sends a body in pieces, each when it is asked for."""

    def __init__(self, *pieces: bytes) -> None:
        self.left = list(pieces)

    async def receive(self) -> dict[str, Any]:
        if not self.left:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": self.left.pop(0), "more_body": bool(self.left)}


async def test_no_more_than_the_limit_is_read() -> None:
    sender = Sender(b"x" * 1000, b"x" * 1000, b"x" * 1000)
    with pytest.raises(PayloadTooLarge, match=r"larger than 1 KiB\."):
        await IncomingBody(sender.receive, asyncio.Semaphore(2)).read(1500, SECONDS)
    assert len(sender.left) == 1
    with pytest.raises(PayloadTooLarge):
        await IncomingBody(sender.receive, asyncio.Semaphore(2)).read(1500, SECONDS, "1501")
    assert len(sender.left) == 1
    assert await IncomingBody(Sender(b"ab", b"c").receive, asyncio.Semaphore(2)).read(3, SECONDS) == b"abc"


async def test_a_body_that_breaks_off_is_refused() -> None:
    sender = Sender(b"x", b"y")
    sender.left.pop()
    incoming = IncomingBody(sender.receive, asyncio.Semaphore(2))
    assert await incoming.read(10, SECONDS) == b"x"
    with pytest.raises(Invalid):
        await incoming.read(10, SECONDS)


async def test_a_third_large_body_waits_until_one_is_released() -> None:
    permits = asyncio.Semaphore(2)
    piece = b"x" * (LARGE_BYTES + 1)
    senders = [Sender(piece, piece) for _ in range(3)]
    bodies = [IncomingBody(sender.receive, permits) for sender in senders]
    for body in bodies[:2]:
        await body.read(4 * LARGE_BYTES, SECONDS)
    waiting = asyncio.create_task(bodies[2].read(4 * LARGE_BYTES, seconds=0.01))
    await asyncio.sleep(0.05)  # longer than its time: waiting does not count
    assert len(senders[2].left) == 1
    small = IncomingBody(Sender(b"small").receive, permits)
    assert await small.read(10, SECONDS) == b"small"
    bodies[0].release()
    bodies[0].release()
    assert len(await waiting) == 2 * len(piece)
    assert permits.locked()


async def test_a_slow_body_is_refused() -> None:
    async def receive() -> dict[str, Any]:
        await asyncio.sleep(60)
        return {}

    with pytest.raises(RequestTimeout):
        await IncomingBody(receive, asyncio.Semaphore(2)).read(10, seconds=0.01)
