"""Stores that channels accepted messages. Acceptances that arrive together are stored by one statement.

It is optimistic: it changes only messages that are still as they were recorded. If a channel's report came first, or
anything else is unusual, the acceptance is stored step by step, like every other outcome.
"""

from collections.abc import Sequence
from datetime import datetime

import asyncpg
from msgspec import Struct

from sapa.db.connection import DatabaseAway
from sapa.db.group_commit import GroupCommit
from sapa.db.pool import Tx, notify_after_commit
from sapa.events import CHANNEL, EVENT_ID
from sapa.http.outbound_call import OutboundCall
from sapa.messaging.channels.interface import SendReceipt
from sapa.messaging.history import actions as history
from sapa.messaging.history.actions import CallRecord
from sapa.messaging.messages.recorded import build_accepted
from sapa.messaging.messages.reports import build_update
from sapa.messaging.messages.types import Message
from sapa.messaging.sending import queries
from sapa.messaging.sending.types import SendPlan
from sapa.messaging.tickets import build_tickets_channel
from sapa.values.json import encode


class Acceptance(Struct, frozen=True):
    """A message that its channel accepted; the fields are the columns of the part `accepted`."""

    id: str
    sequence: int
    """Of the message as it was recorded."""
    provider_id: str
    at: datetime
    event_id: str
    body: bytes
    """Of the event."""
    record_stored_at: datetime | None
    record_id: str | None
    snapshot: bytes | None
    is_in_ticket: bool


async def accept(
    call: OutboundCall, plan: SendPlan, call_record: CallRecord | None, message: Message, receipt: SendReceipt
) -> Message | None:
    """The message as its sender gets it; None if the acceptance has to be stored step by step."""
    is_usual = receipt.alias is None and receipt.held is None and receipt.missing is None
    if call.claim is not None or message.agent_id is not None or plan.connected.has_error or not is_usual:
        return None
    at = plan.read_clock()
    shown = build_accepted(message, receipt.message_id, at)
    stored = plan.conceal_message(shown)
    acceptance = Acceptance(
        id=message.message_id2,
        sequence=message.sequence,
        provider_id=receipt.message_id,
        at=at,
        event_id=EVENT_ID.new(),
        body=encode(build_update(stored, message.status)),
        record_stored_at=call_record.clock.real if call_record else None,
        record_id=call_record.id if call_record else None,
        snapshot=history.seal_response(call_record, shown) if call_record else None,
        is_in_ticket=message.ticket_id is not None,
    )
    try:
        is_stored = await ACCEPTANCES.run(call.context.database, call.company.id, acceptance)
    except (DatabaseAway, asyncpg.PostgresError):
        return None
    return shown if is_stored else None


async def _store(tx: Tx, company_id: int, acceptances: Sequence[Acceptance]) -> list[bool | Exception]:
    stored, has_deliveries = await queries.accept(tx, company_id, acceptances)
    if has_deliveries:
        notify_after_commit(tx, CHANNEL)
    if any(each.is_in_ticket for each in acceptances):
        notify_after_commit(tx, build_tickets_channel(company_id))
    return [each.id in stored for each in acceptances]


ACCEPTANCES = GroupCommit(_store, lambda acceptance: acceptance.id, is_one_statement=True)
