"""Changes policies, and measures tickets against them."""

from collections.abc import Collection, Sequence
from datetime import datetime

from msgspec import Struct

from sapa.access.actions import read_clock
from sapa.db.pool import Connection, Tx
from sapa.http.errors import Invalid
from sapa.messaging.messages.types import Source
from sapa.support.business_hours import actions as business_hours
from sapa.support.business_hours.calendar import Calendar, build_calendar
from sapa.support.labels import actions as labels
from sapa.support.names import clean_name
from sapa.support.rows import LockedTicket, StoredTicketEntry
from sapa.support.sla import queries
from sapa.support.sla.targets import build_facts, build_next_due, build_sla, find_policy
from sapa.support.sla.types import SlaPolicy, SlaPolicyIn
from sapa.support.types import SLA_POLICY_ID, TicketSla
from sapa.values.company import Company

ALWAYS_OPEN = build_calendar("UTC", [], [])


class MeasuredTicket(Struct, frozen=True):
    """How a ticket stands, and when the next of its targets is due."""

    sla: TicketSla
    due_at: datetime | None


async def create(tx: Tx, company: Company, body: SlaPolicyIn) -> SlaPolicy:
    columns = await _check(tx, company, body)
    return await queries.insert_sla_policy(tx, company.id, SLA_POLICY_ID.new(), *columns)


async def update(tx: Tx, company: Company, id: str, body: SlaPolicyIn) -> SlaPolicy:
    return await queries.update_sla_policy(tx, company.id, id, *await _check(tx, company, body))


async def delete(tx: Tx, company: Company, id: str) -> None:
    await queries.delete_sla_policy(tx, company.id, id)


async def list_policies(db: Connection, company: Company) -> list[SlaPolicy]:
    """In the order in which they are tried."""
    return await queries.list_all_policies(db, company.id)


async def measure(
    tx: Tx,
    company: Company,
    ticket: LockedTicket,
    policies: Sequence[SlaPolicy],
    entries: Sequence[StoredTicketEntry],
    sent: Collection[str],
) -> MeasuredTicket | None:
    """Everything is counted from the entries of the ticket's cycle, so that the result does not depend on when it is
    measured. `sent` are messages whose status is not stored yet. None without a matching policy."""
    facts = build_facts(entries, sent)
    policy = find_policy(policies, ticket.priority, Source(ticket.source), ticket.label_ids)
    if facts is None or policy is None:
        return None
    now = (await read_clock(tx, company.id)).now
    sla = build_sla(policy, await _get_calendar(tx, company, policy), facts, now)
    return MeasuredTicket(sla, build_next_due(sla, facts))


async def _get_calendar(tx: Tx, company: Company, policy: SlaPolicy) -> Calendar:
    return await business_hours.get_calendar(tx, company) if policy.in_business_hours else ALWAYS_OPEN


async def _check(tx: Tx, company: Company, body: SlaPolicyIn) -> tuple[object, ...]:
    """The columns of the policy."""
    if body.first_response_minutes is None and body.resolution_minutes is None:
        raise Invalid.field("firstResponseMinutes", "is required, or resolutionMinutes")
    label_ids = await labels.lock_labels(tx, company, body.label_ids)
    return (
        clean_name(body.name), body.position, list(dict.fromkeys(body.priorities)), list(dict.fromkeys(body.sources)),
        label_ids, body.first_response_minutes, body.resolution_minutes, body.in_business_hours,
    )  # fmt: skip
