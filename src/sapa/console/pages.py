"""Everything the console serves."""

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from sapa.console import (
    agent_pages,
    carrier_pages,
    channel_pages,
    file_pages,
    forgotten_pages,
    inbox_pages,
    key_pages,
    loyalty_pages,
    people_pages,
    report_pages,
    request_pages,
    reward_pages,
    settings_pages,
    shipment_forms,
    shipment_pages,
    shop_pages,
    sign_in_pages,
    store_pages,
    template_pages,
    ticket_pages,
    webhook_pages,
)
from sapa.console.asking import Asker
from sapa.console.desk import desk
from sapa.console.live import Live
from sapa.console.rendering import HEADERS, HERE
from sapa.http.endpoints import Routes
from sapa.http.errors import NotFound
from sapa.kit import Kit

PARTS = [
    sign_in_pages,
    forgotten_pages,
    key_pages,
    webhook_pages,
    request_pages,
    people_pages,
    inbox_pages,
    ticket_pages,
    shop_pages,
    shipment_forms,
    shipment_pages,
    store_pages,
    loyalty_pages,
    reward_pages,
    file_pages,
    settings_pages,
    channel_pages,
    carrier_pages,
    template_pages,
    agent_pages,
    report_pages,
]
"""Their pages are declared when they are imported."""

ASSETS = {"console.css": "text/css", "console.js": "text/javascript"}
ASSET_HEADERS = {name: value for name, value in HEADERS.items() if name != "cache-control"} | {
    "cache-control": "public, max-age=3600"
}


def build_console(kit: Kit, domains: Sequence[Routes]) -> list[Route]:
    return [Route("/console/static/{name}", serve_asset), *desk.routes(kit, Asker(kit, domains), Live(kit))]


async def serve_asset(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in ASSETS:
        raise NotFound
    return FileResponse(HERE / "static" / name, headers=ASSET_HEADERS, media_type=ASSETS[name])
