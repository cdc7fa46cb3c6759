"""`sapa secrets`: the keys that stored secrets are encrypted with."""

import asyncio
import sys
from typing import Annotated

import typer
from msgspec import Struct

from sapa.cli.connect import AsJson, reach_database, reach_vault, show, transact
from sapa.domains import SEALED_TABLES
from sapa.work import rotation
from sapa.work.types import Rotation

app = typer.Typer(no_args_is_help=True, help="The encryption of stored secrets.")

COLUMNS = ["keyId", "status", "resealed", "unreadable", "requestedAt", "finishedAt"]


class RotationStatus(Struct, frozen=True, rename="camel"):
    """How far a rotation is."""

    key_id: str
    """The key that seals."""
    status: str
    """none, running or finished."""
    resealed: int
    unreadable: int
    """Secrets that no key of SAPA_SECRET_KEY opens."""
    requested_at: str | None
    finished_at: str | None


@app.command()
def rotate(
    wait: Annotated[
        bool, typer.Option("--wait", help="Rotate in this command instead of in the worker, and wait for the end.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Encrypt all stored secrets with the first key of SAPA_SECRET_KEY.

    The worker does it in the background while Sapa is running; `sapa secrets status` shows the progress. An interrupted
    rotation resumes. When a later run reports nothing resealed and nothing unreadable, you can remove the old keys.
    """
    _show(asyncio.run(_rotate(wait)), json, "Rotation requested")


@app.command()
def status(json: AsJson = False) -> None:
    """Show the progress of the rotation; exit code 1 if a secret cannot be read."""
    _show(transact(rotation.find), json, "Rotation")


async def _rotate(wait: bool) -> Rotation | None:
    async with reach_database() as database:
        vault = reach_vault()
        async with database.transaction() as tx:
            started = await rotation.start(tx, vault)
        if not wait:
            return started
        while await rotation.reseal_batch(database, SEALED_TABLES, vault):
            pass
        async with database.connection() as db:
            return await rotation.find(db)


def _show(found: Rotation | None, json: bool, title: str) -> None:
    show(_build_status(found), json, title, COLUMNS)
    sys.exit(1 if found and found.unreadable else 0)


def _build_status(found: Rotation | None) -> RotationStatus:
    if found is None:
        return RotationStatus("", "none", 0, 0, None, None)
    word = "finished" if found.finished_at else "running"
    return RotationStatus(found.key_id, word, found.resealed, found.unreadable, found.requested_at, found.finished_at)
