"""What the worker does for test environments."""

from sapa.db.pool import Database
from sapa.sandbox.carriers import bookings
from sapa.sandbox.channels import outbox


async def purge_old(database: Database) -> None:
    """The worker's job: what simulators were asked and took on long ago."""
    await outbox.purge_old(database)
    await bookings.forget_old(database)
