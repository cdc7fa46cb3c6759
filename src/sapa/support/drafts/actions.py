"""Keeps drafts of replies and notes, and tells who is writing."""

from collections.abc import Mapping, Sequence

from sapa.db.pool import Connection, Tx, notify_after_commit
from sapa.messaging.tickets import build_tickets_channel
from sapa.support.drafts import queries
from sapa.support.drafts.types import ReplyDraft, TypedTexts, TypingAgent
from sapa.values.company import Company

TYPING_SECONDS = 8.0
"""How long after a change of the draft its agent counts as writing."""
MAX_LENGTH = 65_536


async def save_typed(
    tx: Tx, company: Company, ticket_id: str, agent_id: int,
    texts: Mapping[str, str], earlier: Mapping[str, Sequence[str]],
) -> dict[str, str]:  # fmt: skip
    """Keeps the reply or note that the agent has typed, unless it would replace another text than the `earlier` ones
    that the device knows: that was typed elsewhere, stays, and is returned."""
    stored = await queries.lock_typed(tx, company.id, ticket_id, agent_id)
    others = {
        name: text
        for name in texts
        if earlier[name] and _clean_lines(text := getattr(stored, name)) not in _list_known(texts[name], earlier[name])
    }
    if "body" in texts and "body" not in others:
        await save(tx, company, ticket_id, agent_id, texts["body"])
    if "note" in texts and "note" not in others:
        await save_note(tx, company, ticket_id, agent_id, texts["note"])
    return others


def _list_known(text: str, earlier: Sequence[str]) -> set[str]:
    return {"", *map(_clean_lines, [text, *earlier])}


def _clean_lines(text: str) -> str:
    """As a browser has it in a field."""
    return text.replace("\r", "").strip()


async def save(tx: Tx, company: Company, ticket_id: str, agent_id: int, body: str) -> None:
    """Keeps the reply that the agent has typed; a blank text deletes it."""
    if text := _clean(body):
        await set_draft(tx, company, ticket_id, agent_id, text)
    else:
        await delete_draft(tx, company, ticket_id, agent_id)


async def save_note(tx: Tx, company: Company, ticket_id: str, agent_id: int, note: str) -> None:
    """Keeps the note that the agent has typed; a blank text deletes it."""
    if text := _clean(note):
        await queries.set_note(tx, company.id, ticket_id, agent_id, text)
    else:
        await queries.delete_note(tx, company.id, ticket_id, agent_id)


def _clean(text: str) -> str:
    clean = text.replace("\0", "")[:MAX_LENGTH]
    return clean if clean.strip() else ""


async def set_draft(tx: Tx, company: Company, ticket_id: str, agent_id: int, body: str) -> ReplyDraft:
    """Pages that show the ticket are notified."""
    draft = await queries.set_draft(tx, company.id, ticket_id, agent_id, body)
    notify_after_commit(tx, build_tickets_channel(company.id))
    return draft


async def delete_draft(tx: Tx, company: Company, ticket_id: str, agent_id: int) -> None:
    await queries.delete_draft(tx, company.id, ticket_id, agent_id)
    notify_after_commit(tx, build_tickets_channel(company.id))


async def find_typed(db: Connection, company: Company, ticket_id: str, agent_id: int) -> TypedTexts | None:
    return await queries.find_typed(db, company.id, ticket_id, agent_id)


async def list_typing(db: Connection, company: Company, ticket_id: str, except_agent_id: int) -> list[TypingAgent]:
    """The other agents who are writing a reply in this ticket."""
    return await queries.list_typing(db, company.id, ticket_id, except_agent_id, TYPING_SECONDS)
