"""`sapa settlement`: reconcile carriers' statements of cash on delivery."""

from datetime import datetime
from pathlib import Path
from typing import Annotated, Any
from zoneinfo import ZoneInfo

import msgspec
import typer

from sapa.access import actions as access
from sapa.cli.connect import AsJson, CompanyId, show, transact
from sapa.db.pool import Tx
from sapa.http.responses import Created
from sapa.shipping.providers import PROVIDERS
from sapa.shipping.settlements import actions
from sapa.shipping.settlements.statement_files import parse_statement
from sapa.shipping.settlements.types import CodDifference, Settlement, SettlementIn
from sapa.values.json import encode

app = typer.Typer(no_args_is_help=True, help="Carriers' statements of cash on delivery.")

COLUMNS = ["id", "reference", "parcels", "differing", "expectedAmount", "remittedAmount", "difference"]
DIFFERENCE_COLUMNS = ["parcel", "kind", "expected", "actual", "difference"]
MEDIA_TYPES = {".csv": "text/csv", ".ndjson": "application/x-ndjson"}


@app.command("import")
def import_(
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="A .csv of the carrier, or .ndjson.")],
    company: CompanyId,
    provider: Annotated[str, typer.Option(help="Whose parcels it lists, such as aggregator_carrier.")],
    remitted_at: Annotated[datetime, typer.Option(help="When it was paid out, in the company's time zone.")],
    reference: Annotated[
        str | None, typer.Option(help="The statement's own number; by default the file's name.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Reconcile a statement and list the differences. Importing the same statement again changes nothing."""
    if provider not in PROVIDERS:
        raise typer.BadParameter(f"use one of {', '.join(PROVIDERS)}", param_hint="--provider")
    if file.suffix.lower() not in MEDIA_TYPES:
        raise typer.BadParameter("must be a .csv or .ndjson file", param_hint="FILE")
    lines = parse_statement(MEDIA_TYPES[file.suffix.lower()], file.read_bytes())

    async def settle(tx: Tx) -> tuple[Settlement, list[CodDifference]]:
        owner = await access.get_company(tx, company)
        body = SettlementIn(
            provider=provider,
            reference=reference or file.name[:100],
            remitted_at=remitted_at.replace(tzinfo=ZoneInfo(owner.time_zone)),
            lines=lines,
        )
        settled = await actions.settle(tx, owner, body)
        settlement = settled.data if isinstance(settled, Created) else settled
        return settlement, await actions.list_differences_of(tx, owner, settlement.id)

    settlement, differences = transact(settle)
    if json:
        shown: Any = _plain(settlement) | {"differences": [_plain(one) for one in differences]}
        show(shown, True, "Settlement", COLUMNS)
        return
    show(_plain(settlement), False, "Settlement", COLUMNS)
    if differences:
        show([_plain(one) for one in differences], False, "Differences", DIFFERENCE_COLUMNS)


def _plain(resource: Settlement | CodDifference) -> Any:
    """As the API returns it."""
    return msgspec.json.decode(encode(resource))
