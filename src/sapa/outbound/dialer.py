"""Connections for protocols other than HTTP, such as to a mail server."""

import asyncio
import socket

from sapa.outbound.guard import Guard
from sapa.outbound.resolver import GuardedResolver


class Dialer:
    """Opens sockets to addresses that the guard permits."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._resolver = GuardedResolver(guard)

    async def open(self, host: str, port: int, seconds: float) -> socket.socket:
        """Connects to the first address of the name that answers; raises OSError, also on a time-out."""
        async with asyncio.timeout(seconds):
            addresses = await self._resolver.resolve(host, port)
            failure: OSError = OSError(f"{host} has no address")
            for address in addresses:
                connection = self._guard.open_socket(
                    (address["family"], socket.SOCK_STREAM, 0, "", (address["host"], address["port"]))
                )
                try:
                    return await _connect(connection, address["host"], address["port"])
                except OSError as error:
                    failure = error
            raise failure

    async def close(self) -> None:
        await self._resolver.close()


async def connect_unguarded(host: str, port: int, seconds: float) -> socket.socket:
    """For addresses of our own, which need no guard."""
    async with asyncio.timeout(seconds):
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return await _connect(socket.socket(family, socket.SOCK_STREAM), host, port)


async def _connect(connection: socket.socket, host: str, port: int) -> socket.socket:
    connection.setblocking(False)
    try:
        await asyncio.get_running_loop().sock_connect(connection, (host, port))
    except BaseException:
        connection.close()
        raise
    return connection
