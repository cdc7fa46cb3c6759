"""Shipments: the list, one with its tracking, and its actions."""

from decimal import Decimal
from typing import Any, cast

import msgspec
import segno
from starlette.responses import Response

from sapa.access import actions as access
from sapa.console.listing import NamedFilters, build_tabs, count_cells, read_cells, read_list, read_period
from sapa.console.notification_names import STATUS_NAMES, STEP_NAMES
from sapa.console.page_request import PageRequest
from sapa.console.roles import DEVELOPERS, EVERYBODY
from sapa.console.routes import console, go_to
from sapa.db.pool import Connection
from sapa.http.errors import Invalid, NotFound
from sapa.shipping import actions as shipping
from sapa.shipping.areas.actions import with_area_names
from sapa.shipping.bookings.cancel import is_cancellable
from sapa.shipping.labels.actions import has_own_label
from sapa.shipping.labels.types import MAX_SHIPMENTS
from sapa.shipping.providers import PROVIDERS
from sapa.shipping.shipments import actions as shipments
from sapa.shipping.states import BOOKABLE, GROUP_OF, NOT_BOOKED_YET, STATUSES, list_next
from sapa.shipping.tracking import actions as tracking
from sapa.shipping.types import SHIPMENT_ID, StoredShipment, read_party
from sapa.shipping.weights import build_volumetric_kg
from sapa.values.company import Company
from sapa.values.json import encode

PRINTS = (
    ("label-a6", "Labels, A6"),
    ("label-roll80", "Labels, 80 mm roll"),
    ("label-carrier", "Labels of the carrier, where it has them"),
    ("packing_slip-a6", "Packing slips, A6"),
    ("packing_slip-roll80", "Packing slips, 80 mm roll"),
    ("manifest-a6", "Pickup manifest, A4"),
)
"""What the list prints, each with its label: the document and its format, or whose it is."""
TABS: NamedFilters = (
    ("All", {}),
    ("To book", {"statusGroup": "pending"}),
    ("Booked", {"statusGroup": "accepted"}),
    ("On the way", {"statusGroup": "in_delivery"}),
    ("Delivered", {"statusGroup": "delivered"}),
)
FILTERS = (
    "status",
    "statusGroup",
    "provider",
    "needsAction",
    "orderId",
    "awb",
    "storeLocationId",
    "codState",
    "returnOf",
    "createdFrom",
    "createdTo",
)


@console.get("/{environment}/shipments", roles=EVERYBODY)
async def list_shipments(page: PageRequest) -> Response:
    listing = await read_list(page, "/shipping/shipments", *FILTERS)
    cells = await read_cells(page, "shipments", "provider", "status")
    groups = [({"statusGroup": GROUP_OF[fields["status"]]}, total) for fields, total in cells]
    counted = [(label, wanted, count_cells(groups, wanted)) for label, wanted in TABS]
    problems = page.counts["/shipments"].number if "/shipments" in page.counts else 0
    providers = [(name, provider.label) for name, provider in PROVIDERS.items()]
    return page.show(
        "shipments.html",
        tabs=build_tabs(listing["query"], [*counted, ("Problems", {"needsAction": "true"}, problems)]),
        statuses=STATUSES,
        providers=providers,
        prints=PRINTS,
        max_printed=MAX_SHIPMENTS,
        period=read_period(page, listing["query"]),
        **listing,
    )


