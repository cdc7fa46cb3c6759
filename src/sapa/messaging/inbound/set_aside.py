"""Callbacks that were set aside because they failed several times: people look at them and start them again."""

from sapa.db.pool import Connection, Tx
from sapa.messaging.inbound import queries
from sapa.messaging.inbound.queries import FailedCallback
from sapa.values.company import Company

MAX_SHOWN = 20


async def list_latest(db: Connection, company: Company, connection_id: str) -> list[FailedCallback]:
    return await queries.list_failed(db, company.id, connection_id, MAX_SHOWN)


async def count(db: Connection, company: Company) -> dict[str, int]:
    """By connection."""
    return await queries.count_failed(db, company.id)


async def retry(tx: Tx, company: Company, connection_id: str, id: int | None = None) -> int:
    """Processes one of them again, or all; the number of them."""
    return await queries.retry_failed(tx, company.id, connection_id, id)
