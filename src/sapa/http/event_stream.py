"""Server-sent events, as `/listen`, the console and the widget send them."""

from collections.abc import AsyncIterator, Callable, Mapping

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

READY = b": ready\n\n"
KEEP_ALIVE = b": still here\n\n"
"""Comments: they tell proxies and clients that the stream works."""


class EventStreamResponse(StreamingResponse):
    """Sends events until their iterator ends; `release` runs however the stream ends."""

    def __init__(self, events: AsyncIterator[bytes], release: Callable[[], None], headers: Mapping[str, str]) -> None:
        super().__init__(events, headers={**headers, "x-accel-buffering": "no"}, media_type="text/event-stream")
        self._release = release

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._release()


def build_event(kind: str, data: bytes, id: str | int | None = None) -> bytes:
    """One event. Its data is one line; Unicode line separators are escaped, because some clients split there."""
    for char in "\x85\u2028\u2029":
        data = data.replace(char.encode(), f"\\u{ord(char):04x}".encode())
    head = f"event: {kind}\ndata: " if id is None else f"id: {id}\nevent: {kind}\ndata: "
    return head.encode() + data + b"\n\n"
