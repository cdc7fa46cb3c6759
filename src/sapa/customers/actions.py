"""How customers change."""

import asyncpg
from msgspec import UNSET

from sapa.company import Company
from sapa.customers import queries
from sapa.customers.profile import build_profile, profile_of, revise_profile
from sapa.customers.types import (
    CUSTOMER_ID,
    Customer,
    CustomerCreated,
    CustomerDeleted,
    CustomerIn,
    CustomerPatch,
    CustomerUpdated,
)
from sapa.db.pool import Tx
from sapa.events import emit

MOST_RACES = 2


async def create(tx: Tx, company: Company, given: CustomerIn) -> Customer:
    profile = build_profile(company, given)
    customer = await queries.insert_customer(tx, company.id, CUSTOMER_ID.new(), profile)
    await emit(tx, company, CustomerCreated(customer))
    return customer


async def update(tx: Tx, company: Company, id: str, patch: CustomerPatch) -> Customer:
    """Nothing is written and nothing announced when nothing changes."""
    customer = await queries.lock_customer(tx, company.id, id)
    return await _revise(tx, company, customer, patch)


async def upsert(tx: Tx, company: Company, external_id: str, given: CustomerPatch) -> tuple[Customer, bool]:
    """The customer with the caller's own id, and whether it was just created.

    Two first calls may race: the one that finds something taken looks again, and updates if it was its twin's doing.
    """
    for tries_left in range(MOST_RACES, -1, -1):
        known = await queries.find_locked_by_external_id(tx, company.id, external_id)
        if known is not None:
            return await _revise(tx, company, known, given), False
        try:
            async with tx.transaction():
                return await create(tx, company, _as_new(external_id, given)), True
        except asyncpg.UniqueViolationError:
            if not tries_left:
                raise
    raise AssertionError("unreachable")


def _as_new(external_id: str, given: CustomerPatch) -> CustomerIn:
    fields = {name: value for name in given.__struct_fields__ if (value := getattr(given, name)) is not UNSET}
    return CustomerIn(external_id=external_id, **fields)


async def delete(tx: Tx, company: Company, id: str) -> None:
    customer = await queries.delete_customer(tx, company.id, id)
    await emit(tx, company, CustomerDeleted(customer))


async def _revise(tx: Tx, company: Company, customer: Customer, patch: CustomerPatch) -> Customer:
    profile = revise_profile(company, customer, patch)
    if profile == profile_of(customer):
        return customer
    customer = await queries.update_customer(tx, company.id, customer.id, profile)
    await emit(tx, company, CustomerUpdated(customer))
    return customer
