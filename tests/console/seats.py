"""An agent's seat at the inbox: a browser without scripts, and what its pages say."""

import re
from html import unescape
from typing import Any

import httpx

from tests.console.people import read_token
from tests.http.wire import eventually

_TAGS = re.compile(r"<[^>]*>")
_COUNT = re.compile(r'view=(\w+)[^>]*>[^<]*<span class="count">([0-9,]+)')


class Seat:
    """An agent's browser at the test environment's inbox."""

    def __init__(self, browser: httpx.AsyncClient) -> None:
        self.browser = browser

    async def open(self, path: str = "", **query: str) -> str:
        response = await self.browser.get(f"/test/inbox{path}", params=query)
        assert response.status_code == 200, response.text
        return response.text

    async def post(self, path: str, status: int = 303, **fields: Any) -> httpx.Response:
        data = {"token": await read_token(self.browser), **fields}
        response = await self.browser.post(f"/test/inbox/{path}", data=data)
        assert response.status_code == status, response.text
        if status == 303:  # back to the conversation, or to the inbox
            assert re.fullmatch(r"/console/test/inbox(/tkt_\w+)?(\?[\w=&]+)?(#\w+)?", response.headers["location"])
        return response

    async def count(self, **query: str) -> dict[str, str]:
        return dict(_COUNT.findall(await self.open(**query)))

    async def wait_for(self, path: str, words: str) -> str:
        async def look() -> str | None:
            page = await self.open(path)
            return page if words in page else None

        return await eventually(look)


def read(page: str) -> str:
    """The text of a page, in one line."""
    return unescape(" ".join(_TAGS.sub(" ", page).split()))


def list_shown(page: str) -> list[str]:
    """The tickets of a list."""
    return re.findall(r'<li id="(tkt_\w+)"', page)
