"""The documentation at /docs: the static site that `docs/generator` builds and that a wheel contains."""

import asyncio
import base64
import os
import re
from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import PathLike, StaticFiles
from starlette.types import Scope

from sapa.http.endpoints import Base, Routes
from sapa.http.errors import NotFound
from sapa.http.reference_pages import ADDRESS, file_name_of, list_reference_pages

_PACKAGE = Path(__file__).parents[1]
FOLDERS = (_PACKAGE / "documentation", _PACKAGE.parents[1] / "build" / "documentation")
"""Where the site is in a wheel, and in a clone after `make site`."""
START = "index.html"
HEADERS = {"x-content-type-options": "nosniff", "referrer-policy": "same-origin", "cache-control": "no-cache"}
POLICY = (
    "default-src 'none'; script-src 'self'{scripts}; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)

_inline_scripts = re.compile(rb"<script>(.*?)</script>", re.DOTALL).findall


class NoDocumentation(NotFound):
    """The documentation was not built in this clone. Run `make site`. The reference is at /customer/v1/docs."""


class DocumentationFiles(StaticFiles):
    """The files of the site. Each page may run the scripts that it was built with, and loads nothing from elsewhere."""

    def __init__(self, folder: Path) -> None:
        super().__init__(directory=folder, check_dir=False)
        self._start = folder / START

    async def check_config(self) -> None:
        """Called by each request until it passes: the site may be built while the server runs."""
        if not await asyncio.to_thread(self._start.exists):
            raise NoDocumentation

    def get_path(self, scope: Scope) -> str:
        path = super().get_path(scope)
        return START if path == "." else path

    def file_response(
        self, full_path: PathLike, stat_result: os.stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        response = super().file_response(full_path, stat_result, scope, status_code)
        policy = build_policy(Path(full_path), stat_result.st_mtime_ns)
        response.headers.update({**HEADERS, "content-security-policy": policy})
        return response


@lru_cache(maxsize=256)
def build_policy(file: Path, _: int) -> str:
    """The policy of a file as it was last changed: its inline scripts by their hashes."""
    scripts = _inline_scripts(file.read_bytes()) if file.suffix == ".html" else []
    hashes = sorted({base64.b64encode(sha256(script).digest()).decode() for script in scripts})
    return POLICY.format(scripts="".join(f" 'sha256-{one}'" for one in hashes))


def documentation_routes(domains: Sequence[Routes], folder: Path | None = None) -> list[BaseRoute]:
    folder = folder or next((one for one in FOLDERS if one.exists()), FOLDERS[-1])
    references = {
        f"{base.name.lower()}/{file_name_of(page)}": f"{base}/{ADDRESS}/{page}".rstrip("/")
        for base in Base
        for page in list_reference_pages(base, domains)
    }

    async def show_start(_: Request) -> Response:
        return RedirectResponse("/docs/")

    async def show_reference(request: Request) -> Response:
        """A site without a server has the reference as files; here it is the server's own."""
        address = references.get(request.path_params["page"])
        if address is None:
            raise NotFound
        return RedirectResponse(address)

    return [
        Route("/docs", show_start),
        Route("/docs/reference/{page:path}", show_reference),
        Mount("/docs", DocumentationFiles(folder)),
    ]
