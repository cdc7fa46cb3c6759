"""Several actions on a ticket at once, and on many tickets with an outcome for each."""

from datetime import timedelta

from sapa.access.actions import read_clock
from sapa.db.pool import Tx
from sapa.http.errors import Invalid, translate
from sapa.support import changes, tickets
from sapa.support.requests import BulkActionsIn, BulkOutcome, TicketActions
from sapa.support.types import Ticket
from sapa.values.company import Company


async def apply_to_many(tx: Tx, company: Company, body: BulkActionsIn) -> list[BulkOutcome]:
    """Each ticket has all of the actions applied or none; a refusal of one does not stop the others. In the order of
    their ids, so that two calls do not wait for each other."""
    check_actions(body.actions)
    outcomes: dict[str, BulkOutcome] = {}
    for id in sorted(set(body.ids)):
        try:
            async with tx.transaction():
                outcomes[id] = BulkOutcome(id, await apply(tx, company, id, body.actions, body.actor_id), None)
        except Exception as error:
            refusal = translate(error)
            if refusal is None:
                raise
            outcomes[id] = BulkOutcome(id, None, refusal.build_body())
    return [outcomes[id] for id in dict.fromkeys(body.ids)]


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
