"""Changes saved replies, and fills them in."""

from sapa.db.pool import Connection, Tx
from sapa.http.errors import Invalid
from sapa.support.agents import actions as agents
from sapa.support.saved_replies import queries
from sapa.support.saved_replies.placeholders import NAMES, fill, list_unknown
from sapa.support.saved_replies.types import SAVED_REPLY_ID, FilledReply, SavedReply, SavedReplyIn
from sapa.values.company import Company


async def create(tx: Tx, company: Company, body: SavedReplyIn) -> SavedReply:
    check_text(body.text)
    return await queries.insert_saved_reply(tx, company.id, SAVED_REPLY_ID.new(), body.shortcut, body.text)


async def update(tx: Tx, company: Company, id: str, body: SavedReplyIn) -> SavedReply:
    check_text(body.text)
    return await queries.update_saved_reply(tx, company.id, id, body.shortcut, body.text)


async def delete(tx: Tx, company: Company, id: str) -> None:
    await queries.delete_saved_reply(tx, company.id, id)


async def fill_for_ticket(
    db: Connection, company: Company, ticket_id: str, text: str, agent_id: int | None
) -> FilledReply:
    """The text with what its placeholders stand for in this ticket. Raises NotFound for an unknown ticket."""
    values = await queries.get_placeholder_values(db, company.id, ticket_id)
    agent = await agents.find_agent(db, company, agent_id)
    name = values.name.split()[0] if values.name and values.name.split() else None
    filled, missing = fill(
        text, {"name": name, "order": values.order, "tracking": values.tracking, "agent": agent.name if agent else None}
    )
    return FilledReply(filled, missing)


def check_text(text: str, field: str = "text") -> None:
    """Raises Invalid for a blank text and for unknown placeholders."""
    if not text.strip() or "\0" in text:
        raise Invalid.field(field, "must not be blank or contain a NUL character")
    if unknown := list_unknown(text):
        known = ", ".join(f"{{{name}}}" for name in NAMES)
        raise Invalid.field(field, f"has the unknown placeholder {{{unknown[0]}}}. Use one of {known}")
