"""How customers change."""

import asyncpg
import msgspec

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
    ExternalIdTaken,
)
from sapa.db.pool import Tx
from sapa.events import emit


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

    Two first calls may race: the one that comes second finds the id taken and updates instead.
    """
    known = await queries.find_by_external_id(tx, company.id, external_id)
    if known is None:
        new = msgspec.convert({**msgspec.to_builtins(given), "externalId": external_id}, CustomerIn)
        try:
            async with tx.transaction():
                return await create(tx, company, new), True
        except asyncpg.UniqueViolationError as error:
            if error.constraint_name != ExternalIdTaken.constraint:
                raise
        known = await queries.get_by_external_id(tx, company.id, external_id)
    return await _revise(tx, company, known, given), False


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
