"""The access log: a line and metrics for each call, written in batches because one by one they cost half a call."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable
from functools import lru_cache

import msgspec

from sapa.http.metrics import count_requests, observe_latencies
from sapa.logs import STANDARD_OUTPUT

MAX_CALLS = 512
FLUSH_SECONDS = 0.2
LONGEST_LOGGED_PATH = 256


class FinishedCall(msgspec.Struct, frozen=True, gc=False):
    """A finished call. Never a header, a query string or a body, so never a secret."""

    at: float
    request_id: str
    method: str
    route: str
    path: str
    status: int
    seconds: float
    ip: str
    key_id: str | None
    company_id: int | None
    code: str | None
    tool: str | None = None
    """Set when the call came in through MCP."""


class AccessLine(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A line of the access log."""

    time: str
    event: str
    request_id: str
    method: str
    route: str
    path: str
    status: int
    ms: float
    ip: str
    key_id: str | None = None
    company_id: int | None = None
    code: str | None = None
    tool: str | None = None


_encode_lines = msgspec.json.Encoder().encode_lines


class AccessLog:
    """Collects calls and writes them in batches."""

    def __init__(self) -> None:
        self.record: Callable[[list[FinishedCall]], None] = lambda calls: None
        """Gets each batch."""
        self._calls: list[FinishedCall] = []
        self._flusher: asyncio.TimerHandle | None = None

    def add(self, call: FinishedCall) -> None:
        self._calls.append(call)
        if len(self._calls) >= MAX_CALLS:
            self.flush()
        elif self._flusher is None:
            self._flusher = asyncio.get_running_loop().call_later(FLUSH_SECONDS, self.flush)

    def flush(self) -> None:
        if self._flusher is not None:
            self._flusher.cancel()
            self._flusher = None
        if self._calls:
            calls, self._calls = self._calls, []
            STANDARD_OUTPUT.write(_encode_lines(_build_lines(calls)))
            _measure(calls)
            self.record(calls)


def _build_lines(calls: list[FinishedCall]) -> list[AccessLine]:
    return [
        AccessLine(
            f"{_format_second(int(call.at))}.{int(call.at % 1 * 1000):03d}Z", "request", call.request_id, call.method,
            call.route, call.path, call.status, round(call.seconds * 1000, 3), call.ip, call.key_id, call.company_id,
            call.code, call.tool,
        )
        for call in calls
    ]  # fmt: skip


@lru_cache(maxsize=4)
def _format_second(second: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))


def _measure(calls: list[FinishedCall]) -> None:
    seconds: defaultdict[tuple[str, str, int], list[float]] = defaultdict(list)
    for call in calls:
        seconds[call.method, call.route, call.status].append(call.seconds)
    for (method, route, status), each in seconds.items():
        count_requests(method, route, status, len(each))
        observe_latencies(method, route, each)
