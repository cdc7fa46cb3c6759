"""All routes of the console."""

from collections.abc import Awaitable, Callable, Sequence

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from sapa.console import (
    agent_pages,
    alert_pages,
    breakdown_pages,
    bulk_pages,
    call_pages,
    carrier_pages,
    cash_pages,
    channel_pages,
    consent_pages,
    customer_forms,
    customer_pages,
    draft_pages,
    export_pages,
    filter_pages,
    home_pages,
    import_pages,
    inbox_pages,
    key_pages,
    loyalty_pages,
    order_forms,
    order_pages,
    password_reset_pages,
    people_pages,
    print_pages,
    product_forms,
    profile_pages,
    report_pages,
    report_row_pages,
    request_pages,
    reward_pages,
    scorecard_pages,
    search_pages,
    settings_pages,
    shipment_forms,
    shipment_pages,
    shop_pages,
    sign_in_pages,
    start_pages,
    store_pages,
    suggestion_pages,
    support_setting_pages,
    team_pages,
    template_pages,
    ticket_change_pages,
    ticket_pages,
    tracking_settings_pages,
    webhook_pages,
)
from sapa.console.execute import InProcessApi
from sapa.console.live import Live
from sapa.console.rendering import HERE, protect, render
from sapa.console.routes import console
from sapa.console.translations import LANGUAGES
from sapa.context import AppContext
from sapa.http.endpoints import Routes

PARTS = [
    home_pages,
    sign_in_pages,
    search_pages,
    password_reset_pages,
    key_pages,
    webhook_pages,
    request_pages,
    call_pages,
    people_pages,
    team_pages,
    profile_pages,
    alert_pages,
    inbox_pages,
    ticket_pages,
    ticket_change_pages,
    start_pages,
    support_setting_pages,
    shop_pages,
    customer_forms,
    customer_pages,
    product_forms,
    bulk_pages,
    suggestion_pages,
    filter_pages,
    consent_pages,
    order_pages,
    draft_pages,
    order_forms,
    shipment_forms,
    shipment_pages,
    print_pages,
    tracking_settings_pages,
    cash_pages,
    scorecard_pages,
    store_pages,
    loyalty_pages,
    reward_pages,
    export_pages,
    import_pages,
    settings_pages,
    channel_pages,
    carrier_pages,
    template_pages,
    agent_pages,
    report_pages,
    report_row_pages,
    breakdown_pages,
]
"""Importing them declares their pages."""

ASSETS = {
    "console.css": "text/css",
    "console.js": "text/javascript",
    "composer.js": "text/javascript",
    "drafts.js": "text/javascript",
    "inbox.css": "text/css",
    "inbox.js": "text/javascript",
    "shop.js": "text/javascript",
    "alerts.js": "text/javascript",
    "icons.svg": "image/svg+xml",
    "kawung.svg": "image/svg+xml",
    "manifest.json": "application/manifest+json",
    "icon-192.png": "image/png",
    "icon-512.png": "image/png",
}
ASSET_HEADERS = {"cache-control": "public, max-age=3600"}
WORKER_HEADERS = {"cache-control": "no-cache", "service-worker-allowed": "/console"}


def build_console(context: AppContext, domains: Sequence[Routes]) -> list[Route]:
    assets = Route("/console/static/{name}", _serve_assets(context))
    return [assets, *_build_worker(context), *console.routes(context, InProcessApi(context, domains), Live(context))]


def _build_worker(context: AppContext) -> list[Route]:
    """What serves pages when the server cannot be reached: the service worker, and its page, which has nothing of
    anybody."""
    is_secure = context.settings.server.address.startswith("https://")

    async def serve_worker(_: Request) -> Response:
        script = FileResponse(HERE / "static" / "worker.js", headers=WORKER_HEADERS, media_type="text/javascript")
        return protect(script, is_secure)

    async def show_offline(request: Request) -> Response:
        language = request.path_params["language"]
        if language not in LANGUAGES:
            return protect(Response(status_code=404), is_secure)
        return protect(render("offline.html", 200, language, {}), is_secure)

    return [Route("/console/worker.js", serve_worker), Route("/console/offline/{language}", show_offline)]


def _serve_assets(context: AppContext) -> Callable[[Request], Awaitable[Response]]:
    async def serve(request: Request) -> Response:
        name = request.path_params["name"]
        response = Response(status_code=404)
        if name in ASSETS:
            response = FileResponse(HERE / "static" / name, headers=ASSET_HEADERS, media_type=ASSETS[name])
        return protect(response, context.settings.server.address.startswith("https://"))

    return serve
