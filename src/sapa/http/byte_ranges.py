"""Parts of a file: browsers play sound and films only from a server that sends the range they ask for."""

import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing

from starlette.responses import Response

from sapa.http.downloads import Download

ONE_RANGE = re.compile(r"bytes=(?:(\d{1,18})-(\d{0,18})|-(\d{1,18}))")


def send_file(
    asked: Mapping[str, str], parts: AsyncGenerator[bytes, None], size: int, headers: Mapping[str, str], media_type: str
) -> Response:
    """The whole file, or the one range in the headers of the request. Several ranges, and those of an older version,
    get the whole file."""
    wanted = ONE_RANGE.fullmatch(asked.get("range", "").strip())
    if wanted is None or "if-range" in asked:
        whole = {**headers, "accept-ranges": "bytes", "content-length": str(size)}
        return Download(parts, whole, media_type)
    first, last, ending = wanted.groups()
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
    return Download(_cut(parts, start, end + 1), part, media_type, status_code=206)


async def _cut(parts: AsyncGenerator[bytes, None], start: int, stop: int) -> AsyncGenerator[bytes, None]:
    position = 0
    async with aclosing(parts):
        async for part in parts:
            if piece := part[max(0, start - position) : stop - position]:
                yield piece
            position += len(part)
            if position >= stop:
                return
