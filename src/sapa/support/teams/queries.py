"""Queries for teams."""

from collections.abc import Mapping

from sapa.db.listing import Listing
from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql
from sapa.http.errors import NotFound
from sapa.support.teams.types import AgentTeam

COLUMNS = ", ".join(AgentTeam.__struct_fields__)

GET = sql(f"SELECT {COLUMNS} FROM teams WHERE company_id = $1 AND id = $2", row=AgentTeam)

INSERT = sql(
    f"""
    WITH inserted AS (
        INSERT INTO teams (company_id, id, name, agent_ids, auto_assign) VALUES ($1, $2, $3, $4, $5)
        RETURNING company_id, {COLUMNS}
    ), counted AS (
        INSERT INTO counter_deltas (company_id, counter, cell, delta) SELECT $1, 'teams', '', 1 FROM inserted
    )
    SELECT {COLUMNS} FROM inserted WHERE company_id = $1""",
    row=AgentTeam,
)

UPDATE = sql(
    f"""
    UPDATE teams SET name = $3, agent_ids = $4, auto_assign = $5, updated_at = statement_timestamp()
     WHERE company_id = $1 AND id = $2
    RETURNING {COLUMNS}""",
    row=AgentTeam,
)

DELETE = sql(
    """
    WITH deleted AS (
        DELETE FROM teams WHERE company_id = $1 AND id = $2 RETURNING id
    ), counted AS (
        INSERT INTO counter_deltas (company_id, counter, cell, delta)
        SELECT $1, 'teams', '', -1 FROM deleted
    )
    SELECT id FROM deleted"""
)

LOCK = sql(f"SELECT {COLUMNS} FROM teams WHERE company_id = $1 AND id = $2 FOR SHARE", row=AgentTeam)

# A batch is locked in the order in which all who change several tickets lock them.
REMOVE_FROM_TICKETS = sql(
    """
    UPDATE tickets SET team_id = NULL
     WHERE company_id = $1 AND id = ANY(ARRAY(
           SELECT id FROM tickets
            WHERE company_id = $1 AND team_id = $2 AND id = ANY(ARRAY(
                  SELECT id FROM tickets WHERE company_id = $1 AND team_id = $2 LIMIT $3))
            ORDER BY id
              FOR UPDATE))"""
)

LISTING = Listing(
    "teams",
    row=AgentTeam,
    counter="teams",
    filters={},
    sorts={"createdAt": "created_at"},
)


async def get_team(db: Connection, company_id: int, id: str) -> AgentTeam:
    return _or_not_found(await GET.find(db, company_id, id))


async def insert_team(tx: Tx, company_id: int, id: str, *columns: object) -> AgentTeam:
    return _or_not_found(await INSERT.find(tx, company_id, id, *columns))


async def update_team(tx: Tx, company_id: int, id: str, *columns: object) -> AgentTeam:
    return _or_not_found(await UPDATE.find(tx, company_id, id, *columns))


async def delete_team(tx: Tx, company_id: int, id: str) -> None:
    if await DELETE.value(tx, company_id, id) is None:
        raise NotFound


async def find_locked_team(tx: Tx, company_id: int, id: str) -> AgentTeam | None:
    return await LOCK.find(tx, company_id, id)


async def remove_from_tickets(tx: Tx, company_id: int, id: str, most: int) -> int:
    """Returns from how many, up to `most`."""
    return await REMOVE_FROM_TICKETS.run(tx, company_id, id, most)


async def list_teams(
    db: Connection, company_id: int, filters: Mapping[str, object], limit: int, offset: int
) -> tuple[list[AgentTeam], int]:
    return await LISTING.page(db, company_id, filters, "createdAt:desc", limit, offset)


def _or_not_found(team: AgentTeam | None) -> AgentTeam:
    if team is None:
        raise NotFound
    return team
