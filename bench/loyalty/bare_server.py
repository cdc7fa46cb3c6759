"""The bare statement behind HTTP: the least Python that takes an adjustment and stores it. Nothing is checked."""

from typing import Any

import msgspec

from bench.ceiling.app import Ceiling, Receive, Send, answer
from bench.loyalty.bare import ADJUST


class BareAdjustments(Ceiling):
    """`POST /{wallet}`; everything else is answered at once."""

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self._live(receive, send)
        if scope["method"] != "POST":
            return await answer(send, 200, b"{}")
        body = msgspec.json.decode((await receive())["body"])
        points = body["points"] if body["direction"] == "add" else -body["points"]
        async with self.pool.connection() as db:
            await db.execute(ADJUST, int(scope["path"][1:]), points)
        return await answer(send, 200, b'{"data":{}}')


app = BareAdjustments()
