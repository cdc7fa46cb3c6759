"""Starts a conversation with a customer, from their record or an order."""

from sapa.customers import actions as customers
from sapa.db.pool import Connection
from sapa.http.errors import Invalid
from sapa.http.outbound_call import OutboundCall
from sapa.http.responses import Accepted
from sapa.messaging.channels.interface import Identity, Source
from sapa.messaging.channels.registry import CHANNELS
from sapa.messaging.contacts import actions as contacts
from sapa.messaging.messages.types import Message
from sapa.messaging.sending import actions as sending
from sapa.messaging.sending.types import MessageIn, SendContext, TemplateMessageIn
from sapa.orders import actions as orders
from sapa.support.agents import actions as agents
from sapa.support.requests import TicketIn
from sapa.values.company import Company


async def start(call: OutboundCall, body: TicketIn) -> Message | Accepted[Message]:
    """Opens the ticket with the message, in one transaction. A chat that has an active ticket continues there."""
    if (body.body is None) == (body.template_name is None):
        raise Invalid.field("body", "is required, or templateName; not both")
    company = call.company
    async with call.context.database.transaction() as tx:
        agent = await agents.get_active_agent(tx, company, body.agent_id)
        to = await _get_recipient(tx, company, body)
    send_context = SendContext(
        agent_id=agent.id, feature_source="AI_AGENT" if agent.type == "ai" else "INBOX", opens_ticket=True
    )
    if body.template_name is not None:
        template = TemplateMessageIn(
            to=to,
            sources=body.source,
            agent_id=agent.id,
            template_name=body.template_name,
            params=body.params,
            language=body.language,
        )
        return await sending.send_within(call, template, send_context)
    message = MessageIn(to=to, sources=body.source, agent_id=agent.id, message=body.body or "")
    return await sending.send_within(call, message, send_context)


async def _get_recipient(db: Connection, company: Company, body: TicketIn) -> str:
    """How the channel knows the customer; without a channel their number, else their address."""
    customer_id = body.customer_id
    if body.order_id is not None:
        order = await orders.find(db, company, body.order_id)
        if order is None or order.customer_id is None:
            raise Invalid.field("orderId", "must be the id of an order with a customer")
        customer_id = order.customer_id
    if customer_id is None:
        raise Invalid.field("customerId", "is required, or orderId")
    customer = await customers.find_customer(db, company, customer_id)
    if customer is None:
        raise Invalid.field("customerId", f"must be the id of a customer; {customer_id} is not")
    known = await contacts.list_customer_identities(db, company, customer_id)
    own = [("phone", customer.phone_number), ("email", customer.email)]
    identities = [*(Identity(kind, value) for kind, value in own if value), *known]
    return _choose(identities, body.source)


def _choose(identities: list[Identity], source: Source | None) -> str:
    kinds = [kind.name for kind in CHANNELS[source].capabilities.identities] if source else ["phone", "email"]
    for kind in kinds:
        for identity in identities:
            if identity.kind == kind:
                return identity.value
    raise Invalid.field("customerId", "must be a customer whom this channel can reach")
