"""`sapa shipment`: book and list shipments."""

import asyncio
from typing import Annotated, Any

import msgspec
import typer

from sapa.access import actions as access
from sapa.cli.connect import AsJson, CompanyId, show, transact
from sapa.cli.outside import open_context
from sapa.db.pool import Tx
from sapa.shipping.actions import book as book_shipment
from sapa.shipping.errors import ShipmentNotFound
from sapa.shipping.shipments import actions as shipments
from sapa.shipping.states import STATUSES
from sapa.shipping.types import SHIPMENT_ID, Shipment
from sapa.values.json import encode

app = typer.Typer(no_args_is_help=True, help="Shipments.")

COLUMNS = ["id", "provider", "shippingStatus", "orderNo", "awb"]
MOST = 100

Id = Annotated[str, typer.Argument(help="The shipment's id, such as shp_01j….")]


@app.command()
def book(id: Id, company: CompanyId, json: AsJson = False) -> None:
    """Book a shipment with its carrier, such as one of instant_carrier. Booking a booked shipment changes nothing."""
    shipment = asyncio.run(_book(company, id))
    show(_plain(shipment), json, "Shipment", COLUMNS)
    if shipment.shipping_status in {"booking", "booking_unknown"}:
        typer.echo("The carrier did not respond. The outcome is looked up automatically.", err=True)
    if shipment.shipping_status == "booking_failed":
        typer.echo(f"The carrier refused: {shipment.problem}", err=True)
        raise typer.Exit(1)


@app.command("list")
def list_(
    company: CompanyId,
    status: Annotated[
        str | None, typer.Option(help="Only shipments with this shippingStatus, such as awaiting.")
    ] = None,
    json: AsJson = False,
) -> None:
    """List the newest 100 shipments."""
    if status is not None and status not in STATUSES:
        raise typer.BadParameter(f"use one of {', '.join(STATUSES)}", param_hint="--status")

    async def read(tx: Tx) -> list[Shipment]:
        await access.get_company(tx, company)
        return await shipments.list_newest(tx, company, status, MOST)

    show([_plain(shipment) for shipment in transact(read)], json, "Shipments", COLUMNS)


def _plain(shipment: Shipment) -> Any:
    """As the API returns it."""
    return msgspec.json.decode(encode(shipment))


async def _book(company_id: int, id: str) -> Shipment:
    if not SHIPMENT_ID.matches(id):
        raise ShipmentNotFound
    async with open_context() as context:
        async with context.database.connection() as db:
            company = await access.get_company(db, company_id)
        return (await book_shipment(context, company, id)).shipment
