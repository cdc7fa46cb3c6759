"""The channel's side: takes every message at once. python -m bench.messaging.provider PORT"""

import asyncio
import re
import sys
from itertools import count
from typing import cast

import msgspec
import uvloop

_find_length = re.compile(rb"content-length: (\d+)", re.IGNORECASE).search
_ids = count()


class Provider(asyncio.Protocol):
    """As little HTTP as will do, so that it is never what is measured."""

    transport: asyncio.Transport

    def __init__(self) -> None:
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (head := self._buffer.find(b"\r\n\r\n")) >= 0:
            length = _find_length(self._buffer, 0, head)
            end = head + 4 + (int(length[1]) if length else 0)
            if len(self._buffer) < end:
                return
            body, self._buffer = self._buffer[head + 4 : end], self._buffer[end:]
            answer = take(body) if body else b"{}"
            head_of_answer = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
            self.transport.write(head_of_answer % len(answer) + answer)


def take(body: bytes) -> bytes:
    to = msgspec.json.decode(body)["to"]
    taken = {
        "messaging_product": "whatsapp",
        "contacts": [{"input": to, "wa_id": to.removeprefix("+")}],
        "messages": [{"id": f"wamid.{next(_ids)}"}],
    }
    return msgspec.json.encode(taken)


async def serve(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(Provider, "127.0.0.1", port, backlog=1024)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1])))
