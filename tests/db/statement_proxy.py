"""A proxy in front of PostgreSQL that lists the statements that pass it, BEGIN and COMMIT included."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from urllib.parse import parse_qs, urlsplit


class StatementProxy:
    def __init__(self) -> None:
        self.statements: list[str] = []
        """What was executed, in its order."""
        self.url = ""


@asynccontextmanager
async def open_statement_proxy(url: str) -> AsyncIterator[StatementProxy]:
    """Connections to the proxy's `url` lead to the server of the given one."""
    proxy, parts = StatementProxy(), urlsplit(url)
    folder, port = parse_qs(parts.query).get("host", [None])[0], parts.port or 5432

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if folder is None:
            server = await asyncio.open_connection(parts.hostname, port)
        else:
            server = await asyncio.open_unix_connection(f"{folder}/.s.PGSQL.{port}")
        with suppress(ConnectionError):
            await asyncio.gather(_pass(reader, server[1], _Listener(proxy).hear), _pass(server[0], writer, None))

    listener = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        host = f"127.0.0.1:{listener.sockets[0].getsockname()[1]}"
        credentials = parts.netloc.rpartition("@")[0]
        proxy.url = f"postgresql://{credentials}@{host}{parts.path}?sslmode=disable"
        yield proxy
    finally:
        listener.close()


async def _pass(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, hear: Callable[[bytes], None] | None
) -> None:
    while data := await reader.read(65_536):
        if hear is not None:
            hear(data)
        writer.write(data)
        await writer.drain()
    writer.close()


class _Listener:
    """Reads the messages of one client: the first has no type, each other one a type and its length."""

    def __init__(self, proxy: StatementProxy) -> None:
        self._proxy = proxy
        self._received = b""
        self._has_begun = False
        self._prepared: dict[bytes, str] = {}

    def hear(self, data: bytes) -> None:
        self._received += data
        while True:
            head = 1 if self._has_begun else 0
            if len(self._received) < head + 4:
                return
            end = head + int.from_bytes(self._received[head : head + 4])
            if len(self._received) < end:
                return
            kind, body = self._received[:head], self._received[head + 4 : end]
            self._received, self._has_begun = self._received[end:], True
            self._note(kind, body)

    def _note(self, kind: bytes, body: bytes) -> None:
        if kind == b"Q":
            self._proxy.statements.append(body.rstrip(b"\0").decode())
        elif kind == b"P":
            name, text, _ = body.split(b"\0", 2)
            self._prepared[name] = text.decode()
        elif kind == b"B":
            _portal, name, _ = body.split(b"\0", 2)
            self._proxy.statements.append(self._prepared[name])
