"""How customers change."""

from collections.abc import Sequence

from msgspec import UNSET

from sapa.customers import queries
from sapa.customers.edit_log import build_edit_log
from sapa.customers.profile import build_profile, profile_of, revise_profile
from sapa.customers.types import (
    Customer,
    CustomerCreated,
    CustomerDeleted,
    CustomerIn,
    CustomerPatch,
    CustomerRemoved,
    CustomerRenamed,
    CustomerUpdated,
    IdentityConflict,
    build_ref,
)
from sapa.db import races
from sapa.db.pool import Tx
from sapa.events import emit
from sapa.ports import publish
from sapa.timeline import actions as timeline
from sapa.timeline.actions import NewTimelineEntry
from sapa.values.company import Company
from sapa.values.ids import CUSTOMER_ID

list_all = queries.list_all_customers
stream_all = queries.stream_all_customers


async def create(tx: Tx, company: Company, given: CustomerIn) -> Customer:
    profile = build_profile(company, given)
    customer = await queries.insert_customer(tx, company.id, CUSTOMER_ID.new(), profile)
    await emit(tx, company, CustomerCreated(customer))
    await timeline.record(tx, company, NewTimelineEntry(customer.id, "customer_created"))
    return customer


async def update(tx: Tx, company: Company, id: str, patch: CustomerPatch) -> Customer:
    """Nothing is written and nothing announced when nothing changes."""
    customer = await queries.lock_customer(tx, company.id, id)
    return await _revise(tx, company, customer, patch)


async def upsert(tx: Tx, company: Company, external_id: str, given: CustomerPatch) -> tuple[Customer, bool]:
    """The customer with the caller's own id, and whether it was just created.

    Two first calls may race: the one that finds something taken looks again, and updates if it was its twin's doing.
    """
    customer, is_new = await races.find_or_create(
        tx,
        lambda: queries.find_locked_by_external_id(tx, company.id, external_id),
        lambda: create(tx, company, _as_new(external_id, given)),
    )
    return customer if is_new else await _revise(tx, company, customer, given), is_new


def _as_new(external_id: str, given: CustomerPatch) -> CustomerIn:
    fields = {name: value for name in given.__struct_fields__ if (value := getattr(given, name)) is not UNSET}
    return CustomerIn(external_id=external_id, **fields)


async def find_customer(tx: Tx, company: Company, id: str) -> Customer | None:
    return await queries.find_customer(tx, company.id, id)


async def find_steady(tx: Tx, company: Company, id: str) -> Customer | None:
    """The customer, who stays as they are until this transaction ends."""
    return await queries.find_shared(tx, company.id, id)


async def find_by_spelling(
    tx: Tx, company: Company, phone_numbers: Sequence[str], email: str | None
) -> Customer | None:
    """The customer with one of these spellings of a phone number, else the one with this e-mail address."""
    return await queries.find_shared_by_spelling(tx, company.id, phone_numbers, email)


async def find_or_create(tx: Tx, company: Company, given: CustomerIn) -> Customer:
    """The customer with this e-mail address or phone number, left as it is; a new one when there is none.

    Two first calls may race: the one that finds something taken looks again, and finds its twin's customer.
    """
    profile = build_profile(company, given)

    async def find() -> Customer | None:
        found = await queries.list_shared_by_identity(tx, company.id, profile)
        if len(found) > 1:
            raise IdentityConflict
        return found[0] if found else None

    customer, _ = await races.find_or_create(tx, find, lambda: create(tx, company, given))
    return customer


async def delete(tx: Tx, company: Company, id: str) -> None:
    customer = await queries.delete_customer(tx, company.id, id)
    await publish(tx, company, CustomerRemoved(id))
    await timeline.purge_customer(tx, company, id)
    await emit(tx, company, CustomerDeleted(customer))


async def _revise(tx: Tx, company: Company, customer: Customer, patch: CustomerPatch) -> Customer:
    before, profile = profile_of(customer), revise_profile(company, customer, patch)
    if profile == before:
        return customer
    shown, customer = build_ref(customer), await queries.update_customer(tx, company.id, customer.id, profile)
    if build_ref(customer) != shown:
        await publish(tx, company, CustomerRenamed(build_ref(customer)))
    log = build_edit_log(before, profile)
    await timeline.record(tx, company, NewTimelineEntry(customer.id, "customer_updated", edit_log=log))
    await emit(tx, company, CustomerUpdated(customer))
    return customer
