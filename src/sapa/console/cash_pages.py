"""Cash on delivery: carriers' statements, and the amounts that are not as expected."""

from datetime import datetime
from zoneinfo import ZoneInfo

from starlette.datastructures import UploadFile
from starlette.responses import Response

from sapa.console.listing import read_list
from sapa.console.page_request import PageRequest
from sapa.console.roles import DEVELOPERS
from sapa.console.routes import console, go_to
from sapa.http.errors import Invalid, PayloadTooLarge
from sapa.shipping.providers import PROVIDERS
from sapa.shipping.settlements.types import MEANINGS

MEDIA_TYPES = {"csv": "text/csv", "ndjson": "application/x-ndjson"}
MAX_BYTES = 2 * 1_048_576
STATES = ("open", "resolved")
FIELDS = ("provider", "reference", "remittedOn")


@console.get("/{environment}/settlements", roles=DEVELOPERS)
async def list_settlements(page: PageRequest) -> Response:
    listing = await read_list(page, "/shipping/settlements", "provider")
    collected = await page.call("GET", "/shipping/shipments", {"codState": "collected", "limit": "1"})
    differences = await page.call("GET", "/shipping/cod-differences", {"state": "open", "limit": "1"})
    providers = [(name, provider.label) for name, provider in PROVIDERS.items() if provider.collects_cash]
    return page.show(
        "settlements.html",
        providers=providers,
        collected=collected["meta"]["total"],
        differing=differences["meta"]["total"],
        given={name: page.form_value(name) for name in FIELDS},
        **listing,
    )


@console.post(
    "/{environment}/settlements", roles=DEVELOPERS, shown_by=list_settlements, has_file=True, says="Statement uploaded"
)
async def upload_settlement(page: PageRequest) -> Response:
    file = page.form.get("file")
    if not isinstance(file, UploadFile) or not file.filename:
        raise Invalid.field("file", "choose a file")
    ending = file.filename.rpartition(".")[2].lower()
    if ending not in MEDIA_TYPES:
        raise Invalid.field("file", "must be a .csv or .ndjson file")
    if (file.size or 0) > MAX_BYTES:
        raise PayloadTooLarge(f"The file is larger than {MAX_BYTES // 1_048_576} MiB.")
    query = {
        "provider": page.form_value("provider"),
        "reference": page.form_value("reference") or file.filename[:100],
        "remittedAt": await _read_day(page),
    }
    settlement = await page.call(
        "POST", "/shipping/settlements/file", query, upload=(MEDIA_TYPES[ending], await file.read())
    )
    return go_to(page.path(f"/settlements/{settlement['data']['id']}"))


async def _read_day(page: PageRequest) -> str:
    """The start of the day in the company's time zone."""
    try:
        day = datetime.strptime(page.form_value("remittedOn"), "%Y-%m-%d")
    except ValueError:
        raise Invalid.field("remittedOn", "choose the day on which it was paid out") from None
    zone = ZoneInfo((await page.call("GET", "/company"))["data"]["timeZone"])
    return day.replace(tzinfo=zone).isoformat()


@console.get("/{environment}/settlements/{id}", roles=DEVELOPERS)
async def show_settlement(page: PageRequest) -> Response:
    id = page.request.path_params["id"]
    settlement = (await page.call("GET", f"/shipping/settlements/{id}"))["data"]
    listing = await read_list(page, f"/shipping/settlements/{id}/lines")
    differences = await page.call("GET", "/shipping/cod-differences", {"settlementId": id, "limit": "100"})
    return page.show(
        "settlement.html",
        settlement=settlement,
        differences=differences["data"],
        label=PROVIDERS[settlement["provider"]].label,
        **listing,
    )


@console.get("/{environment}/cod-differences", roles=DEVELOPERS)
async def list_differences(page: PageRequest) -> Response:
    listing = await read_list(page, "/shipping/cod-differences", "state", "kind", "shipmentId")
    return page.show("cod_differences.html", kinds=list(MEANINGS), states=STATES, **listing)


@console.post("/{environment}/cod-differences/{id}/resolve", roles=DEVELOPERS, shown_by=list_differences)
async def resolve(page: PageRequest) -> Response:
    id = page.request.path_params["id"]
    body = {"note": page.form_value("note") or None}
    await page.call("POST", f"/shipping/cod-differences/{id}/resolve", body=body)
    return go_to(page.path("/cod-differences?state=open"))
