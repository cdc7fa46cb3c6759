"""Sends an agent's reply over the ticket's channel, as any other message."""

from sapa.db.pool import Connection, Tx
from sapa.http.errors import FieldError, Invalid
from sapa.http.outbound_call import OutboundCall
from sapa.http.responses import Accepted
from sapa.messaging.messages.types import Message
from sapa.messaging.sending import actions as sending
from sapa.messaging.sending.types import SendContext
from sapa.support import queries
from sapa.support.agents import actions as agents
from sapa.support.requests import ReplyIn
from sapa.values.company import Company


async def reply(call: OutboundCall, id: str, body: ReplyIn) -> Message | Accepted[Message]:
    company = call.company
    if body.body is None and not body.attachment_ids:
        raise Invalid.field("body", "is required, or attachmentIds")
    async with call.context.database.connection() as db:
        target = await queries.get_reply_target(db, company.id, id)
        agent = await agents.get_active_agent(db, company, body.agent_id)
    send_context = SendContext(
        agent_id=agent.id,
        feature_source="AI_AGENT" if agent.type == "ai" else "INBOX",
        ticket_id=id,
        connection_id=target.connection_id,
        is_handover=body.handover,
        seen_sequence=body.seen_sequence,
    )
    try:
        return await sending.reply(
            call, target.identity, target.source, body.body, send_context, body.reply_to, body.attachment_ids
        )
    except Invalid as refusal:
        raise _rename_field(refusal) from None


async def require_ticket(db: Connection, company: Company, id: str) -> None:
    """Raises NotFound if it does not exist."""
    await queries.get_reply_target(db, company.id, id)


async def lock_ticket(tx: Tx, company: Company, id: str) -> None:
    """Nobody else changes it until the transaction ends. Raises NotFound if it does not exist."""
    await queries.lock_ticket(tx, company.id, id)


def _rename_field(refusal: Invalid) -> Invalid:
    """The `message` of a send is the `body` of a reply."""
    match refusal.details:
        case [FieldError(field="message", message=reason)]:
            return Invalid.field("body", reason)
    return refusal
