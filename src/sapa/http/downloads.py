"""Files that are read from the database while they are sent."""

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, aclosing, suppress

import structlog
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

STALL_SECONDS = 60.0
"""A download is ended if the client reads nothing for this long."""
MAX_SECONDS = 3600.0
"""The limit for a whole file: its snapshot keeps VACUUM from removing old rows."""

log = structlog.get_logger()


class Download(Response):
    """Sends parts for as long as the client reads them. `resources` are released however it ends.

    It stops between two parts, never within a statement: a client that disconnects costs neither a connection nor a
    traceback.
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
            disconnected = asyncio.create_task(_wait_for_disconnect(receive))
            deadline = time.monotonic() + MAX_SECONDS
            try:
                await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
                async for part in parts:
                    if not await _send_part(send, part, disconnected):
                        return
                    if time.monotonic() > deadline:
                        log.info("download stopped", reason=f"it took longer than {MAX_SECONDS:.0f} seconds")
                        return
                await send({"type": "http.response.body", "body": b"", "more_body": False})
            except OSError:
                return  # the client disconnected
            finally:
                disconnected.cancel()


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _send_part(send: Send, part: bytes, disconnected: asyncio.Task[None]) -> bool:
    """False once the client has disconnected or stalled."""
    sending = asyncio.ensure_future(send({"type": "http.response.body", "body": part, "more_body": True}))
    try:
        done, _ = await asyncio.wait(
            {sending, disconnected}, timeout=STALL_SECONDS, return_when=asyncio.FIRST_COMPLETED
        )
    except asyncio.CancelledError:
        sending.cancel()
        raise
    if sending in done:
        await sending
        return not disconnected.done()
    sending.cancel()
    with suppress(asyncio.CancelledError, OSError):
        await sending
    if disconnected not in done:
        log.info("download stopped", reason=f"the reader took nothing for {STALL_SECONDS:.0f} seconds")
    return False
