"""Callbacks are parsed in processes that can be killed: whatever one does, the next is parsed."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator

import psutil
import pytest

from sapa.messaging.channels.interface import ReceivedItem, Source
from sapa.messaging.inbound import parsers as parsers_module
from sapa.messaging.inbound.parser_process import ParseRequest
from sapa.messaging.inbound.parsers import NotParsed, Parsers
from tests.http.wire import eventually

ACCOUNT = {"address": "halo@shop.example"}
MAIL = ParseRequest(Source.MAIL, ACCOUNT, b"From: ayu@example.com\r\n\r\nHalo")
SLOW = ParseRequest(Source.MAIL, ACCOUNT, b"From: a@b.c\r\nContent-Type: text/html\r\n\r\n" + b"<b>" * 170_000)


@pytest.fixture
async def parsers() -> AsyncIterator[Parsers]:
    opened = Parsers(cpu_seconds=0.2)
    yield opened
    await opened.close()


def list_children() -> list[psutil.Process]:
    return [child for child in psutil.Process().children() if "parser_process" in " ".join(child.cmdline())]


async def has_none() -> bool | None:
    return not list_children() or None


async def is_parsed(parsers: Parsers) -> bool:
    async with parsers.borrow() as parser:
        [item] = await parser.read(MAIL)
    return isinstance(item, ReceivedItem) and item.body == "Halo"


async def test_a_callback_that_computes_too_long_is_stopped_by_the_system(parsers: Parsers) -> None:
    assert await is_parsed(parsers)
    async with parsers.borrow() as parser:
        with pytest.raises(NotParsed, match="CPU"):
            await parser.read(SLOW)
    assert await is_parsed(parsers)


async def test_a_process_that_hangs_is_killed_at_the_deadline(
    parsers: Parsers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parsers_module, "DEADLINE_SECONDS", 0.5)
    assert await is_parsed(parsers)
    [process] = list_children()
    process.suspend()
    async with parsers.borrow() as parser:
        with pytest.raises(NotParsed, match="seconds"):
            await parser.read(MAIL)
    monkeypatch.undo()
    assert not psutil.pid_exists(process.pid)
    assert await is_parsed(parsers)


@pytest.mark.long
async def test_a_process_that_dies_is_replaced(parsers: Parsers) -> None:
    assert await is_parsed(parsers)
    [process] = list_children()
    os.kill(process.pid, signal.SIGKILL)
    await asyncio.to_thread(process.wait)
    for _ in range(2):
        try:
            assert await is_parsed(parsers)
        except NotParsed:  # it was not yet known to be gone
            continue


@pytest.mark.long
async def test_a_process_that_nobody_needs_ends_and_the_next_callback_gets_another(
    parsers: Parsers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parsers_module, "UNUSED_SECONDS", 0.0)
    assert await is_parsed(parsers)
    await eventually(has_none)
    monkeypatch.undo()
    assert await is_parsed(parsers)
    assert len(list_children()) == 1


async def test_a_busy_process_does_not_hold_up_others(parsers: Parsers) -> None:
    async with parsers.borrow():
        assert await is_parsed(parsers)
    assert len(list_children()) == 2


async def test_the_process_has_no_secrets(parsers: Parsers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAPA_SECRET_KEY", "planted-secret")
    assert await is_parsed(parsers)
    [process] = list_children()
    assert not any(name.startswith("SAPA_") for name in process.environ())


async def test_closing_ends_every_process(parsers: Parsers) -> None:
    assert await is_parsed(parsers)
    await parsers.close()
    assert list_children() == []
