"""Files that are read from the database while they are sent."""

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, aclosing, suppress

import structlog
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

STALL_SECONDS = 60.0
"""A reader that takes nothing in this time has its connection closed."""
MOST_SECONDS = 3600.0
"""For a whole file: its snapshot keeps the database from tidying up."""

log = structlog.get_logger()


class Download(Response):
    """Sends parts as long as the reader takes them. `resources` are released however it ends.

    It stops between two parts, never within a statement: a reader that leaves costs no connection and no traceback.
    """

    def __init__(
        self,
        parts: AsyncGenerator[bytes, None],
        headers: Mapping[str, str],
        media_type: str,
        resources: AsyncExitStack | None = None,
        status_code: int = 200,
    ) -> None:
        self.status_code = status_code
        self.media_type = media_type
        self.background = None
        self.init_headers(headers)
        self._parts = parts
        self._resources = resources or AsyncExitStack()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._resources, aclosing(self._parts) as parts:
            left = asyncio.create_task(_wait_until_left(receive))
            deadline = time.monotonic() + MOST_SECONDS
            try:
                await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
                async for part in parts:
                    if not await _send_part(send, part, left):
                        return
                    if time.monotonic() > deadline:
                        log.info("download stopped", reason=f"it took longer than {MOST_SECONDS:.0f} seconds")
                        return
                await send({"type": "http.response.body", "body": b"", "more_body": False})
            except OSError:
                return  # the reader left
            finally:
                left.cancel()


async def _wait_until_left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _send_part(send: Send, part: bytes, left: asyncio.Task[None]) -> bool:
    """False when nobody reads any more."""
    sending = asyncio.ensure_future(send({"type": "http.response.body", "body": part, "more_body": True}))
    try:
        done, _ = await asyncio.wait({sending, left}, timeout=STALL_SECONDS, return_when=asyncio.FIRST_COMPLETED)
    except asyncio.CancelledError:
        sending.cancel()
        raise
    if sending in done:
        await sending
        return not left.done()
    sending.cancel()
    with suppress(asyncio.CancelledError, OSError):
        await sending
    if left not in done:
        log.info("download stopped", reason=f"the reader took nothing for {STALL_SECONDS:.0f} seconds")
    return False
