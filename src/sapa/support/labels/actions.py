"""Changes labels."""

from collections.abc import Sequence
from functools import partial

from sapa.db.pool import Database, Tx, notify_after_commit
from sapa.http.errors import Invalid
from sapa.messaging.tickets import build_tickets_channel
from sapa.support.labels import queries
from sapa.support.labels.types import Label, LabelIn
from sapa.support.names import clean_name
from sapa.support.types import LABEL_ID
from sapa.values.company import Company

BATCH = 500
"""How many tickets lose a deleted label in one transaction."""


async def create(tx: Tx, company: Company, body: LabelIn) -> Label:
    return await queries.insert_label(tx, company.id, LABEL_ID.new(), clean_name(body.name), body.color)


async def update(tx: Tx, company: Company, id: str, body: LabelIn) -> Label:
    return await queries.update_label(tx, company.id, id, clean_name(body.name), body.color)


async def remove_from_tickets(database: Database, company: Company, id: str) -> None:
    """Ahead of `delete`: many tickets may have the label."""
    remove = partial(queries.remove_from_tickets, company_id=company.id, id=id, most=BATCH)
    await database.transact_in_batches(remove, BATCH)


async def delete(tx: Tx, company: Company, id: str) -> None:
    await queries.delete_label(tx, company.id, id)
    while await queries.remove_from_tickets(tx, company.id, id, BATCH):
        pass
    notify_after_commit(tx, build_tickets_channel(company.id))


async def lock_labels(tx: Tx, company: Company, ids: Sequence[str], field: str = "labelIds") -> list[str]:
    """The ids without duplicates, kept from deletion until the transaction ends. Raises Invalid for an unknown one."""
    wanted = list(dict.fromkeys(ids))
    existing = await queries.lock_labels(tx, company.id, wanted)
    if unknown := [id for id in wanted if id not in existing]:
        raise Invalid.field(field, f"must be ids of labels; {unknown[0]} is not. GET /labels lists them")
    return wanted
