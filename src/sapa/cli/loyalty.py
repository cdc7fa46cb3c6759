"""`sapa loyalty`: the points ledger."""

import typer

from sapa.access import actions as access
from sapa.cli.connect import AsJson, CompanyId, show, transact
from sapa.db.pool import Tx
from sapa.loyalty.reconciliation.actions import reconcile as reconcile_company
from sapa.loyalty.types import Reconciliation

app = typer.Typer(no_args_is_help=True, help="The points ledger.")


@app.callback()
def group() -> None:
    """The points ledger."""


@app.command()
def reconcile(company: CompanyId, json: AsJson = False) -> None:
    """Recompute every wallet from its entries, lots and reservations; exit code 1 if there is a mismatch."""

    async def check(tx: Tx) -> Reconciliation:
        await access.get_company(tx, company)
        return await reconcile_company(tx, company)

    report = transact(check)
    if json:
        show(report, json, "", [])
    else:
        show(report, json, "Reconciliation", ["wallets", "availablePoints", "reservedPoints", "driftingWallets"])
        if report.drift:
            show(report.drift, json, "Drift", ["walletId", "rule", "expected", "found"])
    if report.drifting_wallets:
        raise typer.Exit(1)
