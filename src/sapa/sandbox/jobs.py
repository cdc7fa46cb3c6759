"""Worker jobs of the sandbox."""

from sapa.db.pool import Database
from sapa.sandbox.carriers import bookings
from sapa.sandbox.channels import outbox, people


async def purge_old(database: Database) -> None:
    """Worker job: purges old requests, people and bookings of simulators."""
    await outbox.purge_old(database)
    await people.purge_old(database)
    await bookings.purge_old(database)
