"""An HTTP server on the loopback address for this process only: the simulators of the test environment."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from sapa.values.hook_calls import HookAnswer, HookCall

MAX_BYTES = 128 * 1_048_576


class Loopback:
    """Starts when its address is first needed, on a port that the system chooses."""

    def __init__(
        self,
        response: Callable[[HookCall], Awaitable[HookAnswer]],
        find_account: Callable[[str], Awaitable[Any | None]],
    ) -> None:
        self._answer = response
        self.find_account = find_account
        """Whose path it is, for calls that name it; None if that is unknown."""
        self._starting = asyncio.Lock()
        self._runner: web.ServerRunner | None = None
        self._address = ""

    async def address(self) -> str:
        """For example http://127.0.0.1:49152."""
        async with self._starting:
            if self._runner is None:
                await self._start()
        return self._address

    def serves(self, url: str) -> bool:
        return self._runner is not None and url.startswith(f"{self._address}/")

    async def answer(self, call: HookCall) -> HookAnswer:
        """As over HTTP, but within the process."""
        return await self._answer(call)

    async def close(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _start(self) -> None:
        runner = web.ServerRunner(web.Server(self._serve), handle_signals=False, shutdown_timeout=1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        self._runner, self._address = runner, f"http://{host}:{port}"

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        call = HookCall(
            method=request.method,
            path=request.path,
            query=dict(request.query),
            headers={name.lower(): value for name, value in request.headers.items()},
            body=await _read(request),
            address=request.remote or "",
        )
        response = await self._answer(call)
        return web.Response(status=response.status, body=response.body, headers=response.headers)


async def _read(request: web.BaseRequest) -> bytes:
    """The server's own limit is far below that of an uploaded file."""
    body = bytearray()
    async for chunk in request.content.iter_any():
        body += chunk
        if len(body) > MAX_BYTES:
            raise web.HTTPRequestEntityTooLarge(MAX_BYTES, len(body))
    return bytes(body)
