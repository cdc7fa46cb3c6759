"""What all resources of a client share."""

from __future__ import annotations

from typing import TypeVar

from ._paging import AsyncPagedList, PagedList, Paging
from ._transport import AsyncTransport, Request, Transport, find_file, read_data, read_file, read_page
from ._values import File, Query

Item = TypeVar("Item")
Page = TypeVar("Page")
Result = TypeVar("Result")


class Resource:
    """The calls of one part of the API."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def _list(self, page: type[Page], paging: Paging, path: str, query: Query) -> PagedList[Item, Page]:
        def fetch(query: Query) -> Page:
            return read_page(self._transport.send(Request("GET", path, query)), page)

        return PagedList(fetch, query, paging)

    def _call(self, kind: type[Result], request: Request) -> Result:
        return read_data(self._transport.send(request), kind)

    def _run(self, request: Request) -> None:
        self._transport.send(request)

    def _download(self, request: Request) -> File:
        return read_file(self._transport.send(request))

    def _find_file(self, request: Request) -> File | None:
        return find_file(self._transport.send(request))


class AsyncResource:
    """The calls of one part of the API, in asyncio."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    def _list(self, page: type[Page], paging: Paging, path: str, query: Query) -> AsyncPagedList[Item, Page]:
        async def fetch(query: Query) -> Page:
            return read_page(await self._transport.send(Request("GET", path, query)), page)

        return AsyncPagedList(fetch, query, paging)

    async def _call(self, kind: type[Result], request: Request) -> Result:
        return read_data(await self._transport.send(request), kind)

    async def _run(self, request: Request) -> None:
        await self._transport.send(request)

    async def _download(self, request: Request) -> File:
        return read_file(await self._transport.send(request))

    async def _find_file(self, request: Request) -> File | None:
        return find_file(await self._transport.send(request))
