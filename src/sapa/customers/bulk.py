"""Creates and updates many customers at once, by the same rules as one."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec
from msgspec import UNSET, Struct

from sapa.customers import actions, queries, subscriptions
from sapa.customers.edit_log import build_edit_log
from sapa.customers.profile import Profile, build_customer, build_profile, profile_of, revise_profile
from sapa.customers.subscriptions import ConsentProofIn, ProfileChange
from sapa.customers.types import (
    Customer,
    CustomerCreated,
    CustomerIn,
    CustomerPatch,
    CustomerRef,
    CustomerRenamed,
    CustomerUpdated,
    IdentityConflict,
    build_ref,
)
from sapa.db.pool import Tx
from sapa.events import EncodedEvents, encode_events
from sapa.http.errors import ApiError
from sapa.ports import publish
from sapa.timeline import actions as timeline
from sapa.timeline.actions import NewTimelineEntry
from sapa.timeline.types import EncodedEntries
from sapa.values.change_actor import SYSTEM, ChangeActor
from sapa.values.company import Company
from sapa.values.ids import CUSTOMER_ID

Outcome = Literal["created", "updated", "unchanged"]


class BulkCustomer(Struct, frozen=True):
    """One of many customers: matched by external id, else by id, else by contact if it says so, else new."""

    external_id: str | None
    id: str | None
    patch: CustomerPatch
    """A subclass may have more fields, which are ignored."""
    matches_contact: bool = False
    """Whether it is the customer with the same e-mail address, or else the one with the same phone number and no other
    e-mail address. A customer of another external id is not; one without any gets this one's."""
    proof: ConsentProofIn | None = None
    """Of its subscriptions."""
    profile: Profile | None = None
    """As a new customer would have it, if it was prepared and is valid."""


class CustomerChange(Struct, frozen=True):
    """What the customer at an index of the batch was, and what it becomes."""

    index: int
    stored: Customer | None
    profile: Profile
    proof: ConsentProofIn | None = None
    sets_subscriptions: bool = False


def prepare(company: Company, row: BulkCustomer) -> BulkCustomer:
    """Builds the profile ahead, without the database; an invalid row is refused when it is stored."""
    try:
        return msgspec.structs.replace(row, profile=build_profile(company, _as_new(row)))
    except ApiError:
        return row


async def store(tx: Tx, company: Company, row: BulkCustomer, actor: ChangeActor = SYSTEM) -> Outcome:
    """Creates or updates one customer."""
    stored = (await _lock_stored(tx, company, [row]))[0]
    if stored is None:
        await actions.create(tx, company, _as_new(row), actor, row.proof)
        return "created"
    customer = await actions.update(
        tx, company, stored.id, _patch_for(stored, row), actor, external_id=row.external_id, proof=row.proof
    )
    return "unchanged" if profile_of(customer) == profile_of(stored) else "updated"


async def store_together(
    tx: Tx, company: Company, rows: Sequence[BulkCustomer], actor: ChangeActor = SYSTEM
) -> list[Outcome | None]:
    """Creates and updates many in a few statements.

    None for those that you have to store one by one afterwards, in order: they are invalid, or share an external id,
    an e-mail address or a phone number with another customer, stored or in the batch, or only add a proof.
    """
    stored = await _lock_stored(tx, company, rows)
    changes = [_build_change(company, index, row, stored[index]) for index, row in enumerate(rows)]
    outcomes: list[Outcome | None] = [None] * len(rows)
    new, changed = [], []
    distinct = _without_conflicts([change for change in changes if change is not None])
    for change in await _resolve_subscriptions(tx, company, distinct):
        if change.stored is None:
            new.append(change)
        elif change.profile == profile_of(change.stored):
            outcomes[change.index] = None if change.proof else "unchanged"
        elif _has_same_contact(change.profile, profile_of(change.stored)):
            changed.append(change)
    for index in await _insert(tx, company, new, actor):
        outcomes[index] = "created"
    for index in await _update(tx, company, changed, actor):
        outcomes[index] = "updated"
    return outcomes


