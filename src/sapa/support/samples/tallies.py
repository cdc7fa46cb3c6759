"""Sums of samples: by day for durations and counts, by ticket because a ticket of several days counts once."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import date

from sapa.db.pool import Tx
from sapa.support.samples import queries
from sapa.support.samples.queries import (
    HandledDays,
    SampleAddition,
    SampleCell,
    SampledTicket,
    StoredSample,
)
from sapa.support.samples.types import Metric


async def add(tx: Tx, company_id: int, added: Sequence[StoredSample]) -> None:
    """Counts new samples."""
    if not added:
        return
    begun = await _add_days(tx, company_id, [one for one in added if one.metric == Metric.HANDLED])
    await queries.add_to_cells(tx, company_id, build_additions(added, begun))


async def recount(tx: Tx, company_id: int, changed: Sequence[StoredSample]) -> None:
    """Recounts everything that these samples contributed to."""
    sources = {one.ticket: one.source for one in changed if one.metric == Metric.HANDLED}
    begun = await recount_tickets(tx, company_id, sources)
    await queries.recount_cells(tx, company_id, {one.cell for one in changed} | begun.keys())


async def recount_tickets(tx: Tx, company_id: int, sources: Mapping[SampledTicket, str]) -> Counter[SampleCell]:
    """Reads the tickets' days from the samples. Returns the change in the number of tickets that begin in each cell."""
    if not sources:
        return Counter()
    locked = await queries.lock_tickets(tx, company_id, sources)
    days_by_ticket = await queries.list_handled_days(tx, company_id, list(sources))
    return await _write_days(tx, company_id, locked, days_by_ticket)


async def _add_days(tx: Tx, company_id: int, handled: Sequence[StoredSample]) -> Counter[SampleCell]:
    if not handled:
        return Counter()
    locked = await queries.lock_tickets(tx, company_id, {one.ticket: one.source for one in handled})
    days: dict[SampledTicket, set[date]] = defaultdict(set, {one.ticket: set(one.days) for one in locked})
    for sample in handled:
        days[sample.ticket].add(sample.at.date())
    return await _write_days(tx, company_id, locked, {ticket: sorted(found) for ticket, found in days.items()})


async def _write_days(
    tx: Tx, company_id: int, locked: Iterable[HandledDays], days_by_ticket: Mapping[SampledTicket, list[date]]
) -> Counter[SampleCell]:
    begun: Counter[SampleCell] = Counter()
    changed: dict[SampledTicket, list[date]] = {}
    for one in locked:
        days = days_by_ticket.get(one.ticket, [])
        if days != one.days:
            changed[one.ticket] = days
            begun.update(SampleCell(day, one.agent_id, one.source) for day in days[:1])
            begun.subtract(SampleCell(day, one.agent_id, one.source) for day in one.days[:1])
    if changed:
        await queries.set_days(tx, company_id, changed)
    return begun


def build_additions(added: Iterable[StoredSample], begun: Mapping[SampleCell, int]) -> dict[SampleCell, SampleAddition]:
    """The amounts to add to each cell."""
    additions: dict[SampleCell, SampleAddition] = defaultdict(SampleAddition)
    for sample in added:
        _grow(additions[sample.cell], sample)
    for cell, tickets in begun.items():
        additions[cell].tickets_begun += tickets
    return additions


def _grow(addition: SampleAddition, sample: StoredSample) -> None:
    if sample.metric == Metric.HANDLED:
        addition.last_handled_at = max(addition.last_handled_at or sample.at, sample.at)
        return
    for name, amount in ((f"{sample.metric}_count", 1), (f"{sample.metric}_micros", sample.micros)):
        setattr(addition, name, getattr(addition, name) + amount)