@console.get("/{environment}/shipments/{id}", roles=EVERYBODY)
async def show_shipment(page: PageRequest) -> Response:
    """The stored tracking; `track` in the query polls the carrier first, `payment` asks about the payment."""
    id = page.request.path_params["id"]
    if page.request.query_params.get("payment") and not page.form:
        await page.call("GET", f"/shipping/shipments/{id}/payment")
    way = await _read_way(page, id)
    shipment = (await page.call("GET", f"/shipping/shipments/{id}"))["data"]
    status, provider = shipment["shippingStatus"], PROVIDERS[shipment["provider"]]
    async with page.context.database.connection() as db:
        company = await access.get_company(db, page.company_id)
        stored = await shipments.get_stored(db, page.company_id, id)
        ends = {name: await _read_end(db, company, stored, name) for name in ("sender", "delivery")}
    order = await _find_order(page, shipment["orderId"])
    return page.show(
        "shipment.html",
        shipment=shipment | ends,
        way=way,
        order_number=order["orderNumber"] if order else None,
        refunds=order["refunds"] if order else [],
        refund_currency=order["currency"] if order else None,
        can_book=status in BOOKABLE,
        can_cancel=is_cancellable(stored),
        by_hand=list_next(status, "manual") if provider.is_local else ["returned"] if status == "returning" else [],
        volumetric=find_volumetric(shipment),
        can_print=is_printable(shipment),
        has_own_label=has_own_label(stored),
        page_address=page.context.settings.server.address + (shipment["trackingPage"] or ""),
        notifications=(await page.call("GET", f"/shipping/shipments/{id}/notifications"))["data"],
        step_names=STEP_NAMES,
        status_names=STATUS_NAMES,
        can_advance=company.is_test and not provider.is_local and GROUP_OF[status] in {"accepted", "in_delivery"},
        qr=_draw_code(shipment["paymentQr"]),
        given={name: page.form_value(name) for name in ("reason", "orderNo", "status", "refundId")},
    )


async def _read_end(db: Connection, company: Company, stored: StoredShipment, field: str) -> dict[str, Any] | None:
    """A party with the names of its areas, as far as they are known."""
    end = stored.sender if field == "sender" else stored.delivery
    if end is None:
        return None
    party = await with_area_names(db, company, stored, read_party(end))
    return cast(dict[str, Any], msgspec.to_builtins(party))


def _draw_code(content: str | None) -> str | None:
    """A QR code as the address of a picture. Content that is too long for one is left out."""
    try:
        return None if content is None else segno.make(content, micro=False).svg_data_uri(scale=4)
    except segno.DataOverflowError:
        return None


async def _read_way(page: PageRequest, id: str) -> Any:
    if page.request.query_params.get("track") and not page.form:
        return (await page.call("GET", f"/shipping/shipments/{id}/tracking"))["data"]
    if not SHIPMENT_ID.matches(id):
        raise NotFound
    async with page.context.database.connection() as db:
        tracked = await tracking.get_last_known(db, page.company_id, id)
    return msgspec.json.decode(encode(tracked))


async def _find_order(page: PageRequest, id: str | None) -> dict[str, Any] | None:
    """None if the order was deleted."""
    try:
        found: dict[str, Any] | None = (await page.call("GET", f"/orders/{id}"))["data"] if id else None
    except NotFound:
        return None
    return found


def is_printable(shipment: dict[str, Any]) -> bool:
    """Whether it has a number for the barcode."""
    traits = PROVIDERS[shipment["provider"]]
    number = shipment["awb"] or (shipment["orderNo"] if traits.pace == "ride" else None)
    is_booked = bool(number) and shipment["shippingStatus"] not in BOOKABLE | NOT_BOOKED_YET
    return traits.is_local or is_booked


def find_volumetric(shipment: dict[str, Any]) -> Decimal | None:
    package = shipment["package"] or {}
    length, width, height = (
        Decimal(str(package[name])) if package.get(name) else None for name in ("length", "width", "height")
    )
    return build_volumetric_kg(length, width, height)


