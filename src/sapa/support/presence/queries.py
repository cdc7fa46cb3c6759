"""Queries for presence, and for whom waiting tickets go to."""

from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql
from sapa.support.presence.types import AgentPresence
from sapa.support.rows import DueTicket

FIND = sql(
    """
    SELECT agent_id, status, until FROM agent_presences
     WHERE company_id = $1 AND agent_id = $2 AND until > now()""",
    row=AgentPresence,
)

LIST_PRESENT = sql(
    "SELECT agent_id, status, until FROM agent_presences WHERE company_id = $1 AND until > now() ORDER BY agent_id",
    row=AgentPresence,
)

SET = sql(
    """
    INSERT INTO agent_presences AS p (company_id, agent_id, status, until)
    VALUES ($1, $2, $3, now() + make_interval(secs => $4))
        ON CONFLICT (company_id, agent_id) DO UPDATE SET status = excluded.status, until = excluded.until
     WHERE p.company_id = $1"""
)

CLEAR = sql("DELETE FROM agent_presences WHERE company_id = $1 AND agent_id = $2")

_IS_FREE = """
    p.until > now() AND p.status = 'online' AND a.active AND NOT a.is_business_app
       AND (NOT t.ai_paused OR a.type = 'human') AND (t.team_id IS NULL OR a.id = ANY(m.agent_ids))"""

# Only tickets that somebody could get, so that others do not hold them up; the longest wait first.
LIST_UNASSIGNED = sql(
    f"""
    SELECT company_id, id, last_message_at AS due_at
      FROM (SELECT t.company_id, t.id, t.last_message_at,
                   row_number() OVER (PARTITION BY t.company_id ORDER BY t.waiting_since, t.created_at) AS place
              FROM tickets t
              LEFT JOIN support_settings s ON s.company_id = t.company_id
              LEFT JOIN teams m ON m.company_id = t.company_id AND m.id = t.team_id
             WHERE t.company_id IN (SELECT company_id FROM support_settings WHERE auto_assign
                                     UNION ALL SELECT company_id FROM teams WHERE auto_assign)
               AND t.status = 'open' AND t.snoozed_until IS NULL
               AND (coalesce(s.auto_assign, false) OR coalesce(m.auto_assign, false))
               AND EXISTS (SELECT FROM agent_presences p
                             JOIN agents a ON a.company_id = p.company_id AND a.id = p.agent_id
                            WHERE p.company_id = t.company_id AND {_IS_FREE})) AS due
     ORDER BY place
     LIMIT $1""",
    row=DueTicket,
    crosses="the worker finds unassigned tickets of all companies, then assigns them one by one",
)

# The agent with the fewest tickets.
FIND_FREE = sql(
    f"""
    SELECT a.id
      FROM tickets t
      LEFT JOIN teams m ON m.company_id = $1 AND m.id = t.team_id
      JOIN agent_presences p ON p.company_id = $1
      JOIN agents a ON a.company_id = $1 AND a.id = p.agent_id
     WHERE t.company_id = $1 AND t.id = $2 AND {_IS_FREE}
     ORDER BY (SELECT count(*) FROM tickets o
                WHERE o.company_id = $1 AND o.agent_id = a.id AND o.status = 'assigned' AND o.snoozed_until IS NULL),
              a.id
     LIMIT 1"""
)


async def find_presence(db: Connection, company_id: int, agent_id: int) -> AgentPresence | None:
    return await FIND.find(db, company_id, agent_id)


async def list_present(db: Connection, company_id: int) -> list[AgentPresence]:
    return await LIST_PRESENT.all(db, company_id)


async def set_presence(tx: Tx, company_id: int, agent_id: int, status: str, seconds: float) -> None:
    await SET.run(tx, company_id, agent_id, status, seconds)


async def clear_presence(tx: Tx, company_id: int, agent_id: int) -> None:
    await CLEAR.run(tx, company_id, agent_id)


async def list_unassigned(db: Connection, limit: int) -> list[DueTicket]:
    """Tickets of all companies that are assigned automatically, and for which an agent is there."""
    return await LIST_UNASSIGNED.all(db, limit)


async def find_free_agent(db: Connection, company_id: int, ticket_id: str) -> int | None:
    found: int | None = await FIND_FREE.value(db, company_id, ticket_id)
    return found
