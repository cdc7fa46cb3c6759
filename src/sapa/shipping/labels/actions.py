"""Prints shipments: one at once, many through the worker."""

import re
from collections.abc import Sequence
from itertools import groupby
from zoneinfo import ZoneInfo

from msgspec import Struct

from sapa.access.actions import get_environment, read_clock
from sapa.context import AppContext
from sapa.db.pool import Connection, Database, Tx
from sapa.http.errors import FieldError, Invalid
from sapa.http.responses import Accepted, PdfFile
from sapa.orders import actions as orders
from sapa.shipping.areas.actions import with_area_names
from sapa.shipping.carriers.abilities import LabelCarrier
from sapa.shipping.carriers.interface import BadCredentials, CarrierAway
from sapa.shipping.carriers.registry import CARRIERS
from sapa.shipping.connections.actions import find_carrier
from sapa.shipping.connections.types import ConnectedCarrier
from sapa.shipping.errors import CarrierUnavailable, ShipmentNotFound
from sapa.shipping.labels import queries
from sapa.shipping.labels.content import Format, PrintRequest
from sapa.shipping.labels.parcel_content import build_parcel, get_number
from sapa.shipping.labels.printer import print_apart, print_here
from sapa.shipping.labels.types import (
    BATCH_ID,
    Document,
    LabelBatch,
    LabelBatchIn,
    LabelSource,
    PrintingFailed,
    PrintJob,
)
from sapa.shipping.shipments import actions as shipments
from sapa.shipping.types import NO_PARTY, StoredShipment, read_party
from sapa.values.company import Company

CARRIER_BATCH = 50
"""Labels to ask a carrier for at once."""
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]")


class CarrierLabels(Struct, frozen=True):
    """Shipments whose carrier prints them."""

    connected: ConnectedCarrier
    awbs: list[str]


async def print_one(
    context: AppContext, company: Company, id: str, document: Document, format: Format, source: LabelSource = "sapa"
) -> PdfFile:
    """A label or packing slip of one shipment. Raises NotBooked."""
    async with context.database.connection() as db:
        stored = await shipments.list_stored(db, company.id, [id])
        if not stored:
            raise ShipmentNotFound
        number = get_number(stored[0])
        by_carrier = await _find_carrier_labels(context, db, company, stored) if source == "carrier" else None
        request = await load_request(db, company, stored, document, format)
    if by_carrier is not None:
        content = await fetch_labels(by_carrier)
    else:
        content = await print_here(request)
    return PdfFile(f"{document.replace('_', '-')}-{_NOT_IN_NAMES.sub('-', number)}.pdf", content)


async def create_batch(tx: Tx, company: Company, body: LabelBatchIn) -> LabelBatch:
    """Queues a file for the worker. Raises NotBooked for a shipment that cannot be printed yet."""
    ids = list(dict.fromkeys(body.ids))
    stored = await shipments.list_stored(tx, company.id, ids)
    known = {shipment.id for shipment in stored}
    if missing := [id for id in ids if id not in known]:
        details = [FieldError(f"ids[{body.ids.index(id)}]", f"{id} is not a shipment") for id in missing[:10]]
        raise Invalid(f"{details[0].field}: {details[0].message}", details=details)
    for shipment in stored:
        get_number(shipment)
    return await queries.insert_batch(tx, company.id, BATCH_ID.new(), body, ids)


async def get_file(db: Connection, company: Company, id: str) -> PdfFile | Accepted[LabelBatch]:
    """The file, or the batch while it is being made. Raises PrintingFailed."""
    batch = await queries.get_batch(db, company.id, id)
    if batch.status == "failed":
        raise PrintingFailed(batch.error)
    if batch.status != "succeeded":
        return Accepted(batch)
    return PdfFile(f"{batch.document.replace('_', '-')}s-{id}.pdf", await queries.read_file(db, company.id, id))


async def get_batch(db: Connection, company_id: int, id: str) -> LabelBatch:
    return await queries.get_batch(db, company_id, id)


