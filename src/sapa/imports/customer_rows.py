"""Imports customers."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import asyncpg
from msgspec import UNSET, UnsetType

from sapa.customers import bulk
from sapa.customers.bulk import BulkCustomer
from sapa.customers.subscriptions import ConsentProofIn
from sapa.customers.types import CustomerPatch, ExternalId
from sapa.db.pool import Tx
from sapa.imports.attempts import Result, StoreContext, attempt
from sapa.imports.rows import FileRow
from sapa.imports.types import Outcome
from sapa.values.change_actor import ChangeActor
from sapa.values.company import Company


class CustomerRow(CustomerPatch, frozen=True, kw_only=True):
    """A customer as the API accepts it, plus the columns of an export."""

    external_id: ExternalId | None | UnsetType = UNSET
    id: str | None | UnsetType = UNSET
    consent_proof: ConsentProofIn | None | UnsetType = UNSET
    """Of the subscriptions in the same row."""
    created_at: Any = None
    updated_at: Any = None


def prepare_customer(context: StoreContext, row: CustomerRow) -> BulkCustomer:
    customer = BulkCustomer(
        row.external_id or None, row.id or None, row, context.is_foreign, proof=row.consent_proof or None
    )
    return bulk.prepare(context.company, customer)


async def store_customers(tx: Tx, context: StoreContext, rows: Sequence[FileRow]) -> list[Result]:
    """Stores all rows together, then one by one those that need it."""
    customers = [_customer_of(row) for row in rows]
    actor = ChangeActor("import", context.import_id)
    outcomes = await _store_together(tx, context.company, customers, actor)
    return [
        outcome or await attempt(tx, row.line, partial(bulk.store, tx, context.company, customer, actor))
        for row, customer, outcome in zip(rows, customers, outcomes, strict=True)
    ]


async def _store_together(
    tx: Tx, company: Company, customers: Sequence[BulkCustomer], actor: ChangeActor
) -> Sequence[Outcome | None]:
    try:
        async with tx.transaction():
            return await bulk.store_together(tx, company, customers, actor)
    except (asyncpg.UniqueViolationError, asyncpg.DataError, asyncpg.ProgramLimitExceededError):
        return [None] * len(customers)  # a concurrent write conflicts, or a value cannot be stored


def list_customer_keys(company: Company, row: FileRow) -> tuple[str, list[str]]:
    """Which customer the row is, and the unique values that it claims."""
    customer = _customer_of(row)
    return customer.external_id or customer.id or f"line {row.line}", bulk.list_keys(company, customer)


def _customer_of(row: FileRow) -> BulkCustomer:
    customer: Any = row.value
    found: BulkCustomer = customer
    return found
