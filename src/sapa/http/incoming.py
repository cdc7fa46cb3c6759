"""Reads a request's body within limits of size, time and memory."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from io import BytesIO
from typing import Any

from sapa.http.errors import Invalid, PayloadTooLarge, RequestTimeout
from sapa.values.large_bodies import LargeBodies

LARGE_BYTES = 1_048_576
ARRIVED_BODY = "sapa.body"
"""In a request's scope: the whole body, if it came with the head."""
INCOMPLETE = "The body is incomplete. Send the whole body."


class IncomingBody:
    """The body of one request. Only a few large ones are in memory at once, until `release`."""

    def __init__(
        self, receive: Callable[[], Awaitable[Any]], large_bodies: LargeBodies, arrived: bytes | None = None
    ) -> None:
        self._receive = receive
        self._large_bodies = large_bodies
        self._arrived = arrived
        """The whole body, if nothing is left to wait for."""
        self._release: Callable[[], None] | None = None

    async def read(self, most: int, seconds: float, owner: str, length: str | None = None) -> bytes:
        """Nothing is read of a body whose announced length is too large. A large one waits for its turn: before it is
        read, or, if its length was not announced, after its first MiB. The time of waiting does not count."""
        announced = int(length) if length is not None and length.isdecimal() else 0
        if announced > most:
            raise _build_refusal(most)
        if self._arrived is not None and len(self._arrived) <= min(most, LARGE_BYTES):
            return self._arrived
        content = BytesIO()
        if announced > LARGE_BYTES:
            self._release = await self._large_bodies.take(owner)
        try:
            async with asyncio.timeout(seconds) as deadline:
                while await self._read_chunk(content, most):
                    if self._release is None and content.tell() > LARGE_BYTES:
                        deadline.reschedule(None)
                        self._release = await self._large_bodies.take(owner)
                        deadline.reschedule(asyncio.get_running_loop().time() + seconds)
        except TimeoutError:
            raise RequestTimeout(f"The request's body did not arrive within {seconds:.0f} seconds.") from None
        return content.getvalue()

    async def stream(self, seconds: float, stall_seconds: float) -> AsyncIterator[bytes]:
        """The body as it arrives. Each piece may take `stall_seconds`, and all of them `seconds`."""
        loop = asyncio.get_running_loop()
        ends, has_more = loop.time() + seconds, True
        while has_more:
            try:
                async with asyncio.timeout_at(min(ends, loop.time() + stall_seconds)):
                    message = await self._receive()
            except TimeoutError:
                raise RequestTimeout(
                    f"The file did not arrive within {seconds:.0f} seconds, or stopped for {stall_seconds:.0f} seconds."
                ) from None
            if message["type"] == "http.disconnect":
                raise Invalid(INCOMPLETE)
            has_more = bool(message.get("more_body", False))
            if chunk := message.get("body", b""):
                yield chunk

    def release(self) -> None:
        """The request is answered, and its body is no longer in use."""
        if self._release is not None:
            self._release()

    async def _read_chunk(self, content: BytesIO, most: int) -> bool:
        """Returns whether more will come."""
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise Invalid(INCOMPLETE)
        chunk = message.get("body", b"")
        if content.tell() + len(chunk) > most:
            raise _build_refusal(most)
        content.write(chunk)
        return bool(message.get("more_body", False))


class BufferedBody:
    """A body that is in memory already, and within the limits."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    async def read(self, most: int, seconds: float, owner: str, length: str | None = None) -> bytes:
        return self._content

    async def stream(self, seconds: float, stall_seconds: float) -> AsyncIterator[bytes]:
        yield self._content

    def release(self) -> None:
        """Nothing is held."""


def _build_refusal(most: int) -> PayloadTooLarge:
    size = f"{most // 1_048_576} MiB" if most >= 1_048_576 else f"{most // 1024} KiB"
    return PayloadTooLarge(f"The request's body is larger than {size}.")
