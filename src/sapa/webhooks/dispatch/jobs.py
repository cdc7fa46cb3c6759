"""What the worker does about the queue besides delivering."""

import structlog

from sapa.db.pool import Database
from sapa.webhooks.dispatch import queries

log = structlog.get_logger()


async def reconcile_counter(database: Database) -> None:
    """Corrects the number of waiting deliveries: an older version, or a person, may have changed the queue."""
    async with database.connection() as db:
        if companies := await queries.reconcile_counter(db):
            log.warning("delivery counters corrected", companies=companies)