async def load_request(
    db: Connection, company: Company, stored: Sequence[StoredShipment], document: Document, format: Format
) -> PrintRequest:
    """Raises NotBooked."""
    shop = (await get_environment(db, company.id)).name
    now = (await read_clock(db, company.id)).now.astimezone(ZoneInfo(company.time_zone))
    parcels = []
    for shipment in stored:
        order = await orders.find(db, company, shipment.order_id) if shipment.order_id else None
        ends = [NO_PARTY if end is None else read_party(end) for end in (shipment.sender, shipment.delivery)]
        sender, receiver = [await with_area_names(db, company, shipment, end) for end in ends]
        parcels.append(build_parcel(company, shipment, sender, receiver, order))
    return PrintRequest(document=document, format=format, shop=shop, date=f"{now:%d-%m-%Y}", parcels=parcels)


async def print_batch(context: AppContext, company: Company, job: PrintJob) -> bytes:
    """Runs in the worker; nothing is held while a process of its own draws the pages."""
    if job.document == "label" and job.source == "carrier":
        return await _print_with_carriers(context, company, job)
    async with context.database.connection() as db:
        stored = await _list_shipments(db, company, job)
        request = await load_request(db, company, stored, job.document, job.format)
    return await print_apart(request)


async def _list_shipments(db: Connection, company: Company, job: PrintJob) -> list[StoredShipment]:
    """Drafts may have been discarded since. Raises ShipmentNotFound if none is left."""
    stored = await shipments.list_stored(db, company.id, job.shipment_ids)
    if not stored:
        raise ShipmentNotFound("All of the shipments were discarded.")
    return stored


async def _print_with_carriers(context: AppContext, company: Company, job: PrintJob) -> bytes:
    """In the order of the ids; what no carrier prints is printed here."""
    async with context.database.connection() as db:
        stored = await _list_shipments(db, company, job)
        runs: list[CarrierLabels | PrintRequest] = []
        for _, group in groupby(stored, key=lambda shipment: (shipment.provider, shipment.adapter)):
            run = list(group)
            for start in range(0, len(run), CARRIER_BATCH):
                part = run[start : start + CARRIER_BATCH]
                by_carrier = await _find_carrier_labels(context, db, company, part)
                runs.append(by_carrier or await load_request(db, company, part, job.document, job.format))
    files = [await fetch_labels(run) if isinstance(run, CarrierLabels) else await print_apart(run) for run in runs]
    return await print_apart(files)


def has_own_label(shipment: StoredShipment) -> bool:
    """Whether the carrier of the shipment has a label of its own."""
    return isinstance(CARRIERS.get(shipment.adapter or ""), LabelCarrier)


async def _find_carrier_labels(
    context: AppContext, db: Connection, company: Company, stored: Sequence[StoredShipment]
) -> CarrierLabels | None:
    """None if the carrier of these shipments has no labels of its own."""
    first = stored[0]
    connected = await find_carrier(context, db, company, first.provider) if has_own_label(first) else None
    if connected is None or connected.carrier.name != first.adapter:
        return None
    return CarrierLabels(connected, [get_number(shipment) for shipment in stored])


async def fetch_labels(labels: CarrierLabels) -> bytes:
    """Raises CarrierUnavailable."""
    carrier = labels.connected.carrier
    if not isinstance(carrier, LabelCarrier):
        raise TypeError(f"{carrier.name} has no labels")
    try:
        return await carrier.fetch_labels(labels.connected.connection, labels.awbs)
    except (CarrierAway, BadCredentials) as error:
        name = labels.connected.carrier.label
        raise CarrierUnavailable(f"{name} did not return its labels: {error}. Print them with source=sapa.") from None


async def purge_old(database: Database) -> None:
    """Deletes files whose time is over."""
    async with database.connection() as db:
        companies = await queries.list_companies_to_purge(db)
    for company_id in companies:
        async with database.transaction() as tx:
            await queries.purge(tx, company_id)
