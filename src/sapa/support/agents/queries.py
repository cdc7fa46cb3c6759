"""Queries for agents and the company's support settings."""

from collections.abc import Mapping, Sequence

from msgspec import Struct, structs

from sapa.db.listing import Listing
from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql
from sapa.http.errors import NotFound
from sapa.support.types import BUSINESS_APP, Agent, AgentType, SupportSettings
from sapa.values.text_folding import fold

COLUMNS = ", ".join(Agent.__struct_fields__)
SETTINGS_COLUMNS = ", ".join(SupportSettings.__struct_fields__)

FIND = sql(f"SELECT {COLUMNS} FROM agents WHERE company_id = $1 AND id = $2", row=Agent)

FIND_OF_USER = sql(f"SELECT {COLUMNS} FROM agents WHERE company_id = $1 AND user_id = $2", row=Agent)

# Waits for a change of the agent, and makes the next one wait; several may hold it at once.
SHARE = sql(f"SELECT {COLUMNS} FROM agents WHERE company_id = $1 AND id = $2 FOR SHARE", row=Agent)

LOCK = sql(f"SELECT {COLUMNS} FROM agents WHERE company_id = $1 AND id = $2 FOR UPDATE", row=Agent)

INSERT = sql(
    f"""
    WITH counted AS (
        INSERT INTO counter_deltas (company_id, counter, cell, delta) VALUES ($1, 'agents', $7, 1)
    )
    INSERT INTO agents (company_id, name, name_text, type, active, user_id)
    VALUES ($1, $2, $3, $4, $5, $6)
    RETURNING {COLUMNS}""",
    row=Agent,
)

UPDATE = sql(
    f"""
    WITH changed AS (
        UPDATE agents
           SET name = $3, name_text = $4, type = $5, active = $6, user_id = $7,
               updated_at = GREATEST(statement_timestamp(), updated_at)
         WHERE company_id = $1 AND id = $2
        RETURNING {COLUMNS}, cell
    ), counted AS (
        INSERT INTO counter_deltas (company_id, counter, cell, delta)
        SELECT $1, 'agents', moved.cell, moved.delta
          FROM changed
         CROSS JOIN LATERAL (VALUES ($8, -1), (changed.cell, 1)) AS moved (cell, delta)
         WHERE changed.cell <> $8
    )
    SELECT {COLUMNS} FROM changed""",
    row=Agent,
)

# Two first echoes may race: the second inserts nothing, and finds the first one's row.
INSERT_BUSINESS_APP = sql(
    f"""
    WITH inserted AS (
        INSERT INTO agents (company_id, name, name_text, type, is_business_app)
        VALUES ($1, '{BUSINESS_APP}', '{fold(BUSINESS_APP)}', 'human', true)
            ON CONFLICT (company_id) WHERE is_business_app DO NOTHING
        RETURNING company_id, cell
    )
    INSERT INTO counter_deltas (company_id, counter, cell, delta)
    SELECT $1, 'agents', cell, 1 FROM inserted WHERE company_id = $1"""
)

FIND_BUSINESS_APP = sql(f"SELECT {COLUMNS} FROM agents WHERE company_id = $1 AND is_business_app", row=Agent)

IS_MEMBER = sql(
    """
    SELECT EXISTS (SELECT FROM companies c
                     JOIN memberships m ON m.organisation_id = c.organisation_id
                    WHERE c.company_id = $1 AND m.user_id = $2)"""
)

LIST_EXISTING = sql("SELECT id FROM agents WHERE company_id = $1 AND id = ANY($2::bigint[])")

LISTING = Listing(
    "agents",
    row=Agent,
    counter="agents",
    cell="cell",
    filters={"search": "name_text LIKE {}", "user_id": "user_id = {}"},
    sorts={"createdAt": "created_at"},
)

FIND_SETTINGS = sql(f"SELECT {SETTINGS_COLUMNS} FROM support_settings WHERE company_id = $1", row=SupportSettings)

