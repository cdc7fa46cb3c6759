"""Serves a range of a file: browsers play sound and video only from a server that supports ranges."""

import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing

from starlette.responses import Response

from sapa.http.downloads import Download

ONE_RANGE = re.compile(r"bytes=(?:(\d{1,18})-(\d{0,18})|-(\d{1,18}))")


def send_file(
    request_headers: Mapping[str, str],
    parts: AsyncGenerator[bytes, None],
    size: int,
    headers: Mapping[str, str],
    media_type: str,
) -> Response:
    """The whole file, or one range of it if the request asks for one. Several ranges, and `If-Range`, get the whole
    file."""
    requested = ONE_RANGE.fullmatch(request_headers.get("range", "").strip())
    if requested is None or "if-range" in request_headers:
        whole = {**headers, "accept-ranges": "bytes", "content-length": str(size)}
        return Download(parts, whole, media_type)
    first, last, ending = requested.groups()
    start = max(0, size - int(ending)) if ending else int(first)
    end = min(int(last), size - 1) if last else size - 1
    if start >= size or (last and int(last) < start) or ending == "0":
        return Response(status_code=416, headers={**headers, "content-range": f"bytes */{size}"})
    part = {
        **headers,
        "accept-ranges": "bytes",
        "content-length": str(end - start + 1),
        "content-range": f"bytes {start}-{end}/{size}",
    }
    return Download(_stream_range(parts, start, end + 1), part, media_type, status_code=206)


async def _stream_range(parts: AsyncGenerator[bytes, None], start: int, stop: int) -> AsyncGenerator[bytes, None]:
    position = 0
    async with aclosing(parts):
        async for part in parts:
            if piece := part[max(0, start - position) : stop - position]:
                yield piece
            position += len(part)
            if position >= stop:
                return
