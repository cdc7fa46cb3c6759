"""How customers change."""

from collections.abc import AsyncIterator, Sequence

import asyncpg
import msgspec
from msgspec import UNSET

from sapa.customers import queries, subscriptions
from sapa.customers.edit_log import build_edit_log
from sapa.customers.profile import Profile, build_customer, build_profile, profile_of, revise_profile
from sapa.customers.subscriptions import ConsentProofIn, ProfileChange
from sapa.customers.types import (
    Customer,
    CustomerCreated,
    CustomerDeleted,
    CustomerExists,
    CustomerIn,
    CustomerPatch,
    CustomerRef,
    CustomerRemoved,
    CustomerRenamed,
    CustomerUpdated,
    EmailTaken,
    ExternalIdTaken,
    IdentityConflict,
    PhoneNumberTaken,
    Subscription,
    build_ref,
)
from sapa.db import races
from sapa.db.pool import Connection, Tx
from sapa.events import emit
from sapa.http.errors import FieldError
from sapa.ports import publish
from sapa.timeline import actions as timeline
from sapa.timeline.actions import NewTimelineEntry
from sapa.values.change_actor import SYSTEM, ChangeActor
from sapa.values.company import Company
from sapa.values.ids import CUSTOMER_ID
from sapa.values.json import encode

MAX_INSERTS = 3
UNIQUE_FIELDS: dict[str, tuple[str, type[CustomerExists]]] = {
    "email_key": ("email", EmailTaken),
    "phone_number": ("phoneNumber", PhoneNumberTaken),
    "external_id": ("externalId", ExternalIdTaken),
}
"""The columns that no two customers of a company share, each with its field and its error."""


async def create(
    tx: Tx, company: Company, body: CustomerIn, actor: ChangeActor = SYSTEM, proof: ConsentProofIn | None = None
) -> Customer:
    """Raises CustomerExists, with the ids of those who already have the e-mail address, phone number or external id."""
    (profile,) = await subscriptions.resolve(tx, company, [ProfileChange(None, None, build_profile(company, body))])
    customer = await _insert(tx, company, profile)
    await subscriptions.record(tx, company, [ProfileChange(customer.id, None, profile, proof)], actor)
    entry = NewTimelineEntry(customer.id, "customer_created", actor_name=actor.name)
    await timeline.announce(tx, company, [CustomerCreated(customer)], [entry], are_known=True)
    return customer


async def update(
    tx: Tx,
    company: Company,
    id: str,
    patch: CustomerPatch,
    actor: ChangeActor = SYSTEM,
    *,
    external_id: str | None = None,
    proof: ConsentProofIn | None = None,
) -> Customer:
    """Writes and announces nothing when nothing changes. A customer without an external id gets this one."""
    customer = await queries.lock_customer(tx, company.id, id)
    return await _revise(tx, company, customer, patch, actor, external_id, proof)


async def upsert(
    tx: Tx, company: Company, external_id: str, body: CustomerPatch, actor: ChangeActor
) -> tuple[Customer, bool]:
    """The customer with the caller's own id, and whether it was just created.

    Of two concurrent first calls one creates the customer; the other gets a conflict, looks again, and updates it.
    """
    customer, is_new = await races.find_or_create(
        tx,
        lambda: queries.find_locked_by_external_id(tx, company.id, external_id),
        lambda: create(tx, company, _as_new(external_id, body), actor),
        conflict=CustomerExists,
    )
    return customer if is_new else await _revise(tx, company, customer, body, actor), is_new


def _as_new(external_id: str, body: CustomerPatch) -> CustomerIn:
    fields = {name: value for name in body.__struct_fields__ if (value := getattr(body, name)) is not UNSET}
    return CustomerIn(external_id=external_id, **fields)


async def find_customer(tx: Tx, company: Company, id: str) -> Customer | None:
    return await queries.find_customer(tx, company.id, id)


async def find_locked(tx: Tx, company: Company, id: str) -> Customer | None:
    """Locks the customer until this transaction ends."""
    return await queries.find_locked(tx, company.id, id)


async def find_share_locked(tx: Tx, company: Company, id: str) -> CustomerRef | None:
    """Keeps the customer unchanged until this transaction ends; others may do the same."""
    return await queries.find_share_locked(tx, company.id, id)


async def find_by_contact(tx: Tx, company: Company, phone_numbers: Sequence[str], email: str | None) -> Customer | None:
    """The customer with one of these variants of a phone number, else the one with this e-mail address."""
    return await queries.find_share_locked_by_contact(tx, company.id, phone_numbers, email)


async def list_names(db: Connection, company_id: int, ids: Sequence[str]) -> dict[str, str]:
    """By id; customers without a name are left out."""
    found = await queries.list_refs(db, company_id, ids)
    return {one.id: name for one in found if (name := " ".join(filter(None, (one.first_name, one.last_name))))}


async def list_all(db: Connection, company_id: int) -> list[Customer]:
    """All customers of the company, the oldest first."""
    return await queries.list_all_customers(db, company_id)


