"""Scorecards of carriers, services and areas; each figure leads to its parcels."""

from datetime import datetime, timedelta
from typing import Any

from starlette.responses import Response

from sapa.console.listing import read_list
from sapa.console.page_request import PageRequest
from sapa.console.roles import EVERYBODY
from sapa.console.routes import console
from sapa.http.errors import Invalid
from sapa.shipping.carriers.registry import CARRIERS
from sapa.shipping.providers import PROVIDERS
from sapa.shipping.scorecards.types import FIGURES

GROUPINGS = ("carrier", "service", "area", "all")
PERIODS = ("7", "30", "90", "365")
SHOWN = ("groupBy", "createdFrom", "createdTo")
COUNTED = {
    "parcels": "parcels", "delivered": "delivered", "late": "late", "failedAttempts": "failed_attempts",
    "returned": "returned", "lost": "lost", "quotedDays": "timed", "actualDays": "timed", "slowestDays": "timed",
    "onTimeRate": "timed",
}  # fmt: skip
"""The figures of a scorecard, each with its parcels' name in the list."""
CARRIER_LABELS = {name: one.label for name, one in PROVIDERS.items()} | {
    name: one.label for name, one in CARRIERS.items()
}


@console.get("/{environment}/scorecards", roles=EVERYBODY)
async def show_scorecards(page: PageRequest) -> Response:
    params = page.request.query_params
    grouping = params.get("groupBy", "service")
    report = await _read_report(page, {"groupBy": grouping, **_build_period(params.get("days", ""))})
    return page.show(
        "scorecards.html",
        report=report,
        counted=COUNTED,
        carriers=CARRIER_LABELS,
        groupings=GROUPINGS,
        grouping=grouping,
        periods=PERIODS,
        days=params.get("days", "90"),
    )


async def _read_report(page: PageRequest, query: dict[str, str]) -> dict[str, Any]:
    try:
        found = await page.call("GET", "/shipping/scorecards", query)
    except Invalid as error:
        page.error = error
        found = await page.call("GET", "/shipping/scorecards")
    report: dict[str, Any] = found["data"]
    return report


def _build_period(days: str) -> dict[str, str]:
    """Counted back from now; the API's own period unless one is chosen."""
    if days not in PERIODS:
        return {}
    now = datetime.now().astimezone()
    return {"createdFrom": (now - timedelta(days=int(days))).isoformat(), "createdTo": now.isoformat()}


@console.get("/{environment}/scorecards/parcels", roles=EVERYBODY)
async def list_parcels(page: PageRequest) -> Response:
    filters = ("figure", "carrier", "service", "area", "createdFrom", "createdTo")
    listing = await read_list(page, "/shipping/scorecards/parcels", *filters)
    return page.show("scorecard_parcels.html", figures=list(FIGURES), **listing)
