"""A process that parses callbacks and can be killed: what strangers wrote is parsed here and nowhere else.

It reads requests from standard input and writes responses to standard output, each with its length before it. It has
no secrets, no connection to the database, and limits on time and memory that the system enforces. It ends with its
parent, whose end closes its input.
"""

import os
import resource
import signal
import sys
from collections.abc import Mapping
from typing import BinaryIO

import msgspec
from msgspec import Struct

from sapa.messaging.channels.interface import Item, Source
from sapa.messaging.channels.registry import CHANNELS

CPU_SECONDS = 5.0
"""For one callback. The largest mail takes less than one."""
MAX_MEMORY_BYTES = 1_073_741_824
MAX_ERROR_LENGTH = 1000
LENGTH_BYTES = 8


class ParseRequest(Struct, frozen=True):
    source: Source
    account: Mapping[str, str]
    """The public fields of the account."""
    body: bytes


class ParseResponse(Struct, frozen=True):
    items: list[Item] = []
    error: str | None = None


def run(cpu_seconds: float) -> None:
    requests, responses = sys.stdin.buffer, _claim_output()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":  # elsewhere the limit is refused or ignored
        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    _write(responses, b"ready")
    while (request := _read(requests)) is not None:
        # The default action of the signal ends the process, also in the middle of a computation in C.
        signal.setitimer(signal.ITIMER_PROF, cpu_seconds)
        response = _respond(request)
        signal.setitimer(signal.ITIMER_PROF, 0)
        _write(responses, response)


def _respond(frame: bytes) -> bytes:
    try:
        request = msgspec.msgpack.decode(frame, type=ParseRequest)
        items = CHANNELS[request.source].read_callback(request.account, request.body)
        return msgspec.msgpack.encode(ParseResponse(list(items)))
    except Exception as failure:
        return msgspec.msgpack.encode(ParseResponse(error=describe(failure)))


def describe(failure: Exception) -> str:
    text = f"{type(failure).__name__}: {failure}".replace("\0", "")
    return text.encode("utf-8", "replace").decode()[:MAX_ERROR_LENGTH]


def _claim_output() -> BinaryIO:
    """Standard output for responses only: what anything prints goes to standard error."""
    responses = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return responses


def _read(requests: BinaryIO) -> bytes | None:
    length = requests.read(LENGTH_BYTES)
    return requests.read(int.from_bytes(length)) if len(length) == LENGTH_BYTES else None


def _write(responses: BinaryIO, frame: bytes) -> None:
    responses.write(len(frame).to_bytes(LENGTH_BYTES) + frame)
    responses.flush()


if __name__ == "__main__":
    run(float(sys.argv[1]))
