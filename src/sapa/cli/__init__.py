"""The `sapa` command: one module per noun."""

import sys

from sapa.cli import shared_metrics  # isort: skip # noqa: F401 - before prometheus_client is imported, shipment

import asyncpg
import typer
from rich.console import Console

from sapa import __version__
from sapa.cli import (
    agent,
    analytics,
    areas,
    carrier,
    channel,
    clock,
    company,
    export,
    import_,
    key,
    listen,
    loyalty,
    run,
    shipment,
    token,
    user,
    webhook,
)
from sapa.db.migrations import MigrationRefused
from sapa.db.pool import AWAY
from sapa.http.errors import BY_CONSTRAINT, ApiError
from sapa.runtime.processes import CannotStart
from sapa.settings import BadSetting
from sapa.values.sealing import BadSecretKey

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Sapa: a self-hosted customer-engagement platform.",
)
app.add_typer(company.app, name="company")
app.add_typer(key.app, name="key")
app.add_typer(clock.app, name="clock")
app.add_typer(areas.app, name="areas")
app.add_typer(carrier.app, name="carrier")
app.add_typer(loyalty.app, name="loyalty")
app.add_typer(shipment.app, name="shipment")
app.add_typer(webhook.app, name="webhook")
app.add_typer(token.app, name="token")
app.add_typer(channel.app, name="channel")
app.add_typer(user.app, name="user")
app.add_typer(agent.app, name="agent")
app.add_typer(analytics.app, name="analytics")
for command in run.COMMANDS:
    app.command()(command)
app.command("import")(import_.import_)
app.command()(export.export)
app.command()(listen.listen)


@app.command()
def version() -> None:
    """Print the version."""
    Console().print(__version__)


def main() -> None:
    """Runs a command; what goes wrong is told in one sentence, with exit code 1."""
    try:
        app()
    except (ApiError, BadSecretKey, BadSetting, CannotStart, MigrationRefused) as error:
        _fail(str(error))
    except asyncpg.IntegrityConstraintViolationError as error:
        meant = BY_CONSTRAINT.get(error.constraint_name or "")
        _fail(meant.summary() if meant else str(error))
    except (*AWAY, asyncpg.PostgresError) as error:
        _fail(f"The database cannot be used: {error or type(error).__name__}. `sapa doctor` says more.")


def _fail(sentence: str) -> None:
    Console(stderr=True, soft_wrap=True, highlight=False).print(f"sapa: {sentence}", markup=False)
    sys.exit(1)
