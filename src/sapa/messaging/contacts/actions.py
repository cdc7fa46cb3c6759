"""Contacts: whom the channels know, the customers they are, and the conversations with them."""

from collections.abc import Sequence
from datetime import datetime

from sapa.customers import actions as customers
from sapa.customers.types import CustomerIn, IdentityConflict
from sapa.db import races
from sapa.db.pool import Connection, Tx
from sapa.http.errors import Invalid
from sapa.messaging.channels.identities import (
    build_key,
    canonical,
    find_usable,
    list_spellings,
)
from sapa.messaging.channels.interface import Identity, NumberChanged, Source
from sapa.messaging.channels.registry import CHANNELS
from sapa.messaging.contacts import queries
from sapa.messaging.contacts.queries import StoredContact
from sapa.messaging.contacts.types import CONTACT_ID, Contact, MessageRecipient, Thread, Window
from sapa.messaging.tickets import TICKETS
from sapa.values.company import Company

MAX_TRIES = 4
MAX_NAME_LENGTH = 255


async def find_or_create(tx: Tx, company: Company, identities: Sequence[Identity], name: str | None = None) -> Contact:
    """The contact who wrote, and the customer they are; both are made when they are not known yet."""
    stored = await _lock_contact(tx, company, identities, name)
    if called := _clean(name):
        await queries.set_name(tx, company.id, stored.id, called)
    contact = await _load(tx, company, stored)
    return await _with_customer(tx, company, contact, called)


async def find_or_create_contact(
    tx: Tx, company: Company, identities: Sequence[Identity], name: str | None = None
) -> Contact:
    """The contact, made when it is not known yet, and the customer they are if there is one already."""
    contact = await _load(tx, company, await _lock_contact(tx, company, identities, name))
    if contact.customer_id and await customers.find_customer(tx, company, contact.customer_id):
        return contact
    customer_id = await _find_customer(tx, company, contact)
    if customer_id is None:
        return Contact(contact.id, None, contact.identities)
    return await _set_customer(tx, company, contact, customer_id)


async def record_inbound(
    tx: Tx, company: Company, connection_id: str, contact_id: str, at: datetime, message_id: str
) -> datetime:
    """The contact wrote at this instant of the company's time: the window is open again, its quota unused. When they
    last wrote, which may be later where messages come in late."""
    return await queries.record_inbound(tx, company.id, connection_id, contact_id, at, message_id)


async def record_outbound(
    tx: Tx, company: Company, connection_id: str, to: Identity, message_id: str, most: int | None
) -> MessageRecipient | None:
    """A message goes out: one of as many as the channel takes, where it counts them; None when those are used up.

    The contact is made when it is new; a customer only comes of somebody who writes. Somebody who was written to before
    is only looked up, where nobody counts: a lock would make all messages to one person wait for one another, each with
    a connection in hand.
    """
    thread = None if most is not None else await find_thread(tx, company, connection_id, to)
    if thread is not None:
        stored = await queries.find_customer_id(tx, company.id, thread.contact_id)
        return MessageRecipient(thread.contact_id, stored or await _find_customer_id(tx, company, to))
    contact = await find_or_create_contact(tx, company, [to])
    if not await queries.count_outbound(tx, company.id, connection_id, contact.id, message_id, most):
        return None
    return MessageRecipient(contact.id, contact.customer_id)


async def _find_customer_id(tx: Tx, company: Company, to: Identity) -> str | None:
    """Somebody may have become a customer otherwise than by writing."""
    if to.kind not in {"phone", "email"}:
        return None
    phones, email = (list_spellings(to.value), None) if to.kind == "phone" else ([], to.value)
    customer = await customers.find_by_spelling(tx, company, phones, email)
    return None if customer is None else customer.id


async def uncount_outbound(tx: Tx, company: Company, connection_id: str, to: Identity) -> None:
    """The channel refused a message that was counted."""
    await queries.uncount_outbound(tx, company.id, connection_id, canonical(to).kind, build_key(to))


async def add_alias(tx: Tx, company: Company, to: Identity, alias: Identity) -> None:
    """The channel knows this contact under another name, too."""
    await _lock_contact(tx, company, [to, alias], None)


async def change_number(tx: Tx, company: Company, changed: NumberChanged) -> None:
    await _lock_contact(tx, company, [changed.old, changed.new], None)


async def find_thread(db: Connection, company: Company, connection_id: str, identity: Identity) -> Thread | None:
    """None when neither side has written yet."""
    kind, key = canonical(identity).kind, build_key(identity)
    row = await queries.find_thread(db, company.id, connection_id, kind, key)
    if row is None:
        return None
    last = datetime.fromisoformat(row.last_inbound_at) if row.last_inbound_at else None
    return Thread(row.contact_id, last, row.sent_since, row.last_message_id, row.last_inbound_id)