# A change of the settings locks this row first, and inserts it if needed, so that changes are serialised.
LOCK_SETTINGS = sql(
    f"""
    INSERT INTO support_settings AS s (company_id) VALUES ($1)
        ON CONFLICT (company_id) DO UPDATE SET updated_at = excluded.updated_at WHERE s.company_id = $1
    RETURNING {SETTINGS_COLUMNS}""",
    row=SupportSettings,
)

UPDATE_SETTINGS = sql(
    """
    UPDATE support_settings
       SET reopen_window_hours = $2, auto_resolve_hours = $3, reopen_assignee = $4, ask_rating = $5, auto_assign = $6
     WHERE company_id = $1"""
)


class AgentChanges(Struct, frozen=True):
    """The changeable fields of an agent."""

    name: str
    type: AgentType
    active: bool
    user_id: int | None

    @property
    def cell(self) -> str:
        return build_cell(self.type, self.active)


def build_cell(type: AgentType, active: bool) -> str:
    return f"{type}/{'active' if active else 'inactive'}"


async def find_agent(db: Connection, company_id: int, id: int) -> Agent | None:
    return await FIND.find(db, company_id, id)


async def find_share_locked_agent(tx: Tx, company_id: int, id: int) -> Agent | None:
    return await SHARE.find(tx, company_id, id)


async def find_agent_of(db: Connection, company_id: int, user_id: int) -> Agent | None:
    return await FIND_OF_USER.find(db, company_id, user_id)


async def get_agent(db: Connection, company_id: int, id: int) -> Agent:
    return _or_not_found(await FIND.find(db, company_id, id))


async def lock_agent(tx: Tx, company_id: int, id: int) -> Agent:
    return _or_not_found(await LOCK.find(tx, company_id, id))


async def insert_agent(tx: Tx, company_id: int, changes: AgentChanges) -> Agent:
    columns = (changes.name, fold(changes.name), changes.type, changes.active, changes.user_id)
    return _or_not_found(await INSERT.find(tx, company_id, *columns, changes.cell))


async def update_agent(tx: Tx, company_id: int, id: int, changes: AgentChanges, cell: str) -> Agent:
    """`cell` is the counter's cell that the agent leaves."""
    columns = (changes.name, fold(changes.name), changes.type, changes.active, changes.user_id)
    return _or_not_found(await UPDATE.find(tx, company_id, id, *columns, cell))


async def find_business_app(db: Connection, company_id: int) -> Agent | None:
    return await FIND_BUSINESS_APP.find(db, company_id)


async def insert_business_app(tx: Tx, company_id: int) -> Agent:
    await INSERT_BUSINESS_APP.run(tx, company_id)
    return _or_not_found(await FIND_BUSINESS_APP.find(tx, company_id))


async def is_member(db: Connection, company_id: int, user_id: int) -> bool:
    return bool(await IS_MEMBER.value(db, company_id, user_id))


async def list_existing(db: Connection, company_id: int, ids: Sequence[int]) -> set[int]:
    return {row[0] for row in await db.fetch(LIST_EXISTING.text, company_id, list(ids))}


async def list_agents(
    db: Connection, company_id: int, filters: Mapping[str, object], limit: int, offset: int
) -> tuple[list[Agent], int]:
    """One page, newest first, and the total."""
    return await LISTING.page(db, company_id, filters, "createdAt:desc", limit, offset)


async def find_settings(db: Connection, company_id: int) -> SupportSettings | None:
    return await FIND_SETTINGS.find(db, company_id)


async def find_locked_settings(tx: Tx, company_id: int) -> SupportSettings | None:
    return await LOCK_SETTINGS.find(tx, company_id)


async def update_settings(tx: Tx, company_id: int, settings: SupportSettings) -> None:
    await UPDATE_SETTINGS.run(tx, company_id, *structs.astuple(settings))


def _or_not_found(agent: Agent | None) -> Agent:
    if agent is None:
        raise NotFound
    return agent
