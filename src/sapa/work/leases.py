"""Leases: the right to run a job, held by one worker at a time, for a limited time."""

import os
import socket
import time

from sapa.db.pool import Connection
from sapa.db.sql import sql

WORKERS = "leases belong to the installation, not to a company"

# The epoch grows whenever the holder changes, so that a late writer can be recognised.
TAKE = sql(
    """
    INSERT INTO leases AS l (name, holder, expires_at)
    VALUES ($1, $2, now() + make_interval(secs => $3))
        ON CONFLICT (name) DO UPDATE
       SET holder = excluded.holder, expires_at = excluded.expires_at,
           epoch = l.epoch + (l.holder <> excluded.holder)::int
     WHERE l.holder = excluded.holder OR l.expires_at < now()
    RETURNING epoch""",
    crosses=WORKERS,
)

RELEASE = sql("UPDATE leases SET expires_at = '-infinity' WHERE holder = $1", crosses=WORKERS)


def new_holder() -> str:
    """A unique name for a holder of leases: the machine, the process, and the time."""
    return f"{socket.gethostname()}:{os.getpid()}:{time.time_ns()}"


async def take(db: Connection, name: str, holder: str, seconds: float) -> int | None:
    """Takes or renews a lease; its epoch, or None while another worker holds it."""
    epoch: int | None = await TAKE.value(db, name, holder, seconds)
    return epoch


async def release_all(db: Connection, holder: str) -> None:
    await RELEASE.run(db, holder)
