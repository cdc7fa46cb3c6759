"""Customers as rows of a file."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import asyncpg
from msgspec import UNSET, UnsetType

from sapa.customers import bulk
from sapa.customers.bulk import BulkCustomer
from sapa.customers.types import CustomerPatch, ExternalId
from sapa.db.pool import Tx
from sapa.imports.attempts import Result, attempt
from sapa.imports.rows import FileRow
from sapa.imports.types import Outcome
from sapa.values.company import Company


class CustomerRow(CustomerPatch, frozen=True, kw_only=True):
    """A customer as the API takes it, with what an export adds."""

    external_id: ExternalId | None | UnsetType = UNSET
    id: str | None | UnsetType = UNSET
    created_at: Any = None
    updated_at: Any = None


async def store_customers(tx: Tx, company: Company, rows: Sequence[FileRow]) -> list[Result]:
    """All together, and then one by one those that cannot be."""
    given = [_given(row) for row in rows]
    outcomes = await _store_together(tx, company, given)
    return [
        outcome or await attempt(tx, row.line, partial(bulk.store, tx, company, one))
        for row, one, outcome in zip(rows, given, outcomes, strict=True)
    ]


async def _store_together(tx: Tx, company: Company, given: Sequence[BulkCustomer]) -> Sequence[Outcome | None]:
    try:
        async with tx.transaction():
            return await bulk.store_together(tx, company, given)
    except (asyncpg.UniqueViolationError, asyncpg.DataError, asyncpg.ProgramLimitExceededError):
        return [None] * len(given)  # somebody was faster, or one of them does not fit


def list_customer_keys(company: Company, row: FileRow) -> tuple[str, list[str]]:
    """Whose row it is, and what no other customer's row may have."""
    given = _given(row)
    return given.external_id or given.id or f"line {row.line}", bulk.list_keys(company, given)


def _given(row: FileRow) -> BulkCustomer:
    value: Any = row.value
    patch = CustomerPatch(**{name: getattr(value, name) for name in CustomerPatch.__struct_fields__})
    return BulkCustomer(value.external_id or None, value.id or None, patch)
