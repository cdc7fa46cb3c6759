"""The `sapa` command: one module per noun."""

import sys

from sapa.cli import shared_metrics  # isort: skip # noqa: F401 - before prometheus_client is imported

import asyncpg
import typer
from rich.console import Console

from sapa import __version__
from sapa.backups.types import BackupFailed
from sapa.cli.command_table import CommandTable
from sapa.db.connection import DatabaseAway
from sapa.db.migrations.files import MigrationRefused
from sapa.http.errors import ApiError, translate
from sapa.runtime.processes import CannotStart
from sapa.settings import BadSetting
from sapa.values.sealing import BadSecretKey, SecretKeyMissing

app = typer.Typer(cls=CommandTable, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


def version() -> None:
    """Print the version."""
    Console().print(__version__)


def _show_version(is_wanted: bool) -> None:
    if is_wanted:
        version()
        raise typer.Exit


@app.callback()
def sapa(
    _: bool = typer.Option(False, "--version", callback=_show_version, is_eager=True, help="Print the version."),
) -> None:
    """Sapa: a self-hosted customer-engagement platform."""


def main() -> None:
    """Runs a command; an error is one sentence, with exit code 1."""
    try:
        app()
    except (ApiError, BackupFailed, BadSecretKey, SecretKeyMissing, BadSetting, CannotStart, MigrationRefused) as error:
        _fail(str(error))
    except asyncpg.IntegrityConstraintViolationError as error:
        _fail(str(translate(error) or error))
    except (DatabaseAway, asyncpg.PostgresError) as error:
        _fail(f"The database cannot be used: {error or type(error).__name__}. Run `sapa doctor` for details.")
    except OSError as error:
        _fail(str(error) or type(error).__name__)


def _fail(sentence: str) -> None:
    Console(stderr=True, soft_wrap=True, highlight=False).print(f"sapa: {sentence}", markup=False)
    sys.exit(1)
