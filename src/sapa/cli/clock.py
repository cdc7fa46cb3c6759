"""`sapa clock`: a test environment's clock. Move it to see reply windows close and keys expire."""

import re
from datetime import timedelta
from typing import Annotated

import typer

from sapa.access import actions
from sapa.cli.connect import AsJson, CompanyId, show, transact

app = typer.Typer(no_args_is_help=True, help="The clock of a test environment.")

COLUMNS = ["companyId", "name", "environment", "clockOffsetSeconds"]
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_DURATION = re.compile(r"([0-9]{1,6})([smhd])").fullmatch


@app.command("show")
def show_(company: CompanyId, json: AsJson = False) -> None:
    """Show how far the clock is ahead of real time."""
    show(transact(lambda tx: actions.get_environment(tx, company)), json, "Clock", COLUMNS)


@app.command()
def advance(
    by: Annotated[str, typer.Argument(help="How far: 90s, 30m, 25h or 7d.")],
    company: CompanyId,
    json: AsJson = False,
) -> None:
    """Move the clock forward."""
    parts = _DURATION(by)
    if parts is None:
        raise typer.BadParameter("use a duration such as 90s, 30m, 25h or 7d")
    span = timedelta(**{_UNITS[parts[2]]: int(parts[1])})
    show(transact(lambda tx: actions.move_clock(tx, company, span)), json, "Clock moved", COLUMNS)


@app.command()
def reset(company: CompanyId, json: AsJson = False) -> None:
    """Set the clock back to real time."""
    show(transact(lambda tx: actions.move_clock(tx, company, None)), json, "Clock reset", COLUMNS)
