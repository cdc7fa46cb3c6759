"""The hosts of a database's address, such as `postgresql://sapa@one,two,three/sapa`: which one to ask, and how long.

Of several hosts one is the primary, and a host that went away may be silent instead of refusing. So each has a limit,
the next is asked while the first has not answered yet, and the one that accepted the last session is asked first.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit

Session = TypeVar("Session")

HOST_SECONDS = 2.0
"""How long one of several hosts may take to accept a session."""
HEAD_START_SECONDS = 0.25
"""How long a host is tried alone before the next one is tried as well."""

UNACKNOWLEDGED_MILLISECONDS = 4_000
"""The kernel gives up a connection if sent data stays unacknowledged for this long."""
_KEEPALIVE = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 10),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 3),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 2),
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNACKNOWLEDGED_MILLISECONDS),
)

_accepted: dict[str, str] = {}
"""The host that accepted the last session, by the address of the database."""


class NoHostAccepts(Exception):
    """None of the hosts accepts a session."""

    def __init__(self, errors: dict[str, Exception]) -> None:
        reasons = [f"{_name_host(host)}: {error}" for host, error in errors.items()]
        super().__init__("; ".join(reasons))
        self.errors = list(errors.values())


def split_hosts(url: str) -> list[str]:
    """An address for each host, which stand before the path or as `?host=one,two&port=5432,5433`."""
    parts = urlsplit(url)
    user, at, hosts = parts.netloc.rpartition("@")
    options = dict(parse_qsl(parts.query))
    if "," not in hosts + options.get("host", ""):
        return [url]
    if hosts:
        return [parts._replace(netloc=f"{user}{at}{host}").geturl() for host in hosts.split(",")]
    names, ports = options["host"].split(","), options["port"].split(",") if "port" in options else []
    if len(ports) not in {0, 1, len(names)}:
        return [url]  # asyncpg refuses it
    each = [{"host": name} | ({"port": ports[n % len(ports)]} if ports else {}) for n, name in enumerate(names)]
    return [f"{url.partition('?')[0]}?{urlencode(options | one)}" for one in each]


def _name_host(url: str) -> str:
    parts = urlsplit(url)
    return parts.netloc.rpartition("@")[2] or dict(parse_qsl(parts.query)).get("host", "")


async def open_first(
    url: str, open_session: Callable[[str], Awaitable[Session]], drop: Callable[[Session], object]
) -> Session:
    """A session with the first host that accepts one; raises NoHostAccepts if none does."""
    waiting = split_hosts(url)
    last = _accepted.get(url)
    waiting.sort(key=lambda host: host != last)
    running: dict[asyncio.Task[Session], str] = {}
    errors: dict[str, Exception] = {}
    try:
        while waiting or running:
            if waiting:
                host = waiting.pop(0)
                running[asyncio.create_task(_open_in_time(host, open_session), name="database host")] = host
            limit = HEAD_START_SECONDS if waiting else None
            done, _ = await asyncio.wait(running, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
            for attempt in done:
                host = running.pop(attempt)
                try:
                    session = attempt.result()
                except Exception as error:
                    errors[host] = error
                else:
                    _accepted[url] = host
                    return session
    finally:
        for attempt in running:
            attempt.add_done_callback(partial(_drop_opened, drop))
            attempt.cancel()
    raise NoHostAccepts(errors)


async def _open_in_time(host: str, open_session: Callable[[str], Awaitable[Session]]) -> Session:
    try:
        async with asyncio.timeout(HOST_SECONDS):
            return await open_session(host)
    except TimeoutError:
        raise TimeoutError(f"no answer within {HOST_SECONDS:.0f} seconds") from None


def _drop_opened(drop: Callable[[Session], object], attempt: asyncio.Task[Session]) -> None:
    """Closes a session that a host accepted just as the attempt was cancelled."""
    if not attempt.cancelled() and attempt.exception() is None:
        drop(attempt.result())


def limit_silence(transport: asyncio.BaseTransport) -> None:
    """Lets the kernel notice that the other end of a connection is gone."""
    connected = transport.get_extra_info("socket")
    if connected is not None and connected.family != socket.AF_UNIX:
        for level, option, value in _KEEPALIVE:
            connected.setsockopt(level, option, value)
