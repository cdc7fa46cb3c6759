"""Joins what belongs together: two tickets of one customer, a contact and a customer."""

from sapa.access.actions import read_clock
from sapa.db.pool import Tx
from sapa.events import emit
from sapa.http.errors import Invalid
from sapa.messaging.contacts import actions as contacts
from sapa.messaging.messages import actions as messages
from sapa.support import queries
from sapa.support.mentions import actions as mentions
from sapa.support.rows import LockedTicket
from sapa.support.scheduled_replies import actions as scheduled_replies
from sapa.support.ticket_change import TicketChange
from sapa.support.types import DifferentCustomers, Ticket, TicketClosed, TicketResolved, TicketUpdated
from sapa.values.company import Company


async def merge(tx: Tx, company: Company, id: str, other_id: str) -> Ticket:
    """Moves the messages, notes and scheduled replies of another ticket of the customer into this one, and resolves the
    other. Its customer's wait, its labels and its measured past remain."""
    if id == other_id:
        raise Invalid.field("ticketId", "must be another ticket")
    await queries.get_ticket(tx, company.id, id)
    locked = {each.id: each for each in await queries.lock_tickets(tx, company.id, [id, other_id])}
    if other_id not in locked:
        raise Invalid.field("ticketId", f"must be the id of a ticket; {other_id} is not")
    _check_same_customer(locked[id], locked[other_id])
    change, other = TicketChange(locked[id]), TicketChange(locked[other_id])
    now = (await read_clock(tx, company.id)).now
    change.inherit(other)
    label_ids = list(dict.fromkeys([*change.locked.label_ids, *other.locked.label_ids]))
    if label_ids != change.locked.label_ids:
        change.label(now, label_ids, None)
    if other.locked.merged_into_id != id:
        event = TicketClosed if other.locked.is_active else TicketUpdated
        other.merge(now, id)
        change.record_merge(now, other_id)
        await emit(tx, company, event(await other.write(tx, company)))
    await messages.move_to_ticket(tx, company, other_id, id)
    await queries.move_notes(tx, company.id, other_id, id)
    await mentions.move(tx, company, other_id, id)
    await scheduled_replies.move(tx, company, other_id, id)
    ticket = await change.write(tx, company)
    await emit(tx, company, TicketUpdated(ticket))
    return ticket


def _check_same_customer(ticket: LockedTicket, other: LockedTicket) -> None:
    if not ticket.is_active:
        raise TicketResolved
    is_same_customer = ticket.customer_id is not None and ticket.customer_id == other.customer_id
    if not is_same_customer and ticket.contact_id != other.contact_id:
        raise DifferentCustomers


async def link_customer(tx: Tx, company: Company, id: str, customer_id: str) -> Ticket:
    """Says which customer the ticket's contact is. All tickets of the contact follow."""
    target = await queries.get_reply_target(tx, company.id, id)
    await contacts.link_customer(tx, company, target.contact_id, customer_id)
    await queries.set_customer(tx, company.id, target.contact_id, customer_id)
    # Written without a change: the event has the new customer, and open pages are told.
    ticket = await TicketChange(await queries.lock_ticket(tx, company.id, id)).write(tx, company)
    await emit(tx, company, TicketUpdated(ticket))
    return ticket
