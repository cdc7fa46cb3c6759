"""Changes macros, and applies them."""

import msgspec

from sapa.db.pool import Tx
from sapa.http.errors import Invalid
from sapa.support import bulk, tickets
from sapa.support.agents import actions as agents
from sapa.support.labels import actions as labels
from sapa.support.macros import queries
from sapa.support.macros.types import MACRO_ID, AppliedMacro, Macro, MacroIn
from sapa.support.names import clean_name
from sapa.support.requests import NoteIn, TicketActions
from sapa.support.saved_replies import actions as saved_replies
from sapa.support.teams import actions as teams
from sapa.values.company import Company
from sapa.values.json import encode

_read_actions = msgspec.json.Decoder(TicketActions).decode


async def create(tx: Tx, company: Company, body: MacroIn) -> Macro:
    return await queries.insert_macro(tx, company.id, MACRO_ID.new(), *await _check(tx, company, body))


async def update(tx: Tx, company: Company, id: str, body: MacroIn) -> Macro:
    return await queries.update_macro(tx, company.id, id, *await _check(tx, company, body))


async def delete(tx: Tx, company: Company, id: str) -> None:
    await queries.delete_macro(tx, company.id, id)


async def apply(tx: Tx, company: Company, ticket_id: str, macro_id: str, agent_id: int) -> AppliedMacro:
    """All of it or nothing. The text is for the agent to send: a message that has gone out cannot be taken back."""
    macro = await queries.get_macro(tx, company.id, macro_id)
    await agents.get_active_agent(tx, company, agent_id)
    reply = None
    if macro.reply is not None:
        reply = await saved_replies.fill_for_ticket(tx, company, ticket_id, macro.reply, agent_id)
    ticket = await bulk.apply(tx, company, ticket_id, _read_actions(macro.actions), agent_id)
    if macro.note is not None:
        await tickets.add_note(tx, company, ticket_id, NoteIn(agent_id=agent_id, body=macro.note))
    return AppliedMacro(ticket, reply)


async def _check(tx: Tx, company: Company, body: MacroIn) -> tuple[object, ...]:
    """The columns of the macro."""
    bulk.check_actions(body.actions)
    await labels.lock_labels(tx, company, body.actions.add_label_ids, "actions.addLabelIds")
    if body.actions.team_id is not None:
        await teams.lock_team(tx, company, body.actions.team_id, "actions.teamId")
    if body.actions.assign_to is not None:
        await agents.get_active_agent(tx, company, body.actions.assign_to, "actions.assignTo")
    if body.reply is not None:
        saved_replies.check_text(body.reply, "reply")
    if body.note is not None and (not body.note.strip() or "\0" in body.note):
        raise Invalid.field("note", "must not be blank or contain a NUL character")
    return clean_name(body.name), encode(body.actions), body.note, body.reply