def stream_all(tx: Tx, company_id: int) -> AsyncIterator[list[Customer]]:
    """Like `list_all`, in batches."""
    return queries.stream_all_customers(tx, company_id)


def check(company: Company, body: CustomerIn) -> None:
    """Raises Invalid with the field that a new customer cannot have."""
    build_profile(company, body)


async def find_or_create(tx: Tx, company: Company, body: CustomerIn) -> Customer:
    """The existing customer with this e-mail address or phone number, unchanged, or a new one.

    Of two concurrent first calls, one creates the customer; the other gets a conflict, looks again, and finds it.
    """
    profile = build_profile(company, body)

    async def find() -> Customer | None:
        found = await queries.list_share_locked_by_identity(tx, company.id, profile)
        if len(found) > 1:
            raise IdentityConflict
        return found[0] if found else None

    customer, _ = await races.find_or_create(tx, find, lambda: create(tx, company, body), conflict=CustomerExists)
    return customer


async def delete(tx: Tx, company: Company, id: str) -> None:
    customer = await queries.delete_customer(tx, company.id, id)
    await publish(tx, company, CustomerRemoved(id))
    await timeline.purge_customer(tx, company, id)
    await emit(tx, company, CustomerDeleted(customer))


async def set_subscriptions(tx: Tx, company: Company, customer: Customer, changed: Sequence[Subscription]) -> Customer:
    """Updates `subscriptionStatus` after consent was recorded elsewhere; other entries stay. The customer must be
    locked."""
    before = profile_of(customer)
    statuses = {entry.app: entry for entry in [*subscriptions.read_subscriptions(before), *changed]}
    profile = msgspec.structs.replace(before, subscription_status=encode(list(statuses.values())))
    return await _write(tx, company, customer, profile, SYSTEM)


async def _revise(
    tx: Tx,
    company: Company,
    customer: Customer,
    patch: CustomerPatch,
    actor: ChangeActor,
    external_id: str | None = None,
    proof: ConsentProofIn | None = None,
) -> Customer:
    before, profile = profile_of(customer), revise_profile(company, customer, patch)
    if before.external_id is None and external_id is not None:
        profile = msgspec.structs.replace(profile, external_id=external_id)
    sets_subscriptions = patch.subscription_status is not UNSET
    change = ProfileChange(customer.id, before, profile, sets_subscriptions=sets_subscriptions)
    (profile,) = await subscriptions.resolve(tx, company, [change])
    await subscriptions.record(tx, company, [ProfileChange(customer.id, before, profile, proof)], actor)
    return await _write(tx, company, customer, profile, actor)


async def _write(tx: Tx, company: Company, customer: Customer, profile: Profile, actor: ChangeActor) -> Customer:
    before = profile_of(customer)
    if profile == before:
        return customer
    renamed = build_ref(build_customer(customer.id, profile, customer.updated_at))
    if renamed != build_ref(customer):
        # Before a new e-mail address or phone number locks the customer's key: who pays an order needs the key for the
        # first points, and has the order.
        await publish(tx, company, CustomerRenamed(renamed))
    customer = await _store(tx, company, customer.id, before, profile)
    log = build_edit_log(before, profile)
    entry = NewTimelineEntry(customer.id, "customer_updated", edit_log=log, actor_name=actor.name)
    await timeline.announce(tx, company, [CustomerUpdated(customer)], [entry], are_known=True)
    return customer


async def _insert(tx: Tx, company: Company, profile: Profile) -> Customer:
    id = CUSTOMER_ID.new()
    for _ in range(MAX_INSERTS):
        customer = await queries.insert_customer(tx, company.id, id, profile)
        if customer is not None:
            return customer
        conflict = await _find_conflict(tx, company, id, profile)
        if conflict is not None:
            raise conflict
    raise CustomerExists


async def _store(tx: Tx, company: Company, id: str, before: Profile, profile: Profile) -> Customer:
    keys = [(one.email_key, one.phone_number, one.external_id) for one in (profile, before)]
    if keys[0] == keys[1]:
        return await queries.update_customer(tx, company.id, id, profile)
    try:
        async with tx.transaction():
            return await queries.update_customer(tx, company.id, id, profile)
    except asyncpg.UniqueViolationError:
        raise await _find_conflict(tx, company, id, profile) or CustomerExists() from None


async def _find_conflict(tx: Tx, company: Company, id: str, profile: Profile) -> CustomerExists | None:
    """None if those who were in conflict are deleted by now."""
    holders = await queries.list_holders(tx, company.id, id, profile)
    found = [
        (error, FieldError(field, "belongs to an existing customer", holder.id))
        for column, (field, error) in UNIQUE_FIELDS.items()
        for holder in holders
        if getattr(profile, column) is not None and getattr(holder, column) == getattr(profile, column)
    ]
    return found[0][0](details=[detail for _, detail in found]) if found else None
