"""Changes what a ticket is filed under: labels, priority, team and snooze."""

from datetime import datetime, timedelta

from msgspec import UNSET
from msgspec.structs import replace

from sapa.access.actions import read_clock
from sapa.db.pool import Tx
from sapa.events import emit
from sapa.http.errors import Invalid
from sapa.support import queries
from sapa.support.agents import actions as agents
from sapa.support.labels import actions as labels
from sapa.support.requests import TicketActions, TicketPatch
from sapa.support.response_times import Actor
from sapa.support.teams import actions as teams
from sapa.support.ticket_change import TicketChange
from sapa.support.types import Ticket, TicketResolved, TicketUpdated
from sapa.values.company import Company
from sapa.values.instants import format_instant, truncate_to_milliseconds

LONGEST_SNOOZE = timedelta(days=366)


async def update(tx: Tx, company: Company, id: str, patch: TicketPatch, *, at: datetime | None = None) -> Ticket:
    """What stays the same leaves no trace. `at` is when it changed, if that was before now."""
    await queries.get_ticket(tx, company.id, id)
    # Labels and the team are locked before the ticket: their deletion locks in this order, too.
    if patch.label_ids is not UNSET:
        patch = replace(patch, label_ids=await labels.lock_labels(tx, company, patch.label_ids))
    if patch.team_id is not UNSET and patch.team_id is not None:
        await teams.lock_team(tx, company, patch.team_id)
    change = TicketChange(await queries.lock_ticket(tx, company.id, id))
    return await _write(tx, company, change, patch, at)


async def revise(
    tx: Tx, company: Company, id: str, actions: TicketActions, snoozed_until: datetime | None, actor_id: int | None
) -> Ticket:
    """Adds and removes labels, where `update` replaces them. Fields that are absent or null keep their values."""
    await queries.get_ticket(tx, company.id, id)
    added = await labels.lock_labels(tx, company, actions.add_label_ids, "actions.addLabelIds")
    if actions.team_id is not None:
        await teams.lock_team(tx, company, actions.team_id, "actions.teamId")
    change = TicketChange(await queries.lock_ticket(tx, company.id, id))
    remaining = [label for label in change.locked.label_ids if label not in actions.remove_label_ids]
    patch = TicketPatch(
        label_ids=list(dict.fromkeys([*remaining, *added])),
        priority=actions.priority or UNSET,
        team_id=actions.team_id or UNSET,
        snoozed_until=snoozed_until or UNSET,
        actor_id=actor_id,
    )
    return await _write(tx, company, change, patch)


async def _write(
    tx: Tx, company: Company, change: TicketChange, patch: TicketPatch, at: datetime | None = None
) -> Ticket:
    actor = await _find_actor(tx, company, patch.actor_id)
    _apply(change, patch, at or (await read_clock(tx, company.id)).now, actor)
    if not change.is_changed:
        return await queries.get_ticket(tx, company.id, change.locked.id)
    ticket = await change.write(tx, company)
    await emit(tx, company, TicketUpdated(ticket))
    return ticket


async def wake(tx: Tx, company: Company, change: TicketChange) -> Ticket:
    """The time of a snoozed ticket has come."""
    change.wake((await read_clock(tx, company.id)).now, "time")
    ticket = await change.write(tx, company)
    await emit(tx, company, TicketUpdated(ticket))
    return ticket


def _apply(change: TicketChange, patch: TicketPatch, now: datetime, actor: Actor | None) -> None:
    locked = change.locked
    if patch.label_ids is not UNSET and patch.label_ids != locked.label_ids:
        change.label(now, patch.label_ids, actor)
    if patch.priority is not UNSET and patch.priority != locked.priority:
        change.prioritise(now, patch.priority, actor)
    if patch.team_id is not UNSET and patch.team_id != locked.team_id:
        change.set_team(now, patch.team_id, actor)
    if patch.snoozed_until is UNSET:
        return
    if patch.snoozed_until is None:
        if locked.snoozed_until is not None:
            change.wake(now, "agent", actor)
        return
    until = _check_snooze(patch.snoozed_until, now)
    if not locked.is_active:
        raise TicketResolved
    if until != locked.snoozed_until:
        change.snooze(now, until, actor)


def _check_snooze(until: datetime, now: datetime) -> datetime:
    if not now < until <= now + LONGEST_SNOOZE:
        raise Invalid.field("snoozedUntil", f"must be after now, which is {format_instant(now)}, and within a year")
    return truncate_to_milliseconds(until)


async def _find_actor(tx: Tx, company: Company, agent_id: int | None) -> Actor | None:
    if agent_id is None:
        return None
    agent = await agents.get_active_agent(tx, company, agent_id, "actorId")
    return Actor(agent.id, agent.type)
