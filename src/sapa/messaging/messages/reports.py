"""Stores what channels report on messages, many at a time, and announces changes of their status."""

from collections.abc import Sequence
from datetime import datetime

from msgspec import Raw, Struct
from msgspec.structs import astuple, replace

from sapa.db.pool import Tx, notify_after_commit
from sapa.events import CHANNEL, encode_events, is_silent
from sapa.messaging.channels.interface import Source, StatusReport
from sapa.messaging.consents import actions as consents
from sapa.messaging.consents.types import ConsentMissing
from sapa.messaging.messages import queries
from sapa.messaging.messages.pricing import PricedReport, price
from sapa.messaging.messages.state import MergedState
from sapa.messaging.messages.types import (
    ChangedState,
    LockedMessage,
    Message,
    MessageStatusUpdated,
    MessageUpdate,
    NewEvent,
    SendError,
)
from sapa.messaging.tickets import TICKETS, build_tickets_channel
from sapa.values.company import Company
from sapa.values.instants import format_instant, truncate_to_milliseconds
from sapa.values.json import encode

UNKNOWN = "UNKNOWN"
DISPATCHED = frozenset({"sent", "delivered", "read"})
ACKS = {"failed": -1, "pending": 0, "sent": 1, "delivered": 2, "read": 3}
_SHOWN = len(Message.__struct_fields__)


class ReportedChange(Struct, frozen=True):
    """A report on a message, and the state that it leads to."""

    locked: LockedMessage
    report: StatusReport
    merged: MergedState
    is_implied: bool = False

    @property
    def is_new_status(self) -> bool:
        return self.merged.state.status != self.locked.status

    @property
    def sequence(self) -> int:
        return self.locked.sequence + self.is_new_status


async def store(tx: Tx, company: Company, changes: Sequence[ReportedChange]) -> list[Message | None]:
    """Like `store_all`; returns the messages whose status changed."""
    updates = await store_all(tx, company, changes)
    return [None if update is None else Message(*astuple(update)[:_SHOWN]) for update in updates]


async def store_all(tx: Tx, company: Company, changes: Sequence[ReportedChange]) -> list[MessageUpdate | None]:
    """Stores what is new with one statement, at most one change of each message; returns the updates that receivers
    get, built from what is stored."""
    if not changes:
        return []
    events = [event for change in changes for event in _build_events(change)]
    priced = [
        PricedReport(change.locked, change.report.pricing, change.merged.state.delivered_at) for change in changes
    ]
    pricings = await price(tx, company, priced)
    states = [_find_change(change, pricing) for change, pricing in zip(changes, pricings, strict=True)]
    updates = [
        _build_update(change.locked, state) if change.is_new_status and state is not None else None
        for change, state in zip(changes, states, strict=True)
    ]
    news = [] if is_silent(tx) else [MessageStatusUpdated(update) for update in updates if update is not None]
    new_states = [state for state in states if state is not None]
    if await queries.store_changes(tx, company.id, events, new_states, encode_events(news)):
        notify_after_commit(tx, CHANNEL)
    for change, update in zip(changes, updates, strict=True):
        if update is not None:
            await _announce(tx, company, change, update)
    return updates


def _build_update(locked: LockedMessage, state: ChangedState) -> MessageUpdate:
    changed = replace(
        locked,
        ack=ACKS[state.status],
        status=state.status,
        message_id=state.provider_id,
        error=None if state.error is None else Raw(state.error.encode()),
        conflict=state.conflict,
        sequence=state.sequence,
        sent_at=_format(state.sent_at),
        delivered_at=_format(state.delivered_at),
        read_at=_format(state.read_at),
        failed_at=_format(state.failed_at),
        pricing=None if state.pricing is None else Raw(state.pricing.encode()),
    )
    return MessageUpdate(*(*astuple(changed)[:_SHOWN], locked.status))


def _format(instant: datetime | None) -> str | None:
    return None if instant is None else format_instant(instant)


def build_update(message: Message, previous: str) -> MessageUpdate:
    """What receivers get when the status of a message changes."""
    return MessageUpdate(*(*astuple(message), previous))


def _find_change(change: ReportedChange, pricing: bytes | Raw | None) -> ChangedState | None:
    """None if the report changes nothing."""
    locked, report, state = change.locked, change.report, change.merged.state
    provider_id = locked.provider_id or report.message_id
    is_same = not change.is_new_status and state == locked.state
    if is_same and provider_id == locked.provider_id and pricing == locked.pricing:
        return None
    return ChangedState(
        id=locked.id,
        status=state.status,
        accepted_at=state.accepted_at,
        sent_at=state.sent_at,
        delivered_at=state.delivered_at,
        read_at=state.read_at,
        failed_at=state.failed_at,
        conflict=state.conflict,
        provider_id=provider_id,
        error=_build_text(_build_error(change)),
        sequence=change.sequence,
        pricing=_build_text(pricing),
    )


async def _announce(tx: Tx, company: Company, change: ReportedChange, message: MessageUpdate) -> None:
    """Announces a new status to the rooms that it concerns."""
    report = change.report
    if report.category == "consent" and report.code != ConsentMissing.code:
        await _record_refusal(tx, company, message, report, change.merged.at)
    if (change.locked.status in DISPATCHED) != (message.status in DISPATCHED):
        await _settle_ticket(tx, company, message)
    if message.ticket_id is not None:
        notify_after_commit(tx, build_tickets_channel(company.id))


async def _record_refusal(tx: Tx, company: Company, message: Message, report: StatusReport, at: datetime) -> None:
    """Records that the recipient turned off marketing messages at the channel."""
    to = await queries.get_recipient(tx, company.id, message.message_id2)
    await consents.record_refusal(tx, company, Source(message.source), to, message.message_id2, report.reason, at)


async def _settle_ticket(tx: Tx, company: Company, message: Message) -> None:
    if message.ticket_id is not None and message.agent_id is not None:
        await TICKETS.installed.settle(tx, company, message.ticket_id, message.message_id2)


def _build_events(change: ReportedChange) -> list[NewEvent]:
    id, report, merged = change.locked.id, change.report, change.merged
    at = truncate_to_milliseconds(report.at)
    sequence = change.sequence if change.is_new_status else None
    own = NewEvent(id, report.status, at, merged.at, change.is_implied, sequence, report.code, report.reason)
    return [*(NewEvent(id, step, at, merged.at, is_implied=True) for step in merged.implied), own]


def _build_error(change: ReportedChange) -> bytes | Raw | None:
    """The reason of the first failure stays while the failure does; an unclear outcome is cleared."""
    locked, report = change.locked, change.report
    if change.merged.state.failed_at is None:
        return None
    if locked.failed_at is not None:
        return locked.error
    is_retryable = None if report.category is None else report.is_retryable
    reason = report.reason or "The channel gave no reason."
    return encode(SendError(report.code or UNKNOWN, reason, report.category, is_retryable))


def _build_text(json: bytes | Raw | None) -> str | None:
    return None if json is None else bytes(json).decode()
