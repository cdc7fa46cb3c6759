"""Each base's OpenAPI document and its reference pages."""

import asyncio
import gzip
import re
from collections.abc import Mapping, Sequence

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sapa.http.endpoints import Base, Routes
from sapa.http.openapi import Document, build_document
from sapa.http.reference import render_page
from sapa.http.reference_pages import ADDRESS, OVERVIEW, list_reference_pages

# A page's own policy forbids it to load anything.
PAGE_HEADERS = {"content-security-policy": "frame-ancestors 'none'", "x-content-type-options": "nosniff"}

_accepts_gzip = re.compile(r"\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))").search


class Documents:
    """The documents of one base. Each is built by the first request for it: that takes up to half a second.

    They are stored compressed, as nearly every client reads them: a page is a tenth of its size on the wire. A document
    that a client wanted plain is stored plain, too: unpacking it for each request would keep other callers waiting.
    """

    def __init__(self, base: Base, address: str, domains: Sequence[Routes]) -> None:
        self._base = base
        self._address = address
        self._domains = domains
        self._document = f"{base}/openapi.json"
        self._pages = {self._page_path(page): page for page in list_reference_pages(base, domains)}
        self._lock = asyncio.Lock()
        self._built: dict[str, bytes] = {}
        self._plain: dict[str, bytes] = {}

    @property
    def paths(self) -> list[str]:
        """All of its addresses; others are the API's."""
        return [self._document, *self._pages]

    def routes(self) -> list[Route]:
        pages = [self._page_path(OVERVIEW), self._page_path("{page}")]
        return [Route(self._document, self.openapi), *(Route(path, self.reference) for path in pages)]

    async def openapi(self, request: Request) -> Response:
        return await self._respond(request, "application/json", {})

    async def reference(self, request: Request) -> Response:
        return await self._respond(request, "text/html", PAGE_HEADERS)

    async def _respond(self, request: Request, media_type: str, headers: Mapping[str, str]) -> Response:
        compressed = await self._get(request.url.path)
        headers = {**headers, "vary": "accept-encoding"}
        if _accepts_gzip(request.headers.get("accept-encoding", "")):
            return Response(compressed, 200, {**headers, "content-encoding": "gzip"}, media_type)
        if request.url.path not in self._plain:
            self._plain[request.url.path] = gzip.decompress(compressed)
        return Response(self._plain[request.url.path], 200, headers, media_type)

    async def _get(self, path: str) -> bytes:
        async with self._lock:
            if path not in self._built:
                # In a thread, so that other requests go on meanwhile.
                await asyncio.to_thread(self._build, path)
            return self._built[path]

    def _build(self, path: str) -> None:
        if self._document not in self._built:
            document = build_document(self._base, self._address, self._domains)
            self._built[self._document] = gzip.compress(document.encode(), mtime=0)
        if path in self._pages:
            document = Document(msgspec.json.decode(gzip.decompress(self._built[self._document])))
            self._built[path] = gzip.compress(render_page(document, self._pages[path]).encode(), mtime=0)

    def _page_path(self, page: str) -> str:
        return f"{self._base}/{ADDRESS}/{page}" if page else f"{self._base}/{ADDRESS}"
