"""Queries for drafts."""

from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql
from sapa.support.drafts.types import ReplyDraft, TypedTexts, TypingAgent

COLUMNS = ", ".join(ReplyDraft.__struct_fields__)

LIST = sql(
    f"""
    SELECT {COLUMNS}
      FROM reply_drafts
     WHERE company_id = $1 AND ticket_id = $2 AND body <> ''
     ORDER BY updated_at DESC, agent_id""",
    row=ReplyDraft,
)

FIND_TYPED = sql(
    "SELECT body, note, updated_at FROM reply_drafts WHERE company_id = $1 AND ticket_id = $2 AND agent_id = $3",
    row=TypedTexts,
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

# An empty row where there is none, so that two devices that begin at once wait for each other.
LOCK_TYPED = sql(
    """
    INSERT INTO reply_drafts AS d (company_id, ticket_id, agent_id, body, updated_at) VALUES ($1, $2, $3, '', 'epoch')
        ON CONFLICT (company_id, ticket_id, agent_id) DO UPDATE SET body = d.body
     WHERE d.company_id = $1
    RETURNING body, note, updated_at""",
    row=TypedTexts,
)

# Nobody is told that somebody writes a note.
SET_NOTE = sql(
    """
    INSERT INTO reply_drafts AS d (company_id, ticket_id, agent_id, body, note, updated_at)
    VALUES ($1, $2, $3, '', $4, 'epoch')
        ON CONFLICT (company_id, ticket_id, agent_id) DO UPDATE SET note = excluded.note
     WHERE d.company_id = $1"""
)

CLEAR = sql("UPDATE reply_drafts SET body = '' WHERE company_id = $1 AND ticket_id = $2 AND agent_id = $3")

CLEAR_NOTE = sql("UPDATE reply_drafts SET note = '' WHERE company_id = $1 AND ticket_id = $2 AND agent_id = $3")

DELETE_EMPTY = sql(
    """
    DELETE FROM reply_drafts
     WHERE company_id = $1 AND ticket_id = $2 AND agent_id = $3 AND body = '' AND note = ''"""
)

# In real time, whatever the company's clock says.
LIST_TYPING = sql(
    """
    SELECT a.id, a.name
      FROM reply_drafts d
      JOIN agents a ON a.company_id = $1 AND a.id = d.agent_id
     WHERE d.company_id = $1 AND d.ticket_id = $2 AND d.agent_id <> $3
       AND d.body <> '' AND d.updated_at > now() - make_interval(secs => $4)
     ORDER BY a.id""",
    row=TypingAgent,
)


async def list_drafts(db: Connection, company_id: int, ticket_id: str) -> list[ReplyDraft]:
    return await LIST.all(db, company_id, ticket_id)


async def find_typed(db: Connection, company_id: int, ticket_id: str, agent_id: int) -> TypedTexts | None:
    return await FIND_TYPED.find(db, company_id, ticket_id, agent_id)


async def lock_typed(tx: Tx, company_id: int, ticket_id: str, agent_id: int) -> TypedTexts:
    (typed,) = await LOCK_TYPED.all(tx, company_id, ticket_id, agent_id)
    return typed


async def set_draft(tx: Tx, company_id: int, ticket_id: str, agent_id: int, body: str) -> ReplyDraft:
    (draft,) = await SET.all(tx, company_id, ticket_id, agent_id, body)
    return draft


async def set_note(tx: Tx, company_id: int, ticket_id: str, agent_id: int, note: str) -> None:
    await SET_NOTE.run(tx, company_id, ticket_id, agent_id, note)


async def delete_draft(tx: Tx, company_id: int, ticket_id: str, agent_id: int) -> None:
    await CLEAR.run(tx, company_id, ticket_id, agent_id)
    await DELETE_EMPTY.run(tx, company_id, ticket_id, agent_id)


async def delete_note(tx: Tx, company_id: int, ticket_id: str, agent_id: int) -> None:
    await CLEAR_NOTE.run(tx, company_id, ticket_id, agent_id)
    await DELETE_EMPTY.run(tx, company_id, ticket_id, agent_id)


async def list_typing(
    db: Connection, company_id: int, ticket_id: str, except_agent_id: int, seconds: float
) -> list[TypingAgent]:
    return await LIST_TYPING.all(db, company_id, ticket_id, except_agent_id, seconds)
