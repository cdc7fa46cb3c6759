"""Printing: labels, packing slips and manifests of one shipment or of many."""

from typing import cast

from starlette.responses import Response

from sapa.access import actions as access
from sapa.console.page_request import PageRequest
from sapa.console.rendering import HEADERS
from sapa.console.roles import EVERYBODY
from sapa.console.routes import console, go_to
from sapa.console.shipment_pages import FILTERS, PRINTS, is_printable, list_shipments
from sapa.http.errors import Invalid, NotFound
from sapa.http.responses import PDF, Accepted, PdfFile, build_pdf_headers
from sapa.shipping.labels import actions as labels
from sapa.shipping.labels.content import Format
from sapa.shipping.labels.types import BATCH_ID, MAX_SHIPMENTS, Document, LabelSource
from sapa.shipping.types import SHIPMENT_ID
from sapa.values.enum_names import words_of

TITLES = {"label": "Labels", "packing_slip": "Packing slips", "manifest": "Pickup manifest"}
SINGLE = {"label": "label", "packing-slip": "packing_slip"}
PAGE = 100


@console.post("/{environment}/shipments/print", roles=EVERYBODY, shown_by=list_shipments)
async def print_shipments(page: PageRequest) -> Response:
    """Those that are ticked, or all that match the list's filters."""
    if page.form_value("print") not in dict(PRINTS):
        raise Invalid.field("print", "choose what to print")
    document, _, way = page.form_value("print").partition("-")
    ids = await _list_matching(page) if page.form_value("all") else page.form_values("id")
    if not ids:
        raise Invalid.field("id", "choose at least one shipment that is booked")
    body = {"ids": ids, "document": document, **({"source": way} if way == "carrier" else {"format": way})}
    batch = (await page.call("POST", "/shipping/labels", body=body))["data"]
    return go_to(page.path(f"/labels/{batch['id']}"))


async def _list_matching(page: PageRequest) -> list[str]:
    """Up to as many as a file may have; those without a number yet are left out."""
    params = page.request.query_params
    query = {name: params.get(name, "").strip() for name in ("search", *FILTERS)}
    ids: list[str] = []
    number, goes_on = 1, True
    while goes_on and len(ids) < MAX_SHIPMENTS:
        found = await page.call("GET", "/shipping/shipments", query | {"limit": str(PAGE), "page": str(number)})
        ids += [shipment["id"] for shipment in found["data"] if is_printable(shipment)]
        number, goes_on = number + 1, found["meta"]["hasNextPage"]
    return ids[:MAX_SHIPMENTS]


@console.get("/{environment}/labels/{id}", roles=EVERYBODY)
async def show_file(page: PageRequest) -> Response:
    id = page.request.path_params["id"]
    if not BATCH_ID.matches(id):
        raise NotFound
    async with page.context.database.connection() as db:
        batch = await labels.get_batch(db, page.company_id, id)
    return page.show("print.html", batch=batch, title=TITLES[batch.document])


@console.get("/{environment}/labels/{id}/file", roles=EVERYBODY)
async def download_file(page: PageRequest) -> Response:
    id = page.request.path_params["id"]
    if not BATCH_ID.matches(id):
        raise NotFound
    async with page.context.database.connection() as db:
        company = await access.get_company(db, page.company_id)
        file = await labels.get_file(db, company, id)
    if isinstance(file, Accepted):
        return go_to(page.path(f"/labels/{id}"))
    return _send(file)


@console.get("/{environment}/shipments/{id}/print/{document}", roles=EVERYBODY)
async def print_shipment(page: PageRequest) -> Response:
    id, name = page.request.path_params["id"], page.request.path_params["document"]
    params = page.request.query_params
    format, source = params.get("format", "a6"), params.get("source", "sapa")
    is_known = name in SINGLE and format in words_of(Format) and source in {"sapa", "carrier"}
    if not SHIPMENT_ID.matches(id) or not is_known:
        raise NotFound
    async with page.context.database.connection() as db:
        company = await access.get_company(db, page.company_id)
    document = cast(Document, SINGLE[name])
    file = await labels.print_one(page.context, company, id, document, cast(Format, format), cast(LabelSource, source))
    return _send(file)


def _send(file: PdfFile) -> Response:
    return Response(file.content, headers=HEADERS | build_pdf_headers(file), media_type=PDF)
