"""Contacts: the people that channels know, their customers, and the conversations with them."""

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
    canonical_kind,
    find_usable,
    list_customer_keys,
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
    """The contact who wrote and their customer; both are created if they do not exist."""
    stored = await _lock_contact(tx, company, identities, name)
    if called := _clean(name):
        await queries.set_name(tx, company.id, stored.id, called)
    contact = await _load(tx, company, stored)
    return await _with_customer(tx, company, contact, called)


async def find_or_create_contact(
    tx: Tx, company: Company, identities: Sequence[Identity], name: str | None = None
) -> Contact:
    """The contact, created if it does not exist, with its customer if there is one."""
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
    """Records a message of the contact: the window opens again and its quota is unused. Returns when the contact last
    wrote, which is later than `at` if messages arrive late."""
    return await queries.record_inbound(tx, company.id, connection_id, contact_id, at, message_id)


async def record_outbound(
    tx: Tx, company: Company, connection_id: str, to: Identity, message_id: str, quota: int | None
) -> MessageRecipient | None:
    """Counts a message against the channel's quota, if it has one; None if the quota is used up.

    Creates the contact if it does not exist; only a person who writes becomes a customer. Without a quota an existing
    contact is not locked: a lock would queue all messages to one person, each with a connection in hand.
    """
    thread = None if quota is not None else await find_thread(tx, company, connection_id, to)
    if thread is not None:
        stored = await queries.find_customer_id(tx, company.id, thread.contact_id)
        return MessageRecipient(thread.contact_id, stored or await find_matching_customer(tx, company, to))
    contact = await find_or_create_contact(tx, company, [to])
    if not await queries.count_outbound(tx, company.id, connection_id, contact.id, message_id, quota):
        return None
    return MessageRecipient(contact.id, contact.customer_id)


async def find_matching_customer(db: Connection, company: Company, to: Identity) -> str | None:
    """The recipient may be a customer who never wrote."""
    phones, email = list_customer_keys(to)
    if not phones and email is None:
        return None
    customer = await customers.find_by_contact(db, company, phones, email)
    return None if customer is None else customer.id


async def find_customer_id(tx: Tx, company: Company, identity: Identity) -> str | None:
    """The customer of the contact with this identity, else the one who has this number or address."""
    kind, key = canonical_kind(identity.kind), build_key(identity)
    known = await queries.find_customer_of_identity(tx, company.id, kind, key)
    return known or await find_matching_customer(tx, company, canonical(identity))


async def uncount_outbound(tx: Tx, company: Company, connection_id: str, to: Identity) -> None:
    """The channel refused a message that was counted."""
    await queries.uncount_outbound(tx, company.id, connection_id, canonical_kind(to.kind), build_key(to))


async def add_alias(tx: Tx, company: Company, to: Identity, alias: Identity) -> None:
    """Adds another identity by which the channel knows the contact."""
    await _lock_contact(tx, company, [to, alias], None)


async def change_number(tx: Tx, company: Company, changed: NumberChanged) -> None:
    await _lock_contact(tx, company, [changed.old, changed.new], None)


async def link_customer(tx: Tx, company: Company, contact_id: str, customer_id: str) -> None:
    """Says which customer a contact is. Raises Invalid for an unknown customer."""
    if await customers.find_share_locked(tx, company, customer_id) is None:
        raise Invalid.field("customerId", f"must be the id of a customer; {customer_id} is not")
    await queries.set_customer(tx, company.id, contact_id, customer_id)


async def list_customer_identities(db: Connection, company: Company, customer_id: str) -> list[Identity]:
    """What the channels know the customer as, the spelling that was met first."""
    rows = await queries.list_customer_identities(db, company.id, customer_id)
    return [Identity(row.kind, row.spellings[0]) for row in rows]


async def find_thread(db: Connection, company: Company, connection_id: str, identity: Identity) -> Thread | None:
    """None if neither side has written yet."""
    kind, key = canonical_kind(identity.kind), build_key(identity)
    return await queries.find_thread(db, company.id, connection_id, kind, key)


async def find_window(
    db: Connection, company: Company, source: Source, connection_id: str, contact_id: str
) -> Window | None:
    """The window for free-form messages; None if the channel has no windows."""
    duration = CHANNELS[source].capabilities.window
    if duration is None:
        return None
    return await queries.find_window(db, company.id, connection_id, contact_id, duration)


async def _lock_contact(tx: Tx, company: Company, identities: Sequence[Identity], name: str | None) -> StoredContact:
    """The contact with these identities, locked until the transaction ends.

    Two first messages may race: the one that finds an identity taken searches again, and finds the other's contact.
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
    """Identities that arrive together belong to one person. Two customers are never merged."""
    contact = next((each for each in stored if each.customer_id), stored[0])
    others = [each.id for each in stored if each.customer_id is None and each.id != contact.id]
    if others:
        await queries.reassign(tx, company.id, contact.id, others)
        await TICKETS.installed.merge_contacts(tx, company, contact.id, others)
    return contact


async def _load(tx: Tx, company: Company, stored: StoredContact) -> Contact:
    rows = await queries.list_identities(tx, company.id, stored.id)
    identities = [Identity(row.kind, value) for row in rows for value in row.spellings]
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
    customer = await customers.find_by_contact(tx, company, phones, email)
    return None if customer is None else customer.id


async def _create_customer(tx: Tx, company: Company, contact: Contact, name: str | None) -> str | None:
    """None for a person without a usable phone number or e-mail address."""
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
    """Without NUL characters, and cut to the length of a customer's name."""
    return " ".join((name or "").replace("\0", "").split())[:MAX_NAME_LENGTH] or None
