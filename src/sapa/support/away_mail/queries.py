"""How many customers wait for a person who is away."""

from datetime import datetime

from msgspec import Struct

from sapa.db.pool import Connection
from sapa.db.sql import sql


class WaitingTickets(Struct, frozen=True):
    assigned: int
    unassigned: int


COUNT_WAITING = sql(
    """
    SELECT count(*) FILTER (WHERE a.user_id = $2) AS assigned,
           count(*) FILTER (WHERE t.agent_id IS NULL) AS unassigned
      FROM tickets t
      LEFT JOIN agents a ON a.company_id = $1 AND a.id = t.agent_id
     WHERE t.company_id = $1 AND t.waiting_since > $3 AND t.status <> 'resolved'""",
    row=WaitingTickets,
)


async def count_waiting(db: Connection, company_id: int, user_id: int, since: datetime) -> WaitingTickets:
    """Those who have begun to wait since then."""
    return await COUNT_WAITING.find(db, company_id, user_id, since) or WaitingTickets(0, 0)
