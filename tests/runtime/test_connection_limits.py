"""Which connections a process admits, and which one it closes when it is full."""

import socket
import time
from collections.abc import Iterator

import pytest

from sapa.http.allow_list import AllowList
from sapa.runtime.connection_limits import HEAD_SECONDS, IDLE_SECONDS, Connection, ConnectionLimits

PROXY = "10.0.0.1"


class Callers:
    """Opens connections; the other ends show which ones were closed."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self._sockets: list[socket.socket] = []
        self._peers: dict[Connection, socket.socket] = {}

    def connect(self, address: str = "203.0.113.1") -> Connection:
        connection = self.find(address)
        assert connection is not None
        return connection

    def find(self, address: str) -> Connection | None:
        ours, theirs = socket.socketpair()
        self._sockets += [ours, theirs]
        theirs.setblocking(False)
        connection = self.limits.admit(ours, (address, 1))
        if connection is not None:
            self._peers[connection] = theirs
        return connection

    def is_closed(self, connection: Connection) -> bool:
        try:
            return self._peers[connection].recv(1) == b""
        except BlockingIOError:
            return False

    def close(self) -> None:
        for each in self._sockets:
            each.close()


@pytest.fixture
def callers() -> Iterator[Callers]:
    opened = Callers(ConnectionLimits(6, 3, AllowList([PROXY])))
    yield opened
    opened.close()


def test_a_full_address_loses_its_oldest_connection_without_a_request(callers: Callers) -> None:
    busy, silent, later = (callers.connect() for _ in range(3))
    busy.end_wait()
    callers.connect()
    assert [callers.is_closed(each) for each in (busy, silent, later)] == [False, True, False]


def test_a_silent_connection_goes_before_an_idle_one(callers: Callers) -> None:
    idle, silent = callers.connect(), callers.connect()
    idle.await_caller()
    callers.connect()
    callers.connect()
    assert (callers.is_closed(idle), callers.is_closed(silent)) == (False, True)


def test_a_connection_is_refused_only_when_all_others_are_answered(callers: Callers) -> None:
    for _ in range(3):
        callers.connect().end_wait()
    assert callers.find("203.0.113.1") is None
    assert callers.find("203.0.113.2") is not None


@pytest.mark.parametrize(
    ("first", "second", "is_same"),
    [
        ("203.0.113.1", "203.0.113.2", False),
        ("203.0.113.1", "::ffff:203.0.113.1", True),
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
    ],
)
def test_one_network_is_an_address_or_a_64(callers: Callers, first: str, second: str, is_same: bool) -> None:
    oldest = callers.connect(first)
    for _ in range(3):
        callers.connect(second)
    assert callers.is_closed(oldest) is is_same


def test_a_trusted_proxy_has_no_limit_of_its_own(callers: Callers) -> None:
    oldest, *_ = [callers.connect(PROXY) for _ in range(6)]
    assert not callers.is_closed(oldest)
    callers.connect("203.0.113.1")
    assert callers.is_closed(oldest)


def test_a_closed_connection_makes_room(callers: Callers) -> None:
    first, second, third = (callers.connect() for _ in range(3))
    callers.limits.release(second)
    callers.limits.release(second)
    callers.connect()
    assert not callers.is_closed(first)
    assert not callers.is_closed(third)


def test_overdue_connections_are_closed(callers: Callers, monkeypatch: pytest.MonkeyPatch) -> None:
    silent, idle, busy = callers.connect("192.0.2.1"), callers.connect("192.0.2.2"), callers.connect("192.0.2.3")
    idle.await_caller()
    busy.end_wait()
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + HEAD_SECONDS + 1)
    callers.limits.close_overdue()
    assert [callers.is_closed(each) for each in (silent, idle, busy)] == [True, False, False]
    monkeypatch.setattr(time, "monotonic", lambda: now + IDLE_SECONDS + 1)
    callers.limits.close_overdue()
    assert [callers.is_closed(each) for each in (idle, busy)] == [True, False]
