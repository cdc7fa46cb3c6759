"""Queries for drafts."""

from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql
from sapa.support.drafts.types import ReplyDraft, TypingAgent

COLUMNS = ", ".join(ReplyDraft.__struct_fields__)

LIST = sql(
    f"SELECT {COLUMNS} FROM reply_drafts WHERE company_id = $1 AND ticket_id = $2 ORDER BY updated_at DESC, agent_id",
    row=ReplyDraft,
)

FIND = sql(
    f"SELECT {COLUMNS} FROM reply_drafts WHERE company_id = $1 AND ticket_id = $2 AND agent_id = $3", row=ReplyDraft
)

SET = sql(
    f"""
    INSERT INTO reply_drafts AS d (company_id, ticket_id, agent_id, body) VALUES ($1, $2, $3, $4)
        ON CONFLICT (company_id, ticket_id, agent_id) DO UPDATE
       SET body = excluded.body, updated_at = excluded.updated_at
     WHERE d.company_id = $1
    RETURNING {COLUMNS}""",
    row=ReplyDraft,
)

DELETE = sql("DELETE FROM reply_drafts WHERE company_id = $1 AND ticket_id = $2 AND agent_id = $3")

# In real time, whatever the company's clock says.
LIST_TYPING = sql(
    """
    SELECT a.id, a.name
      FROM reply_drafts d
      JOIN agents a ON a.company_id = $1 AND a.id = d.agent_id
     WHERE d.company_id = $1 AND d.ticket_id = $2 AND d.agent_id <> $3
       AND d.updated_at > now() - make_interval(secs => $4)
     ORDER BY a.id""",
    row=TypingAgent,
)


async def list_drafts(db: Connection, company_id: int, ticket_id: str) -> list[ReplyDraft]:
    return await LIST.all(db, company_id, ticket_id)


async def find_draft(db: Connection, company_id: int, ticket_id: str, agent_id: int) -> ReplyDraft | None:
    return await FIND.find(db, company_id, ticket_id, agent_id)


async def set_draft(tx: Tx, company_id: int, ticket_id: str, agent_id: int, body: str) -> ReplyDraft:
    (draft,) = await SET.all(tx, company_id, ticket_id, agent_id, body)
    return draft


async def delete_draft(tx: Tx, company_id: int, ticket_id: str, agent_id: int) -> None:
    await DELETE.run(tx, company_id, ticket_id, agent_id)


async def list_typing(
    db: Connection, company_id: int, ticket_id: str, except_agent_id: int, seconds: float
) -> list[TypingAgent]:
    return await LIST_TYPING.all(db, company_id, ticket_id, except_agent_id, seconds)
