"""Sends a message: check, store, call the channel. `delivery` handles the channel's response."""

from collections.abc import Sequence

from sapa.context import AppContext
from sapa.db.pool import Connection, Tx
from sapa.http.allow_list import AllowList
from sapa.http.keys import Key
from sapa.http.outbound_call import OutboundCall, RequestInfo
from sapa.http.responses import Accepted
from sapa.messaging.connections.types import ChannelNotConnected
from sapa.messaging.contacts import actions as contacts
from sapa.messaging.contacts.types import MessageRecipient
from sapa.messaging.history import actions as history
from sapa.messaging.history.actions import CallRecord
from sapa.messaging.media import actions as media
from sapa.messaging.messages import actions as messages
from sapa.messaging.messages.recorded import build_message
from sapa.messaging.messages.types import (
    MESSAGE_ID,
    ChannelUnsupported,
    Message,
    NewMessage,
    SendFailed,
)
from sapa.messaging.sending import preflight, queries
from sapa.messaging.sending.attachments import address_files
from sapa.messaging.sending.delivery import deliver
from sapa.messaging.sending.drafts import check_url, fill_named_template
from sapa.messaging.sending.types import (
    QUOTA_USED,
    ActiveTicket,
    AnySendIn,
    ReplyMessageIn,
    SendContext,
    SendPlan,
    TemplateMessageIn,
    WindowClosed,
)
from sapa.messaging.templates.types import Template
from sapa.messaging.tickets import TICKETS, AgentInactive, OutboundMessage, TakenOver, TicketLink, TicketOpening
from sapa.values.company import Company
from sapa.values.json import encode

REFUSALS = (WindowClosed, ChannelUnsupported, ChannelNotConnected, AgentInactive, TakenOver, SendFailed)
"""The errors that any send may raise."""


async def send(call: OutboundCall, body: AnySendIn) -> Message | Accepted[Message]:
    return await _send(call, body, SendContext(agent_id=body.agent_id, yields_to_agent=body.ignore_active_ticket))


async def send_within(call: OutboundCall, body: AnySendIn, send_context: SendContext) -> Message | Accepted[Message]:
    """For other rooms, which set the context themselves."""
    return await _send(call, body, send_context)


async def send_automatically(
    context: AppContext, company: Company, body: AnySendIn, *, connection_id: str | None = None
) -> Message:
    """For messages that the worker sends on its own. No call is recorded, and marketing needs a subscription."""
    key = Key("worker", company, frozenset(), frozenset(), AllowList([]), 0, None, None)
    call = OutboundCall(context, key, RequestInfo("worker", "", "", "", "", "", [], {}, {}, b""), 200, None)
    send_context = SendContext(
        agent_id=None, feature_source="AUTOMATION", connection_id=connection_id, needs_subscription=True
    )
    sent = await _send(call, body, send_context)
    return sent.data if isinstance(sent, Accepted) else sent


async def check_template(db: Connection, company: Company, body: TemplateMessageIn) -> Template:
    """The template, if it exists and these parameters fit it. Raises like a send."""
    template, filled = await fill_named_template(db, company, body)
    if filled.media is not None:
        check_url("mediaUrl", filled.media.url)
    return template


async def reply(
    call: OutboundCall,
    to: str,
    source: str,
    text: str | None,
    send_context: SendContext,
    reply_to: str | None = None,
    attachment_ids: Sequence[str] = (),
) -> Message | Accepted[Message]:
    """A text, or files with a text or without one."""
    body = ReplyMessageIn(
        to=to,
        sources=source,
        message=text,
        attachment_ids=attachment_ids,
        agent_id=send_context.agent_id,
        reply_to=reply_to,
    )
    return await _send(call, body, send_context)


async def _send(call: OutboundCall, body: AnySendIn, send_context: SendContext) -> Message | Accepted[Message]:
    plan = await preflight.prepare(call.context, call.company, body, send_context)
    call_record = None
    if send_context.is_api_call:
        call_record = history.start_record(call.context.vault, call.company, plan.clock, call.request)
    id = MESSAGE_ID.new()
    plan = address_files(call.context, plan, id)
    message = await call.intend(
        lambda tx: _record(tx, call.company, plan, call_record, send_context, id),
        present=plan.conceal,
        single_statement=lambda tx: _record_with_one_statement(tx, call.company, plan, call_record, send_context, id),
    )
    call.is_recorded = True
    return await deliver(call, plan, call_record, message)