@console.post("/{environment}/shipments/{id}/book", roles=EVERYBODY, shown_by=show_shipment, says="Courier booked")
async def book(page: PageRequest) -> Response:
    """People can book every shipment, also those that the API does not book."""
    id = page.request.path_params["id"]
    shipment = (await page.call("GET", f"/shipping/shipments/{id}"))["data"]
    if PROVIDERS[shipment["provider"]].is_local:
        await page.call("PATCH", f"/shipping/shipments/{id}", body={"triggerBooking": True})
    else:
        async with page.context.database.connection() as db:
            company = await access.get_company(db, page.company_id)
        await shipping.book(page.context, company, id)
    return go_to(page.path(f"/shipments/{id}"))


@console.post(
    "/{environment}/shipments/{id}/cancel", roles=EVERYBODY, shown_by=show_shipment, says="Shipment cancelled"
)
async def cancel(page: PageRequest) -> Response:
    id = page.request.path_params["id"]
    await page.call("POST", f"/shipping/shipments/{id}/cancel", body={"reason": page.form_value("reason") or None})
    return go_to(page.path(f"/shipments/{id}"))


@console.post("/{environment}/shipments/{id}/return", roles=EVERYBODY, shown_by=show_shipment, says="Return created")
async def make_return(page: PageRequest) -> Response:
    id = page.request.path_params["id"]
    body = {"refundId": page.form_value("refundId") or None}
    shipment = await page.call("POST", f"/shipping/shipments/{id}/return", body=body)
    return go_to(page.path(f"/shipments/{shipment['data']['id']}"))


@console.post("/{environment}/shipments/{id}/refund", roles=EVERYBODY, shown_by=show_shipment, says="Saved")
async def link_refund(page: PageRequest) -> Response:
    """Of a return: the refund of its order."""
    id = page.request.path_params["id"]
    await page.call("PATCH", f"/shipping/shipments/{id}", body={"refundId": page.form_value("refundId") or None})
    return go_to(page.path(f"/shipments/{id}"))


@console.post("/{environment}/shipments/{id}/status", roles=EVERYBODY, shown_by=show_shipment, says="Status changed")
async def move_by_hand(page: PageRequest) -> Response:
    """For shipments without a carrier."""
    id = page.request.path_params["id"]
    await page.call("PATCH", f"/shipping/shipments/{id}", body={"shippingStatus": page.form_value("status")})
    return go_to(page.path(f"/shipments/{id}"))


@console.post("/{environment}/shipments/{id}/looked", roles=EVERYBODY, shown_by=show_shipment, says="Marked as seen")
async def acknowledge(page: PageRequest) -> Response:
    """Acknowledges the problem."""
    id = page.request.path_params["id"]
    await page.call("PATCH", f"/shipping/shipments/{id}", body={"needsAction": False})
    return go_to(page.path(f"/shipments/{id}"))


@console.post("/{environment}/shipments/{id}/resolve", roles=EVERYBODY, shown_by=show_shipment)
async def resolve(page: PageRequest) -> Response:
    """Applies what a person learned from the carrier about an unknown booking."""
    id = page.request.path_params["id"]
    found = {"outcome": page.form_value("outcome"), "orderNo": page.form_value("orderNo") or None}
    try:
        await page.call("PATCH", f"/shipping/shipments/{id}", body={"resolveBooking": found})
    except Invalid as error:
        raise Invalid.field("orderNo", error.details[0].message if error.details else error.message) from None
    return go_to(page.path(f"/shipments/{id}"))


@console.post("/{environment}/shipments/{id}/advance", roles=EVERYBODY, shown_by=show_shipment)
async def advance(page: PageRequest) -> Response:
    """Advances the simulated carrier of a test environment."""
    id = page.request.path_params["id"]
    await page.call("POST", f"/shipping/shipments/{id}/sandbox/advance", body={})
    return go_to(page.path(f"/shipments/{id}"))


@console.post("/{environment}/shipments/{id}/discard", roles=DEVELOPERS, shown_by=show_shipment, says="Draft deleted")
async def discard(page: PageRequest) -> Response:
    await page.call("DELETE", f"/shipping/shipments/{page.request.path_params['id']}")
    return go_to(page.path("/shipments"))
