"""Several actions on a ticket at once, and on many tickets with an outcome for each."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta

from sapa.access.actions import read_clock
from sapa.db.pool import Tx
from sapa.http.errors import Invalid, translate
from sapa.support import changes, queries, tickets
from sapa.support.labels import actions as labels
from sapa.support.requests import BulkActionsIn, BulkOutcome, TicketActions
from sapa.support.teams import actions as teams
from sapa.support.types import Ticket
from sapa.values.company import Company


async def apply_to_many(tx: Tx, company: Company, body: BulkActionsIn) -> list[BulkOutcome]:
    """Each ticket has all of the actions applied or none; a refusal of one does not stop the others."""
    check_actions(body.actions)
    ids = sorted(set(body.ids))
    await _lock_all(tx, company, ids, body.actions)
    outcomes: dict[str, BulkOutcome] = {}
    for id in ids:
        try:
            async with tx.transaction():
                outcomes[id] = BulkOutcome(id, await apply(tx, company, id, body.actions, body.actor_id), None)
        except Exception as error:
            refusal = translate(error)
            if refusal is None:
                raise
            outcomes[id] = BulkOutcome(id, None, refusal.build_body())
    return [outcomes[id] for id in dict.fromkeys(body.ids)]


async def _lock_all(tx: Tx, company: Company, ids: Sequence[str], actions: TicketActions) -> None:
    """Before the first change, which locks what tickets share, such as their agent's sums: a call that changes one
    ticket locks the ticket first. What does not exist is refused later, for each ticket."""
    with suppress(Invalid):
        await labels.lock_labels(tx, company, actions.add_label_ids)
    with suppress(Invalid):
        if actions.team_id is not None:
            await teams.lock_team(tx, company, actions.team_id)
    await queries.lock_tickets(tx, company.id, ids)


async def apply(tx: Tx, company: Company, id: str, actions: TicketActions, actor_id: int | None) -> Ticket:
    """In the order of the fields: what it is filed under, its owner, then its resolution."""
    until = None
    if actions.snooze_minutes is not None:
        until = (await read_clock(tx, company.id)).now + timedelta(minutes=actions.snooze_minutes)
    ticket = await changes.revise(tx, company, id, actions, until, actor_id)
    if actions.unassign or actions.assign_to is not None:
        ticket = await tickets.assign(tx, company, id, actions.assign_to, "actions.assignTo")
    if actions.resolve:
        ticket = await tickets.resolve(tx, company, id, actor_id)
    return ticket


def check_actions(actions: TicketActions) -> None:
    """Raises Invalid for actions that exclude each other."""
    if actions.unassign and actions.assign_to is not None:
        raise Invalid.field("actions.unassign", "must be false with assignTo")
    if actions.resolve and actions.snooze_minutes is not None:
        raise Invalid.field("actions.resolve", "must be false with snoozeMinutes: a resolved ticket is not snoozed")