async def find_window(
    db: Connection, company: Company, source: Source, connection_id: str, contact_id: str
) -> Window | None:
    """For how long the contact may be sent free messages; None where that is always so."""
    lasts = CHANNELS[source].capabilities.window
    if lasts is None:
        return None
    return await queries.find_window(db, company.id, connection_id, contact_id, lasts)


async def _lock_contact(tx: Tx, company: Company, identities: Sequence[Identity], name: str | None) -> StoredContact:
    """The contact with these identities, locked until this transaction ends.

    Two first messages may race: the one that finds an identity taken looks again, and finds its twin's contact.
    """
    value_by_key = {(each.kind, build_key(each)): each.value for each in map(canonical, reversed(identities))}
    kinds, keys = [kind for kind, _ in value_by_key], [key for _, key in value_by_key]
    values = list(value_by_key.values())

    async def find() -> Sequence[StoredContact] | None:
        return await queries.lock_by_identities(tx, company.id, kinds, keys) or None

    async def create() -> Sequence[StoredContact]:
        contact = StoredContact(CONTACT_ID.new(), None)
        await queries.insert_contact(tx, company.id, contact.id, _clean(name))
        await queries.insert_identities(tx, company.id, contact.id, kinds, keys, values)
        return [contact]

    contacts, is_new = await races.find_or_create(tx, find, create, MAX_TRIES)
    if is_new:
        return contacts[0]
    contact = await _merge(tx, company, contacts)
    await queries.add_identities(tx, company.id, contact.id, kinds, keys, values)
    return contact


async def _merge(tx: Tx, company: Company, stored: Sequence[StoredContact]) -> StoredContact:
    """Identities that came together belong to one person. Of two customers, neither becomes the other."""
    contact = next((each for each in stored if each.customer_id), stored[0])
    others = [each.id for each in stored if each.customer_id is None and each.id != contact.id]
    if others:
        await queries.reassign(tx, company.id, contact.id, others)
        await TICKETS.installed.merge_contacts(tx, company, contact.id, others)
    return contact


async def _load(tx: Tx, company: Company, stored: StoredContact) -> Contact:
    rows = await queries.list_identities(tx, company.id, stored.id)
    identities = [Identity(row.kind, value) for row in rows for value in row.spellings]  # type: ignore[arg-type]
    return Contact(stored.id, stored.customer_id, identities)


async def _with_customer(tx: Tx, company: Company, contact: Contact, name: str | None) -> Contact:
    if contact.customer_id and await customers.find_customer(tx, company, contact.customer_id):
        return contact
    customer_id = await _find_customer(tx, company, contact) or await _create_customer(tx, company, contact, name)
    if customer_id is None:
        return Contact(contact.id, None, contact.identities)
    return await _set_customer(tx, company, contact, customer_id)


async def _set_customer(tx: Tx, company: Company, contact: Contact, customer_id: str) -> Contact:
    await queries.set_customer(tx, company.id, contact.id, customer_id)
    return Contact(contact.id, customer_id, contact.identities)


async def _find_customer(tx: Tx, company: Company, contact: Contact) -> str | None:
    phones = [spelling for phone in _values(contact, "phone") for spelling in list_spellings(phone)]
    email = next(iter(_values(contact, "email")), None)
    if not phones and email is None:
        return None
    customer = await customers.find_by_spelling(tx, company, phones, email)
    return None if customer is None else customer.id


async def _create_customer(tx: Tx, company: Company, contact: Contact, name: str | None) -> str | None:
    """None for somebody without a phone number or an e-mail address, or with one that cannot be used."""
    usable = (find_usable(phone, company.region) for phone in _values(contact, "phone"))
    phone, email = next(filter(None, usable), None), next(iter(_values(contact, "email")), None)
    if phone is None and email is None:
        return None
    first, _, last = (name or "").partition(" ")
    body = CustomerIn(phone_number=phone, email=email, first_name=first or None, last_name=last.strip() or None)
    try:
        return (await customers.find_or_create(tx, company, body)).id
    except (Invalid, IdentityConflict):
        return None


def _values(contact: Contact, kind: str) -> list[str]:
    return [identity.value for identity in contact.identities if identity.kind == kind]


def _clean(name: str | None) -> str | None:
    """Without what the database cannot hold, and not longer than a customer's name may be."""
    return " ".join((name or "").replace("\0", "").split())[:MAX_NAME_LENGTH] or None
