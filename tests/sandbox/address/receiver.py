"""A program's own server, which gets the callbacks that it subscribed to."""

import hmac
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from hashlib import sha256
from typing import Any

from aiohttp import web
from msgspec import Struct

from tests.http.wire import eventually

VERIFY_TOKEN = "open sesame"


class ReceivedPost(Struct, frozen=True):
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def changes(self) -> list[dict[str, Any]]:
        return [change for entry in json.loads(self.body)["entry"] for change in entry["changes"]]

    def is_signed(self, secret: str) -> bool:
        expected = "sha256=" + hmac.new(secret.encode(), self.body, sha256).hexdigest()
        return hmac.compare_digest(expected, self.headers.get("x-hub-signature-256", ""))


class CallbackReceiver:
    def __init__(self) -> None:
        self.address = ""
        self.posts: list[ReceivedPost] = []
        self.statuses: list[int] = []
        """Of the next responses; 200 once they are used up."""
        self.verified: list[str] = []

    async def serve(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.method == "GET":
            self.verified.append(request.path)
            is_valid = request.query.get("hub.verify_token") == VERIFY_TOKEN
            return web.Response(text=request.query["hub.challenge"]) if is_valid else web.Response(status=403)
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.posts.append(ReceivedPost(request.path, headers, await request.read()))
        return web.Response(status=self.statuses.pop(0) if self.statuses else 200)

    def list_values(self, kind: str, path: str = "/") -> list[dict[str, Any]]:
        """The messages or statuses of all posts to a path, in the order in which they came."""
        changes = [change for post in self.posts if post.path == path for change in post.changes]
        return [value for change in changes for value in change["value"].get(kind, [])]

    async def wait_for(self, is_there: Callable[[], bool]) -> None:
        async def look() -> bool | None:
            return True if is_there() else None

        await eventually(look)


@asynccontextmanager
async def open_receiver() -> AsyncIterator[CallbackReceiver]:
    receiver = CallbackReceiver()
    runner = web.ServerRunner(web.Server(receiver.serve), handle_signals=False, shutdown_timeout=1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    receiver.address = f"http://{host}:{port}"
    try:
        yield receiver
    finally:
        await runner.cleanup()