async def _resolve_subscriptions(tx: Tx, company: Company, changes: Sequence[CustomerChange]) -> list[CustomerChange]:
    profiles = await subscriptions.resolve(tx, company, [_build_profile_change(change) for change in changes])
    return [
        change if profile is change.profile else msgspec.structs.replace(change, profile=profile)
        for change, profile in zip(changes, profiles, strict=True)
    ]


def _build_profile_change(change: CustomerChange, id: str | None = None) -> ProfileChange:
    stored = change.stored
    if stored is None:
        return ProfileChange(id, None, change.profile, change.proof)
    before = profile_of(stored)
    return ProfileChange(stored.id, before, change.profile, change.proof, change.sets_subscriptions)


class ConcurrentChange(Exception):
    """Another transaction created one of the customers; store the rows one by one."""


async def find_or_create_together(
    tx: Tx, company: Company, profiles: Sequence[Profile], *, prefers_email: bool = False
) -> list[CustomerRef | IdentityConflict]:
    """For each, the customer with this e-mail address or phone number, or a new one, or why there is none.

    Of two different customers the one with the e-mail address is taken if it `prefers_email`; otherwise it is an
    error. The customers' names cannot change until the transaction ends.
    """
    emails = {key for profile in profiles if (key := profile.email_key)}
    phones = {profile.phone_number for profile in profiles if profile.phone_number}
    found = await queries.list_share_locked_by_contact(tx, company.id, list(emails), list(phones))
    matcher = ContactMatcher(found, prefers_email=prefers_email)
    new = await _create(tx, company, [profile for profile in profiles if matcher.claim(profile)])
    matcher.add(map(build_ref, new))
    return [matcher.get(profile) for profile in profiles]


class ContactMatcher:
    """Finds customers by e-mail address and phone number, among stored customers and those to be created."""

    def __init__(self, customers: Iterable[CustomerRef], *, prefers_email: bool) -> None:
        self._by_key: dict[tuple[str, str], CustomerRef] = {}
        self._claimed: set[tuple[str, str]] = set()
        self._prefers_email = prefers_email
        self.add(customers)

    def add(self, customers: Iterable[CustomerRef]) -> None:
        for customer in customers:
            for key in _contact_keys(customer.email and customer.email.casefold(), customer.phone_number):
                self._by_key[key] = customer

    def claim(self, profile: Profile) -> bool:
        """Whether the caller creates this customer: nobody has the contact, and no earlier profile claimed it."""
        keys = _contact_keys(profile.email_key, profile.phone_number)
        if any(key in self._by_key or key in self._claimed for key in keys):
            return False
        self._claimed.update(keys)
        return True

    def get(self, profile: Profile) -> CustomerRef | IdentityConflict:
        keys = _contact_keys(profile.email_key, profile.phone_number)
        found = [customer for key in keys if (customer := self._by_key.get(key))]
        if not found:
            raise ConcurrentChange
        if len({customer.id for customer in found}) > 1 and not self._prefers_email:
            return IdentityConflict()
        return found[0]


def _contact_keys(email_key: str | None, phone_number: str | None) -> list[tuple[str, str]]:
    """The e-mail address comes first."""
    keys = [("email", email_key), ("phone", phone_number)]
    return [(kind, key) for kind, key in keys if key]


async def _create(tx: Tx, company: Company, profiles: Sequence[Profile]) -> list[Customer]:
    if not profiles:
        return []
    profiles = await subscriptions.resolve(tx, company, [ProfileChange(None, None, profile) for profile in profiles])
    new = await _insert_new(tx, company, {CUSTOMER_ID.new(): profile for profile in profiles})
    if len(new.customers) < len(profiles):
        raise ConcurrentChange
    await _announce_new(tx, company, new)
    return new.customers


class NewCustomers(Struct, frozen=True):
    """Customers that were inserted together, and what they announce."""

    customers: list[Customer]
    events: EncodedEvents
    entries: EncodedEntries


