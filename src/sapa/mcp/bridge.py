"""MCP over lines of text: passes each message on to a server's /mcp, for clients that start a program."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any
from urllib.parse import urlencode

import aiohttp
import msgspec

from sapa.mcp.protocol import PARSE_ERROR, MessageId, RpcError, encode_error, encode_header

INTERNAL_ERROR = -32603
MAX_CALLS = 16
"""Further messages wait until one of these is answered."""
TIMEOUT = aiohttp.ClientTimeout(total=120, connect=10)
"""A message to a slow channel may take a minute and a half."""

Line = bytes


class Bridge:
    """Passes messages on, several at a time. Answers are written in the order in which they come."""

    def __init__(
        self, server: str, key: str, write: Callable[[Line], None], toolsets: str = "", is_read_only: bool = False
    ) -> None:
        restrictions = ({"toolsets": toolsets} if toolsets else {}) | ({"readonly": "true"} if is_read_only else {})
        self._url = f"{server.rstrip('/')}/mcp" + (f"?{urlencode(restrictions)}" if restrictions else "")
        self._headers = {"x-api-key": key, "accept": "application/json, text/event-stream"}
        self._write = write
        self._version: str | None = None
        """What `initialize` agreed on."""
        self._calls: dict[MessageId, asyncio.Task[None]] = {}
        self._turns = asyncio.Semaphore(MAX_CALLS)

    async def run(self, lines: AsyncIterator[Line]) -> None:
        """Until the lines end and everything is answered."""
        async with aiohttp.ClientSession(timeout=TIMEOUT) as session, asyncio.TaskGroup() as group:
            async for line in lines:
                if message := self._parse(line):
                    self._start(group, session, line, message)

    def _parse(self, line: Line) -> dict[str, Any] | None:
        """None for what needs no call: an empty line, or a text that is no JSON object, which is answered at once."""
        if not line.strip():
            return None
        try:
            return msgspec.json.decode(line, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            self._write_error(None, PARSE_ERROR, f"The line is not a JSON-RPC message: {error}.")
            return None

    def _start(
        self, group: asyncio.TaskGroup, session: aiohttp.ClientSession, line: Line, message: dict[str, Any]
    ) -> None:
        params = message["params"] if isinstance(message.get("params"), dict) else {}
        if message.get("method") == "notifications/cancelled":
            cancelled = params.get("requestId")
            if isinstance(cancelled, int | str) and (call := self._calls.pop(cancelled, None)):
                call.cancel()
            return
        headers = self._build_headers(message, params)
        task = group.create_task(self._call(session, line, message, headers))
        id = message.get("id")
        if isinstance(id, int | str):
            self._calls[id] = task
            task.add_done_callback(lambda done: self._calls.pop(id, None))

    async def _call(
        self, session: aiohttp.ClientSession, line: Line, message: dict[str, Any], headers: dict[str, str]
    ) -> None:
        """The line is passed on as it is: decoding it could change its numbers."""
        try:
            async with (
                self._turns,
                session.post(self._url, data=line, headers=headers, allow_redirects=False) as response,
            ):
                status, body = response.status, await response.read()
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            reason = f"Sapa cannot be reached at {self._url}: {error or type(error).__name__}."
            self._write_error(message.get("id"), INTERNAL_ERROR, reason)
        else:
            if body:
                self._answer(message, status, body)

    def _build_headers(self, message: dict[str, Any], params: dict[str, Any]) -> dict[str, str]:
        meta = params.get("_meta")
        version = meta.get("io.modelcontextprotocol/protocolVersion") if isinstance(meta, dict) else None
        headers = {
            "mcp-protocol-version": version or self._version,
            "mcp-method": message.get("method"),
            "mcp-name": params.get("name"),
        }
        texts = {name: encode_header(value) for name, value in headers.items() if isinstance(value, str)}
        return {**self._headers, "content-type": "application/json", **texts}

    def _answer(self, message: dict[str, Any], status: int, body: bytes) -> None:
        """Writes the server's answer. A refusal before the message was read has no id: it gets that of the message."""
        id = message.get("id")
        try:
            answer = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
        except (msgspec.DecodeError, UnicodeDecodeError):
            answer = {}
        if "jsonrpc" not in answer:
            reason = f"{self._url} answered {status}, but not with MCP. Check the address, and whether MCP is on."
            self._write_error(id, INTERNAL_ERROR, reason)
            return
        if message.get("method") == "initialize" and "result" in answer:
            self._version = msgspec.json.decode(answer["result"])["protocolVersion"]
        if id is not None:
            answer["id"] = msgspec.Raw(msgspec.json.encode(id))
            self._write(msgspec.json.encode(answer))

    def _write_error(self, id: MessageId | None, code: int, text: str) -> None:
        self._write(encode_error(id, RpcError(code, text), 0).body)
