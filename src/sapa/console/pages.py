"""Everything the console serves."""

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from sapa.console import file_pages, key_pages, people_pages, shop_pages, sign_in_pages, webhook_pages
from sapa.console.asking import Asker
from sapa.console.desk import desk
from sapa.console.rendering import HEADERS, HERE
from sapa.http.endpoints import Routes
from sapa.http.errors import NotFound
from sapa.kit import Kit

PARTS = [sign_in_pages, key_pages, webhook_pages, people_pages, shop_pages, file_pages]
"""Their pages are declared when they are imported."""

ASSETS = {"console.css": "text/css", "console.js": "text/javascript"}
ASSET_HEADERS = {name: value for name, value in HEADERS.items() if name != "cache-control"} | {
    "cache-control": "public, max-age=3600"
}


def build_console(kit: Kit, domains: Sequence[Routes]) -> list[Route]:
    return [Route("/console/static/{name}", serve_asset), *desk.routes(kit, Asker(kit, domains))]


async def serve_asset(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in ASSETS:
        raise NotFound
    return FileResponse(HERE / "static" / name, headers=ASSET_HEADERS, media_type=ASSETS[name])