async def _record_with_one_statement(
    tx: Tx, company: Company, plan: SendPlan, call_record: CallRecord | None, send_context: SendContext, id: str
) -> Message | None:
    """Stores a message to a known contact with one statement; None if it takes more than that."""
    if call_record is None or plan.thread is None or plan.draft.files or send_context.agent_id is not None:
        return None
    if plan.connected.channel.capabilities.max_in_window is not None:
        return None
    recipient = MessageRecipient(plan.thread.contact_id, plan.customer_id)
    link = await _link_ticket(tx, company, plan, send_context, id, recipient)
    new = _build_new(plan, call_record, send_context, id, recipient, link)
    message = plan.reveal(build_message(new))
    record_values = history.build_record_values(call_record, message)
    is_stored = await queries.record(tx, company.id, plan.to, new, record_values)
    return message if is_stored else None


async def _record(
    tx: Tx, company: Company, plan: SendPlan, call_record: CallRecord | None, send_context: SendContext, id: str
) -> Message:
    """Stores the message before the channel is called, with its contact, its ticket and the record of the call."""
    connection, draft = plan.connected.connection, plan.draft
    quota = plan.connected.channel.capabilities.max_in_window
    recipient = await contacts.record_outbound(tx, company, connection.id, plan.to, id, quota)
    if recipient is None:
        raise WindowClosed(QUOTA_USED.format(most=quota))
    link = await _link_ticket(tx, company, plan, send_context, id, recipient)
    new = _build_new(plan, call_record, send_context, id, recipient, link)
    message = plan.reveal(await messages.record_outbound(tx, company, new))
    if draft.files:
        sent = [(each.type, each.file) for each in draft.files]
        await media.record_sent(tx, connection, id, sent, draft.files[0].field)
    if call_record is not None:
        await history.record(tx, call_record, message)
    return message


def _build_new(
    plan: SendPlan,
    call_record: CallRecord | None,
    send_context: SendContext,
    id: str,
    recipient: MessageRecipient,
    link: TicketLink | None,
) -> NewMessage:
    connection, draft = plan.connected.connection, plan.draft
    return NewMessage(
        id=id,
        direction="out",
        source=connection.source,
        connection_id=connection.id,
        contact_id=recipient.contact_id,
        customer_id=recipient.customer_id,
        identity_kind=plan.to.kind,
        identity=plan.to.value,
        client_number=plan.to.value,
        connected_number=plan.connected.own_name,
        quoted=plan.answered.message_id if plan.answered else plan.quoted,
        parts=plan.build_parts(),
        type=draft.type,
        body=draft.stored_body or draft.body,
        subject=draft.subject,
        template_id=draft.template.name if draft.template else None,
        media_url=draft.media_url,
        attachments=encode([each.file.attachment for each in draft.files]),
        interactive=draft.interactive,
        metadata=draft.metadata,
        feature_source=send_context.feature_source,
        agent_id=send_context.agent_id,
        ticket_id=link.ticket_id if link else None,
        status="pending",
        # The ticket's time, so that the message sorts with its ticket entry.
        created_at=(link.at if link else None) or plan.clock.now,
        request_id=call_record.id if call_record else None,
        request_stored_at=call_record.clock.real if call_record else None,
    )


async def _link_ticket(
    tx: Tx, company: Company, plan: SendPlan, send_context: SendContext, id: str, recipient: MessageRecipient
) -> TicketLink | None:
    tickets, connection_id, contact_id = TICKETS.installed, plan.connected.connection.id, recipient.contact_id
    if send_context.yields_to_agent and await tickets.is_handled(tx, company, connection_id, contact_id):
        raise ActiveTicket
    message = OutboundMessage(
        message_id=id,
        connection_id=connection_id,
        contact_id=contact_id,
        body=plan.draft.stored_body or plan.draft.body or plan.draft.type,
        agent_id=send_context.agent_id,
        ticket_id=send_context.ticket_id,
        is_handover=send_context.is_handover,
        seen_sequence=send_context.seen_sequence,
        opening=_build_opening(plan, recipient) if send_context.opens_ticket else None,
    )
    return await tickets.link_outbound(tx, company, message)


def _build_opening(plan: SendPlan, recipient: MessageRecipient) -> TicketOpening:
    return TicketOpening(
        source=plan.connected.connection.source,
        customer_id=recipient.customer_id,
        identity=plan.to.value,
        client_number=plan.to.value,
        connected_number=plan.connected.own_name,
    )
