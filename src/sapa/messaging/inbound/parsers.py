"""Parses callbacks in processes of their own, which are killed when one takes too long."""

import asyncio
import os
import signal
import sys
from asyncio import StreamReader, StreamWriter
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

import msgspec

from sapa.messaging.channels.interface import Item
from sapa.messaging.inbound import parser_process
from sapa.messaging.inbound.parser_process import CPU_SECONDS, LENGTH_BYTES, ParseRequest, ParseResponse

MAX_PROCESSES = 3
START_AFTER_SECONDS = 0.2
"""How long a callback waits for a busy process before another one is started."""
START_SECONDS = 60.0
END_SECONDS = 2.0
DEADLINE_SECONDS = 10.0
"""For one callback, by the clock. A process that computes all the time is ended sooner, by `CPU_SECONDS`."""
UNUSED_SECONDS = 300.0
"""After which a process is ended that nobody needed in that time: it holds nearly 40 MB."""

_OWN_VARIABLES = ("SAPA_", "PROMETHEUS_")


class NotParsed(Exception):
    """Why a callback could not be parsed."""


_decode_response = msgspec.msgpack.Decoder(ParseResponse).decode


class Parser:
    """One process. It parses one callback at a time."""

    def __init__(self, process: Process, requests: StreamWriter, responses: StreamReader) -> None:
        self._process = process
        self._requests = requests
        self._responses = responses
        self._is_ended = False
        self._end: asyncio.TimerHandle | None = None

    @property
    def is_alive(self) -> bool:
        return self._process.returncode is None and not self._is_ended

    def end_when_unused(self) -> None:
        self._end = asyncio.get_running_loop().call_later(UNUSED_SECONDS, self._kill)

    def cancel_end(self) -> None:
        if self._end:
            self._end.cancel()

    async def read(self, request: ParseRequest) -> Sequence[Item]:
        [items] = await self.read_all([request])
        return items

    async def read_all(self, requests: Sequence[ParseRequest]) -> list[Sequence[Item]]:
        """In one exchange. Raises NotParsed if one of them cannot be parsed. After the deadline the process is gone."""
        try:
            async with asyncio.timeout(DEADLINE_SECONDS):
                frames = await self._exchange([msgspec.msgpack.encode(request) for request in requests])
        except TimeoutError:
            await self.kill()
            raise NotParsed(f"Parsing took longer than {DEADLINE_SECONDS:.0f} seconds.") from None
        except (asyncio.IncompleteReadError, OSError):
            with suppress(TimeoutError):
                async with asyncio.timeout(END_SECONDS):  # a kill would lose the exit code
                    await self._process.wait()
            await self.kill()
            raise NotParsed(_describe_end(self._process.returncode)) from None
        except BaseException:
            await self.kill()
            raise
        responses = [_decode_response(frame) for frame in frames]
        error = next((response.error for response in responses if response.error is not None), None)
        if error is not None:
            raise NotParsed(error)
        return [response.items for response in responses]

    async def wait_until_ready(self) -> None:
        async with asyncio.timeout(START_SECONDS):
            await self._receive()

    async def _exchange(self, frames: Sequence[bytes]) -> list[bytes]:
        self._requests.writelines(len(frame).to_bytes(LENGTH_BYTES) + frame for frame in frames)
        await self._requests.drain()
        return [await self._receive() for _ in frames]

    async def _receive(self) -> bytes:
        length = await self._responses.readexactly(LENGTH_BYTES)
        return await self._responses.readexactly(int.from_bytes(length))

    async def kill(self) -> None:
        self.cancel_end()
        self._kill()
        await self._process.wait()

    def _kill(self) -> None:
        self._is_ended = True
        with suppress(ProcessLookupError):
            self._process.kill()
        self._requests.close()


class Parsers:
    """The processes of one worker. The first one is started for the first callback and is enough for most; another is
    started when all are busy for a while."""

    def __init__(self, cpu_seconds: float = CPU_SECONDS) -> None:
        self._cpu_seconds = cpu_seconds
        self._idle: asyncio.LifoQueue[Parser] = asyncio.LifoQueue()
        self._started = 0
        self._all: set[Parser] = set()

    @asynccontextmanager
    async def borrow(self) -> AsyncIterator[Parser]:
        """A process that is ready."""
        parser = await self._find_idle() or await self._start()
        try:
            yield parser
        finally:
            if parser.is_alive:
                parser.end_when_unused()
                self._idle.put_nowait(parser)
            else:
                self._drop(parser)

    async def close(self) -> None:
        await asyncio.gather(*(parser.kill() for parser in self._all))

    async def _find_idle(self) -> Parser | None:
        """None if another process may be started."""
        while True:
            try:
                async with asyncio.timeout(START_AFTER_SECONDS if self._started else 0.0):
                    parser = await self._idle.get()
            except TimeoutError:
                if self._started < MAX_PROCESSES:
                    return None
                continue
            if parser.is_alive:
                parser.cancel_end()
                return parser
            self._drop(parser)

    async def _start(self) -> Parser:
        self._started += 1
        try:
            parser = await _spawn(self._cpu_seconds)
            self._all.add(parser)
        except BaseException:
            self._started -= 1
            raise
        try:
            await parser.wait_until_ready()
        except BaseException as error:
            await parser.kill()
            self._drop(parser)
            if isinstance(error, asyncio.IncompleteReadError):
                raise RuntimeError("the process that parses callbacks did not start") from None
            raise
        return parser

    def _drop(self, parser: Parser) -> None:
        self._started -= 1
        self._all.discard(parser)


async def _spawn(cpu_seconds: float) -> Parser:
    """Without our settings: the process needs no secret and no address."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(_OWN_VARIABLES)}
    command = [sys.executable, "-m", parser_process.__name__, str(cpu_seconds)]
    process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, env=environment)
    if process.stdin is None or process.stdout is None:
        raise RuntimeError("the process that parses callbacks has no pipes")
    return Parser(process, process.stdin, process.stdout)


def _describe_end(code: int | None) -> str:
    if code == -signal.SIGPROF:
        return "Parsing took too much CPU time."
    return f"The process that parses callbacks ended with exit code {code}."