async def _insert_new(tx: Tx, company: Company, profiles: Mapping[str, Profile]) -> NewCustomers:
    """Inserts the customers, by their ids, that conflict with no other. What they announce is built while the database
    stores them."""
    now = await queries.get_now(tx)
    inserting = asyncio.create_task(queries.insert_customers(tx, company.id, profiles, now))
    try:
        await asyncio.sleep(0)  # it sends its statement
        new = _build_new([build_customer(id, profile, now) for id, profile in profiles.items()])
    finally:
        inserted = await inserting
    if len(inserted) < len(profiles):
        return _build_new([customer for customer in new.customers if customer.id in inserted])
    return new


def _build_new(customers: list[Customer]) -> NewCustomers:
    entries = [NewTimelineEntry(customer.id, "customer_created") for customer in customers]
    events = encode_events([CustomerCreated(customer) for customer in customers])
    return NewCustomers(customers, events, timeline.encode_entries(entries))


async def _announce_new(tx: Tx, company: Company, new: NewCustomers) -> None:
    await timeline.announce_encoded(tx, company, new.events, new.entries, are_known=True)


async def list_share_locked(tx: Tx, company: Company, ids: Sequence[str]) -> dict[str, Customer]:
    """The customers with these ids; their names cannot change until the transaction ends."""
    return {customer.id: customer for customer in await queries.list_share_locked(tx, company.id, ids)} if ids else {}


def list_keys(company: Company, row: BulkCustomer) -> list[str]:
    """The e-mail address and phone number that the customer would claim; none for an invalid row."""
    email, phone = _find_contact(company, row)
    keys = {"email": email, "phoneNumber": phone}
    return [f"{name}:{key}" for name, key in keys.items() if key]


def _find_contact(company: Company, row: BulkCustomer) -> tuple[str | None, str | None]:
    """The e-mail address and phone number as they are compared; none for an invalid row."""
    if row.profile is not None:
        return row.profile.email_key, row.profile.phone_number
    contact = {name: value for name in ("email", "phone_number") if (value := getattr(row.patch, name))}
    try:
        profile = build_profile(company, CustomerIn(**contact))
    except ApiError:
        return None, None
    return profile.email_key, profile.phone_number


def _has_same_contact(profile: Profile, before: Profile) -> bool:
    """Then the change cannot conflict with another customer."""
    keys = (profile.email_key, profile.phone_number, profile.external_id)
    return keys == (before.email_key, before.phone_number, before.external_id)


async def _lock_stored(tx: Tx, company: Company, rows: Sequence[BulkCustomer]) -> list[Customer | None]:
    stored = await _lock_by_id(tx, company, rows)
    indexes = [index for index, row in enumerate(rows) if row.matches_contact and stored[index] is None]
    if not indexes:
        return stored
    contacts = {index: _find_contact(company, rows[index]) for index in indexes}
    emails = [email for email, _ in contacts.values() if email]
    phones = [phone for _, phone in contacts.values() if phone]
    found = await queries.lock_customers_by_contact(tx, company.id, emails, phones)
    by_email = {profile_of(customer).email_key: customer for customer in found if customer.email}
    by_phone = {customer.phone_number: customer for customer in found if customer.phone_number}
    for index, (email, phone) in contacts.items():
        match = by_email.get(email or "")
        owner = by_phone.get(phone or "")
        if match is None and owner is not None and (email is None or owner.email is None):
            match = owner
        if match is not None and (not rows[index].external_id or match.external_id is None):
            stored[index] = match
    return stored


async def _lock_by_id(tx: Tx, company: Company, rows: Sequence[BulkCustomer]) -> list[Customer | None]:
    external_ids = [row.external_id for row in rows if row.external_id]
    ids = [row.id for row in rows if row.id and not row.external_id]
    if not external_ids and not ids:
        return [None] * len(rows)
    stored = await queries.lock_customers(tx, company.id, external_ids, ids)
    by_external_id = {customer.external_id: customer for customer in stored}
    by_id = {customer.id: customer for customer in stored}
    return [by_external_id.get(row.external_id) if row.external_id else by_id.get(row.id or "") for row in rows]


