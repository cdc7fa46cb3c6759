"""How labels, packing slips and manifests are reached."""

from msgspec import Struct

from sapa.access.types import Scope
from sapa.http.endpoints import Base, Call, Routes, ToolTraits
from sapa.http.errors import NotFound, Unauthorized
from sapa.http.outbound_call import OutboundCall
from sapa.http.responses import Accepted, PdfFile
from sapa.shipping.errors import CarrierUnavailable, NotBooked, ShipmentNotFound
from sapa.shipping.labels import actions
from sapa.shipping.labels.types import (
    BatchId,
    LabelBatch,
    LabelBatchIn,
    LabelSource,
    PrintFormat,
    PrintingFailed,
)
from sapa.shipping.types import ShipmentId

routes = Routes("/shipping", base=Base.CUSTOMER, tag="Shipments", product="CRM", refusal=Unauthorized)


class SlipQuery(Struct, frozen=True, kw_only=True):
    """How to print it."""

    format: PrintFormat = "a6"


class LabelQuery(SlipQuery, frozen=True, kw_only=True):
    """How to print it."""

    source: LabelSource = "sapa"


@routes.get(
    "/shipments/{id}/label",
    scope=Scope.ORDERS_READ,
    raises=[ShipmentNotFound, NotBooked, CarrierUnavailable],
    tool=ToolTraits(hidden="It returns a PDF file, which a tool call cannot carry."),
)
async def get_shipment_label(call: OutboundCall, id: ShipmentId, query: LabelQuery) -> PdfFile:
    """Print the label of a shipment.

    A PDF with the courier, the service, the sorting code, both addresses, the weight, the contents and the awb as a
    Code 128 barcode. The barcode of a `custom` or `parcel_carrier` shipment without an awb is its id. A shipment that
    its carrier has no number for yet is refused.
    """
    return await actions.print_one(call.context, call.company, id, "label", query.format, query.source)


@routes.get(
    "/shipments/{id}/packing-slip",
    scope=Scope.ORDERS_READ,
    raises=[ShipmentNotFound, NotBooked],
    tool=ToolTraits(hidden="It returns a PDF file, which a tool call cannot carry."),
)
async def get_shipment_packing_slip(call: OutboundCall, id: ShipmentId, query: SlipQuery) -> PdfFile:
    """Print the packing slip of a shipment.

    A PDF with the lines of its order, without prices. Without an order it lists the contents of the package.
    """
    return await actions.print_one(call.context, call.company, id, "packing_slip", query.format)


@routes.post(
    "/labels",
    scope=Scope.ORDERS_WRITE,
    raises=[NotBooked],
    tool=ToolTraits(hidden="It makes a PDF file, which a tool call cannot carry."),
)
async def create_label_batch(call: Call, body: LabelBatchIn) -> LabelBatch:
    """Print up to 500 shipments as one file.

    The worker makes the PDF: labels, packing slips, or a pickup manifest with the parcels of each courier, their totals
    and two signatures. Get the file by its id.
    """
    return await actions.create_batch(call.db, call.company, body)


@routes.get(
    "/labels/{id}",
    scope=Scope.ORDERS_READ,
    raises=[NotFound, PrintingFailed],
    tool=ToolTraits(hidden="It returns a PDF file, which a tool call cannot carry."),
)
async def get_label_batch(call: Call, id: BatchId) -> PdfFile | Accepted[LabelBatch]:
    """Get a file of labels.

    The PDF, or a 202 with its status while the worker makes it (the SDKs return nothing then). Files are kept for
    seven days.
    """
    return await actions.get_file(call.db, call.company, id)
