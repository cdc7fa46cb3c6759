"""Bodies are read within limits of size, time and memory."""

import asyncio
from typing import Any

import pytest

from sapa.http.errors import Invalid, PayloadTooLarge, RequestTimeout
from sapa.http.incoming import LARGE_BYTES, IncomingBody
from sapa.values import large_bodies as turns
from sapa.values.large_bodies import MAX_WAITING_BODIES, LargeBodies, TooManyLargeBodies

OWNER = "somebody"
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
        await IncomingBody(sender.receive, LargeBodies()).read(1500, SECONDS, OWNER)
    assert len(sender.left) == 1
    with pytest.raises(PayloadTooLarge):
        await IncomingBody(sender.receive, LargeBodies()).read(1500, SECONDS, OWNER, "1501")
    assert len(sender.left) == 1
    assert await IncomingBody(Sender(b"ab", b"c").receive, LargeBodies()).read(3, SECONDS, OWNER) == b"abc"


async def test_a_body_that_came_with_the_head_is_there_at_once_and_within_the_limits() -> None:
    sender = Sender(b"abc")
    assert await IncomingBody(sender.receive, LargeBodies(), b"abc").read(3, SECONDS, OWNER) == b"abc"
    assert sender.left == [b"abc"]
    with pytest.raises(PayloadTooLarge):
        await IncomingBody(sender.receive, LargeBodies(), b"abc").read(2, SECONDS, OWNER)


async def test_a_body_that_breaks_off_is_refused() -> None:
    sender = Sender(b"x", b"y")
    sender.left.pop()
    incoming = IncomingBody(sender.receive, LargeBodies())
    assert await incoming.read(10, SECONDS, OWNER) == b"x"
    with pytest.raises(Invalid):
        await incoming.read(10, SECONDS, OWNER)


PIECE = b"x" * (LARGE_BYTES + 1)
MOST = 4 * LARGE_BYTES


async def test_a_third_large_body_waits_until_one_is_released() -> None:
    large_bodies = LargeBodies()
    senders = [Sender(PIECE, PIECE) for _ in range(3)]
    bodies = [IncomingBody(sender.receive, large_bodies) for sender in senders]
    for number, body in enumerate(bodies[:2]):
        await body.read(MOST, SECONDS, str(number))
    waiting = asyncio.create_task(bodies[2].read(MOST, 0.01, "2"))
    await asyncio.sleep(0.05)  # longer than its time: waiting does not count
    assert len(senders[2].left) == 1
    small = IncomingBody(Sender(b"small").receive, large_bodies)
    assert await small.read(10, SECONDS, OWNER) == b"small"
    bodies[0].release()
    bodies[0].release()
    assert len(await waiting) == 2 * len(PIECE)


async def test_large_bodies_of_one_owner_leave_room_for_others() -> None:
    large_bodies = LargeBodies()
    senders = [Sender(PIECE, PIECE) for _ in range(3)]
    first, second, other = (IncomingBody(sender.receive, large_bodies) for sender in senders)
    await first.read(MOST, SECONDS, OWNER)
    waiting = asyncio.create_task(second.read(MOST, SECONDS, OWNER, str(2 * len(PIECE))))
    assert len(await other.read(MOST, SECONDS, "another")) == 2 * len(PIECE)
    assert len(senders[1].left) == 2  # nothing is read of a body that announced its length
    first.release()
    assert len(await waiting) == 2 * len(PIECE)


async def test_large_bodies_do_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "TURN_SECONDS", 0.01)
    large_bodies = LargeBodies()
    held = IncomingBody(Sender(PIECE, PIECE).receive, large_bodies)
    await held.read(MOST, SECONDS, OWNER)
    with pytest.raises(TooManyLargeBodies):
        await IncomingBody(Sender(PIECE, PIECE).receive, large_bodies).read(MOST, SECONDS, OWNER)
    held.release()
    again = IncomingBody(Sender(PIECE, PIECE).receive, large_bodies)
    assert len(await again.read(MOST, SECONDS, OWNER)) == 2 * len(PIECE)


async def test_few_large_bodies_wait() -> None:
    large_bodies = LargeBodies()
    held = IncomingBody(Sender(PIECE, PIECE).receive, large_bodies)
    await held.read(MOST, SECONDS, OWNER)
    async with asyncio.TaskGroup() as group:
        waiting = [group.create_task(large_bodies.take(OWNER)) for _ in range(MAX_WAITING_BODIES)]
        await asyncio.sleep(0)
        with pytest.raises(TooManyLargeBodies):
            await large_bodies.take(OWNER)
        for each in waiting:
            each.cancel()


async def test_a_slow_body_is_refused() -> None:
    async def receive() -> dict[str, Any]:
        await asyncio.sleep(60)
        return {}

    with pytest.raises(RequestTimeout):
        await IncomingBody(receive, LargeBodies()).read(10, 0.01, OWNER)
