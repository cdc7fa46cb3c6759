"""A player asks for parts of a file."""

from collections.abc import AsyncGenerator

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import Response

from sapa.http.byte_ranges import send_file

CONTENT = bytes(range(10))


async def read_parts() -> AsyncGenerator[bytes, None]:
    for start in (0, 4, 8):
        yield CONTENT[start : start + 4]


async def get(headers: dict[str, str]) -> httpx.Response:
    async def serve(scope: object, receive: object, send: object) -> None:
        response: Response = send_file(Request(scope).headers, read_parts(), len(CONTENT), {}, "audio/ogg")  # type: ignore[arg-type]
        await response(scope, receive, send)  # type: ignore[arg-type]

    transport = httpx.ASGITransport(serve)
    async with httpx.AsyncClient(transport=transport, base_url="http://files.example") as client:
        return await client.get("/", headers=headers)


@pytest.mark.parametrize(
    ("asked", "start", "end"),
    [
        ("bytes=0-1", 0, 1),
        ("bytes=3-8", 3, 8),
        ("bytes=4-7", 4, 7),
        ("bytes=8-", 8, 9),
        ("bytes=5-99", 5, 9),
        ("bytes=-3", 7, 9),
        ("bytes=-99", 0, 9),
    ],
)
async def test_a_range_is_sent(asked: str, start: int, end: int) -> None:
    part = await get({"range": asked})
    assert (part.status_code, part.content) == (206, CONTENT[start : end + 1])
    assert part.headers["content-range"] == f"bytes {start}-{end}/10"
    assert part.headers["content-length"] == str(end - start + 1)


@pytest.mark.parametrize("asked", ["bytes=10-", "bytes=10-12", "bytes=5-4", "bytes=-0"])
async def test_a_range_outside_of_the_file_is_refused(asked: str) -> None:
    refused = await get({"range": asked})
    assert (refused.status_code, refused.headers["content-range"]) == (416, "bytes */10")


@pytest.mark.parametrize("asked", ["", "bytes=0-1,4-5", "lines=0-1", "bytes=-", "bytes=a-b"])
async def test_anything_else_gets_the_whole_file(asked: str) -> None:
    whole = await get({"range": asked})
    assert (whole.status_code, whole.content, whole.headers["accept-ranges"]) == (200, CONTENT, "bytes")


async def test_a_range_of_another_version_gets_the_whole_file() -> None:
    whole = await get({"range": "bytes=0-1", "if-range": '"older"'})
    assert (whole.status_code, whole.content) == (200, CONTENT)