def _build_change(company: Company, index: int, row: BulkCustomer, stored: Customer | None) -> CustomerChange | None:
    try:
        if stored is None:
            return CustomerChange(index, None, row.profile or build_profile(company, _as_new(row)), row.proof)
        profile = revise_profile(company, stored, _patch_for(stored, row))
        if stored.external_id is None and row.external_id:
            profile = msgspec.structs.replace(profile, external_id=row.external_id)
        sets_subscriptions = row.patch.subscription_status is not UNSET
        return CustomerChange(index, stored, profile, row.proof, sets_subscriptions)
    except ApiError:
        return None


def _as_new(row: BulkCustomer) -> CustomerIn:
    patch = _with_addresses(row.patch, keep=frozenset())
    fields = {name: value for name in CustomerPatch.__struct_fields__ if (value := getattr(patch, name)) is not UNSET}
    return CustomerIn(external_id=row.external_id, **fields)


def _patch_for(stored: Customer, row: BulkCustomer) -> CustomerPatch:
    if not row.patch.addresses:
        return row.patch
    ids = {address["id"] for address in msgspec.json.decode(stored.addresses)}
    return _with_addresses(row.patch, keep=frozenset(ids))


def _with_addresses(patch: CustomerPatch, keep: frozenset[str]) -> CustomerPatch:
    """Drops the ids of addresses that belong to another customer, as an export of another company has them."""
    if not patch.addresses:
        return patch
    addresses = [
        address if address.id is None or address.id in keep else msgspec.structs.replace(address, id=None)
        for address in patch.addresses
    ]
    return msgspec.structs.replace(patch, addresses=addresses)


def _without_conflicts(changes: Sequence[CustomerChange]) -> list[CustomerChange]:
    """The changes that share no unique value with an earlier one."""
    seen: set[tuple[str, str]] = set()
    distinct = []
    for change in changes:
        keys = set(_list_unique_values(change))
        if keys.isdisjoint(seen):
            distinct.append(change)
        seen |= keys
    return distinct


def _list_unique_values(change: CustomerChange) -> Iterable[tuple[str, str]]:
    """Of the customer, before and after the change."""
    profiles = [change.profile] if change.stored is None else [change.profile, profile_of(change.stored)]
    for profile in profiles:
        if profile.external_id:
            yield "external_id", profile.external_id
        if profile.email_key:
            yield "email", profile.email_key
        if profile.phone_number:
            yield "phone", profile.phone_number
    if change.stored is not None:
        yield "id", change.stored.id


async def _insert(tx: Tx, company: Company, changes: Sequence[CustomerChange], actor: ChangeActor) -> list[int]:
    """The indexes of the customers that were inserted."""
    if not changes:
        return []
    by_id = {CUSTOMER_ID.new(): change for change in changes}
    new = await _insert_new(tx, company, {id: change.profile for id, change in by_id.items()})
    inserted = [_build_profile_change(by_id[customer.id], customer.id) for customer in new.customers]
    await subscriptions.record(tx, company, inserted, actor)
    await _announce_new(tx, company, new)
    return [by_id[customer.id].index for customer in new.customers]


async def _update(tx: Tx, company: Company, changes: Sequence[CustomerChange], actor: ChangeActor) -> list[int]:
    if not changes:
        return []
    await subscriptions.record(tx, company, [_build_profile_change(change) for change in changes], actor)
    ids = [change.stored.id for change in changes if change.stored]
    customers = await queries.update_customers(tx, company.id, ids, [change.profile for change in changes])
    refs = {stored.id: build_ref(stored) for change in changes if (stored := change.stored)}
    for customer in customers:
        if build_ref(customer) != refs[customer.id]:
            await publish(tx, company, CustomerRenamed(build_ref(customer)))
    entries = [
        NewTimelineEntry(stored.id, "customer_updated", edit_log=build_edit_log(profile_of(stored), change.profile))
        for change in changes
        if (stored := change.stored)
    ]
    events = [CustomerUpdated(customer) for customer in customers]
    await timeline.announce(tx, company, events, entries, are_known=True)
    return [change.index for change in changes]
