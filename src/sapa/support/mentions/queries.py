"""Queries for mentions."""

from collections.abc import Sequence

from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql
from sapa.support.mentions.types import MentionedAgent, TicketMention

LIST_CANDIDATES = sql(
    """
    SELECT id, name
      FROM agents
     WHERE company_id = $1 AND type = 'human' AND active AND strpos(lower($2), '@' || lower(name)) > 0""",
    row=MentionedAgent,
)

INSERT = sql(
    """
    INSERT INTO ticket_mentions (company_id, agent_id, ticket_id)
    SELECT $1, agent_id, $2 FROM unnest($3::bigint[]) AS agent_id
        ON CONFLICT (company_id, agent_id, ticket_id) DO NOTHING"""
)

LIST = sql(
    """
    SELECT ticket_id, agent_id, created_at
      FROM ticket_mentions
     WHERE company_id = $1 AND agent_id = $2
     ORDER BY created_at DESC, ticket_id DESC
     LIMIT $3 OFFSET $4""",
    row=TicketMention,
)

COUNT = sql("SELECT count(*) FROM ticket_mentions WHERE company_id = $1 AND agent_id = $2")

DELETE = sql("DELETE FROM ticket_mentions WHERE company_id = $1 AND agent_id = $2 AND ticket_id = $3")

MOVE = sql(
    """
    WITH moved AS (DELETE FROM ticket_mentions WHERE company_id = $1 AND ticket_id = $2 RETURNING agent_id)
    INSERT INTO ticket_mentions (company_id, agent_id, ticket_id)
    SELECT $1, agent_id, $3 FROM moved
        ON CONFLICT (company_id, agent_id, ticket_id) DO NOTHING"""
)


async def list_candidates(db: Connection, company_id: int, text: str) -> list[MentionedAgent]:
    """The active people whose name follows an @ in the text, at least its beginning."""
    return await LIST_CANDIDATES.all(db, company_id, text)


async def insert(tx: Tx, company_id: int, ticket_id: str, agent_ids: Sequence[int]) -> None:
    await INSERT.run(tx, company_id, ticket_id, list(agent_ids))


async def list_mentions(db: Connection, company_id: int, agent_id: int, limit: int, offset: int) -> list[TicketMention]:
    return await LIST.all(db, company_id, agent_id, limit, offset)


async def count(db: Connection, company_id: int, agent_id: int) -> int:
    total: int = await COUNT.value(db, company_id, agent_id)
    return total


async def delete(tx: Tx, company_id: int, agent_id: int, ticket_id: str) -> None:
    await DELETE.run(tx, company_id, agent_id, ticket_id)


async def move(tx: Tx, company_id: int, ticket_id: str, to_ticket_id: str) -> None:
    await MOVE.run(tx, company_id, ticket_id, to_ticket_id)
