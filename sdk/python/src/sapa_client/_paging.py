"""Lists that are read page by page."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from ._errors import SapaError
from ._values import Query

Item = TypeVar("Item")
Page = TypeVar("Page")

Paging: TypeAlias = Literal["page", "after", "before"]
"""How the next page is asked for: by its number, or by a cursor in one of two directions."""


class PagedList(Generic[Item, Page]):
    """A list of the API. Nothing is read until you iterate over it or take a page.

    Iterating reads page after page. A list by page number may repeat or miss an item if others are added or removed
    meanwhile; lists by cursor (timelines, loyalty histories, redemptions) do not.
    """

    def __init__(self, fetch: Callable[[Query], Page], query: Query, paging: Paging) -> None:
        self._fetch = fetch
        self._query = query
        self._paging = paging

    def page(self) -> Page:
        """The first page, or the one that the arguments ask for, with `data` and what is said about the list."""
        return self._fetch(self._query)

    def pages(self) -> Iterator[Page]:
        """Page after page, from the same one on."""
        query: Query | None = self._query
        while query is not None:
            page = self._fetch(query)
            yield page
            query = find_next_query(query, page, self._paging)

    def __iter__(self) -> Iterator[Item]:
        for page in self.pages():
            yield from _items_of(page)


class AsyncPagedList(Generic[Item, Page]):
    """A list of the API. Nothing is read until you iterate over it with `async for` or take a page.

    Iterating reads page after page. A list by page number may repeat or miss an item if others are added or removed
    meanwhile; lists by cursor (timelines, loyalty histories, redemptions) do not.
    """

    def __init__(self, fetch: Callable[[Query], Awaitable[Page]], query: Query, paging: Paging) -> None:
        self._fetch = fetch
        self._query = query
        self._paging = paging

    async def page(self) -> Page:
        """The first page, or the one that the arguments ask for, with `data` and what is said about the list."""
        return await self._fetch(self._query)

    async def pages(self) -> AsyncIterator[Page]:
        """Page after page, from the same one on."""
        query: Query | None = self._query
        while query is not None:
            page = await self._fetch(query)
            yield page
            query = find_next_query(query, page, self._paging)

    async def __aiter__(self) -> AsyncIterator[Item]:
        async for page in self.pages():
            for item in _items_of(page):
                yield item


def _items_of(page: Any) -> list[Any]:
    items: list[Any] = page.data
    return items


def find_next_query(query: Query, page: Any, paging: Paging) -> Query | None:
    """What asks for the next page, or None after the last."""
    if paging == "page":
        following = {**query, "page": page.meta.page + 1} if page.meta.has_next_page else None
    elif paging == "after":
        following = {**query, "before": None, "after": page.meta.end_cursor} if page.meta.has_next_page else None
    else:
        following = {**query, "before": page.pagination.next_before} if page.pagination.has_more else None
    if following is not None and following[paging] in {None, query.get(paging)}:
        raise SapaError("The server repeats a page of this list instead of sending the next one.")
    return following
