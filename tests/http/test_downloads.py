"""Files that are read while they are sent: readers that leave, fall asleep or stay."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from typing import Any

import pytest
from structlog.testing import capture_logs

from sapa.http import downloads
from sapa.http.downloads import Download

SCOPE: dict[str, Any] = {"type": "http"}


class Reader:
    """The other side of a download."""

    def __init__(self, takes: int) -> None:
        self.takes = takes
        self.parts: list[bytes] = []
        self.is_complete = False
        self.is_asleep = asyncio.Event()
        self.left = asyncio.Event()

    async def receive(self) -> dict[str, Any]:
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            return
        if len(self.parts) >= self.takes:
            self.is_asleep.set()
            await asyncio.Event().wait()
        self.parts.append(message["body"])
        self.is_complete = not message["more_body"]


class Source:
    """Ten parts, and what was released."""

    def __init__(self) -> None:
        self.is_released = False
        self.is_closed = False
        self.resources = AsyncExitStack()
        self.resources.callback(self._release)

    def _release(self) -> None:
        self.is_released = True

    async def parts(self) -> AsyncGenerator[bytes, None]:
        try:
            for number in range(10):
                yield b"%d" % number
        finally:
            self.is_closed = True

    def download(self) -> Download:
        return Download(self.parts(), {"x-name": "file"}, "text/csv", self.resources)


async def test_a_reader_that_stays_gets_the_whole_file() -> None:
    reader, source = Reader(takes=100), Source()
    response = source.download()
    assert response.headers["content-type"] == "text/csv; charset=utf-8"
    assert response.headers["x-name"] == "file"
    await response(SCOPE, reader.receive, reader.send)
    assert b"".join(reader.parts) == b"0123456789"
    assert reader.is_complete
    assert source.is_released
    assert source.is_closed


async def test_a_reader_that_leaves_ends_it_without_an_error() -> None:
    reader, source = Reader(takes=3), Source()
    sending = asyncio.create_task(source.download()(SCOPE, reader.receive, reader.send))
    await reader.is_asleep.wait()
    reader.left.set()
    with capture_logs() as lines:
        await sending
    assert lines == []
    assert source.is_released
    assert source.is_closed
    assert not reader.is_complete


async def test_a_connection_that_fails_ends_it_without_an_error() -> None:
    source = Source()

    async def fail(message: Any) -> None:
        raise BrokenPipeError

    with capture_logs() as lines:
        await source.download()(SCOPE, Reader(0).receive, fail)
    assert lines == []
    assert source.is_released


async def test_a_reader_that_takes_nothing_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloads, "STALL_SECONDS", 0.05)
    reader, source = Reader(takes=3), Source()
    with capture_logs() as lines:
        await source.download()(SCOPE, reader.receive, reader.send)
    assert [line["event"] for line in lines] == ["download stopped"]
    assert source.is_released
    assert not reader.is_complete


async def test_a_server_that_stops_releases_everything() -> None:
    reader, source = Reader(takes=3), Source()
    sending = asyncio.create_task(source.download()(SCOPE, reader.receive, reader.send))
    await reader.is_asleep.wait()
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending
    assert source.is_released
    assert source.is_closed
