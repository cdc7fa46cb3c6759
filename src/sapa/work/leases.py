"""Leases: the right to run a job, held by one worker at a time, for a limited time."""

import os
import socket
import time

from sapa.db.pool import Connection
from sapa.work import queries


def new_holder() -> str:
    """A unique name for a holder of leases: the machine, the process, and the time."""
    return f"{socket.gethostname()}:{os.getpid()}:{time.time_ns()}"


async def take(db: Connection, name: str, holder: str, seconds: float) -> int | None:
    """Takes or renews a lease; its epoch, or None while another worker holds it."""
    return await queries.take_lease(db, name, holder, seconds)


async def release_all(db: Connection, holder: str) -> None:
    await queries.release_leases(db, holder)
