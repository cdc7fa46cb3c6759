"""A company's own server, which gets webhooks: real HTTP on this machine, answering as the test says."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web
from msgspec import Struct

from tests.http.wire import eventually

PATIENCE = 120


class Arrival(Struct, frozen=True):
    """One delivery as it came."""

    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str:
        (value,) = [value for given, value in self.headers if given.lower() == name.lower()]
        return value

    @property
    def event_id(self) -> str:
        return self.header("X-Service-Webhook-Id")

    @property
    def kind(self) -> str:
        return self.header("X-Service-Webhook-Event")


class Shop:
    def __init__(self) -> None:
        self.url = ""
        self.arrivals: list[Arrival] = []
        self.answer: Callable[[Arrival], web.Response] = lambda _: web.Response(text="thanks")

    async def receive(self, request: web.Request) -> web.Response:
        arrival = Arrival(list(request.headers.items()), await request.read())
        self.arrivals.append(arrival)
        return self.answer(arrival)

    async def gets(self, count: int) -> list[Arrival]:
        """Waits until so many deliveries came."""
        await eventually(self._has(count), PATIENCE)
        return self.arrivals

    def _has(self, count: int) -> Callable[[], Awaitable[bool | None]]:
        async def look() -> bool | None:
            return len(self.arrivals) >= count or None

        return look


@asynccontextmanager
async def open_shop(port: int = 0, host: str = "127.0.0.1") -> AsyncIterator[Shop]:
    shop = Shop()
    app = web.Application()
    app.router.add_post("/{anything:.*}", shop.receive)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
        shop.url = f"http://{host}:{runner.addresses[0][1]}/hook"
        yield shop
    finally:
        await runner.cleanup()
