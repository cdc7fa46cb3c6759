"""Connections that are no HTTP, such as those to a mail server."""

import asyncio
import socket

from sapa.outbound.guard import Guard
from sapa.outbound.resolver import Names


class Dialer:
    """Opens sockets to where the guard permits."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._names = Names(guard)

    async def open(self, host: str, port: int, seconds: float) -> socket.socket:
        """To the first of a name's addresses that answers; raises OSError, which a time-out is, too."""
        async with asyncio.timeout(seconds):
            places = await self._names.resolve(host, port)
            failure: OSError = OSError(f"{host} has no address")
            for place in places:
                opened = self._guard.open_socket(
                    (place["family"], socket.SOCK_STREAM, 0, "", (place["host"], place["port"]))
                )
                try:
                    return await _connect(opened, place["host"], place["port"])
                except OSError as error:
                    failure = error
            raise failure

    async def close(self) -> None:
        await self._names.close()


async def connect_plainly(host: str, port: int, seconds: float) -> socket.socket:
    """To an address of ours, which needs no guard."""
    async with asyncio.timeout(seconds):
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return await _connect(socket.socket(family, socket.SOCK_STREAM), host, port)


async def _connect(opened: socket.socket, host: str, port: int) -> socket.socket:
    opened.setblocking(False)
    try:
        await asyncio.get_running_loop().sock_connect(opened, (host, port))
    except BaseException:
        opened.close()
        raise
    return opened
