"""Each base's OpenAPI document and its reference page."""

import asyncio
from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sapa.http.endpoints import Base, Routes
from sapa.http.openapi import build_document
from sapa.http.reference import render_reference

# The page's own policy forbids it to load anything.
PAGE_HEADERS = {"content-security-policy": "frame-ancestors 'none'", "x-content-type-options": "nosniff"}


class Documents:
    """The documents of one base. Building them takes half a second, so the first request does it, not the start."""

    def __init__(self, base: Base, address: str, domains: Sequence[Routes]) -> None:
        self._base = base
        self._address = address
        self._domains = domains
        self._lock = asyncio.Lock()
        self._built: tuple[bytes, str] | None = None

    def routes(self) -> list[Route]:
        return [Route(f"{self._base}/openapi.json", self.openapi), Route(f"{self._base}/docs", self.reference)]

    async def openapi(self, _: Request) -> Response:
        text, _page = await self._get()
        return Response(text, media_type="application/json")

    async def reference(self, _: Request) -> Response:
        _text, page = await self._get()
        return Response(page, headers=PAGE_HEADERS, media_type="text/html")

    async def _get(self) -> tuple[bytes, str]:
        async with self._lock:
            if self._built is None:
                # In a thread, so that other requests go on meanwhile.
                self._built = await asyncio.to_thread(self._build)
            return self._built

    def _build(self) -> tuple[bytes, str]:
        document = build_document(self._base, self._address, self._domains)
        return document.encode(), render_reference(document)
