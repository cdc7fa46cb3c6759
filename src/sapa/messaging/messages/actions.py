"""What channels report of messages that went out."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from msgspec import Raw
from msgspec.structs import replace

from sapa.db.pool import Tx, ring_after_commit
from sapa.events import emit
from sapa.messaging.channels.identities import canonical, list_spellings
from sapa.messaging.channels.interface import Identity, Source, Status, StatusReport
from sapa.messaging.messages import queries, unsettled_queries
from sapa.messaging.messages.queries import Held, NewEvent
from sapa.messaging.messages.state import RANKS, Merged, merge
from sapa.messaging.messages.types import (
    MESSAGE_ID,
    NO_WORD,
    Message,
    MessageStatusUpdated,
    MessageUpdate,
    SendError,
)
from sapa.support import actions as support
from sapa.support.types import build_bell
from sapa.values.company import Company
from sapa.values.json import encode

SILENCE = timedelta(hours=24)
"""How long a channel is waited for that has not said what became of a message."""
UNKNOWN = "UNKNOWN"
UNDER_WAY = timedelta(minutes=2)
"""How long after its call a message may still be on its way to the channel."""
GONE_OUT = frozenset({"sent", "delivered", "read"})


async def apply(tx: Tx, company: Company, source: Source, report: StatusReport, now: datetime) -> list[Message]:
    """The messages whose status changed by it; none when the report was heard before or changes nothing.

    `now` is the company's time. A report of a message that is not known (yet) changes nothing, and is not remembered:
    see `is_early`.
    """
    held = await _lock_meant(tx, company, source, report)
    changed = [await _hear(tx, company, message, report, now) for message in held]
    return [message for message in changed if message is not None]


async def is_early(tx: Tx, company: Company, source: Source, report: StatusReport, now: datetime) -> bool:
    """Whether the report may say more in a moment: a fast channel reports before the answer to our own call is stored.
    Then a message is not known yet by the channel's id of it, and a watermark passes over one that is on its way."""
    if report.watermark is None:
        return not await _lock_meant(tx, company, source, report)
    whom = list_values(report.recipient) if report.recipient else []
    since = now - UNDER_WAY
    return await unsettled_queries.is_under_way(tx, company.id, source, whom, since, report.watermark)


async def accept(tx: Tx, company: Company, source: Source, id: str, provider_id: str, now: datetime) -> Message:
    """The channel took the message in answer to our call. Its reports may have been faster."""
    held = await queries.lock_message(tx, company.id, id)
    state = replace(held.state, accepted_at=now)
    known = await queries.find_id(tx, company.id, source, provider_id)
    report = StatusReport("sent", now, message_id=provider_id if known in {None, id} else None)
    changed = await _store(tx, company, held, report, merge(state, "sent", now, now))
    return changed or await queries.get_message(tx, company.id, id)


async def refuse(tx: Tx, company: Company, id: str, code: str, reason: str, now: datetime) -> Message | None:
    """The channel refused the message in answer to our call; None when that is known already."""
    held = await queries.lock_message(tx, company.id, id)
    report = StatusReport("failed", now, code=code, reason=reason)
    return await _store(tx, company, held, report, merge(held.state, "failed", now, now))


async def give_up(tx: Tx, company: Company, id: str, now: datetime) -> Message | None:
    """Nobody has said what became of the message, and nobody is waited for any more; None when somebody has."""
    held = await queries.lock_message(tx, company.id, id)
    if held.status != "pending":
        return None
    hours = SILENCE // timedelta(hours=1)
    reason = f"The channel did not say within {hours} hours what became of the message; it may have arrived."
    report = StatusReport("failed", now, code=NO_WORD, reason=reason)
    return await _store(tx, company, held, report, merge(held.state, "failed", now, now))


async def imply_delivery(tx: Tx, company: Company, held: Held, at: datetime, now: datetime) -> None:
    """Somebody who answers a message has got it, read or not."""
    report = StatusReport("delivered", at)
    if RANKS.get(held.status, -1) < RANKS["delivered"]:
        merged = merge(held.state, "delivered", at, now)
        await _store(tx, company, held, report, merged, is_implied=True)


async def _lock_meant(tx: Tx, company: Company, source: Source, report: StatusReport) -> Sequence[Held]:
    if report.watermark is not None:
        if report.recipient is None:
            return []
        whom = list_values(report.recipient)
        return await queries.lock_up_to(tx, company.id, source, whom, report.watermark, _below(report.status))
    reference = report.reference if report.reference and MESSAGE_ID.matches(report.reference) else None
    held = await queries.find_locked(tx, company.id, source, reference, report.message_id)
    return [] if held is None else [held]


def list_values(identity: Identity) -> list[str]:
    """All the ways in which messages may name somebody."""
    known = canonical(identity)
    return list_spellings(known.value) if known.kind == "phone" else [known.value]


def _below(status: Status) -> list[str]:
    return [word for word, rank in RANKS.items() if rank < RANKS.get(status, 0)]


async def _hear(tx: Tx, company: Company, held: Held, report: StatusReport, now: datetime) -> Message | None:
    merged = merge(held.state, report.status, to_milliseconds(report.at), now)
    return await _store(tx, company, held, report, merged)


async def _store(
    tx: Tx, company: Company, held: Held, report: StatusReport, merged: Merged, *, is_implied: bool = False
) -> Message | None:
    """Writes what is new and announces a change of the status."""
    is_change = merged.state.status != held.status
    sequence = held.sequence + is_change
    await queries.insert_events(
        tx, company.id, _build_events(held, report, merged, sequence if is_change else None, is_implied)
    )
    provider_id = held.provider_id or report.message_id
    if merged.state == held.state and provider_id == held.provider_id:
        return None
    error = _error_after(held, merged, report)
    message = await queries.update_state(tx, company.id, held, merged.state, provider_id, error, sequence)
    if not is_change:
        return None
    if (held.status in GONE_OUT) != (message.status in GONE_OUT):
        await support.settle(tx, company, message)
    if message.ticket_id is not None:
        ring_after_commit(tx, build_bell(company.id))
    await emit(tx, company, MessageStatusUpdated(_build_update(message, held.status)))
    return message


def _build_events(
    held: Held, report: StatusReport, merged: Merged, sequence: int | None, is_implied: bool
) -> list[NewEvent]:
    at = to_milliseconds(report.at)
    own = NewEvent(held.id, report.status, at, merged.at, is_implied, sequence, report.code, report.reason)
    return [*(NewEvent(held.id, step, at, merged.at, is_implied=True) for step in merged.implied), own]


def _error_after(held: Held, merged: Merged, report: StatusReport) -> bytes | Raw | None:
    """The first failure's reason stays for as long as the failure is remembered; what was unclear no longer is."""
    if merged.state.failed_at is None:
        return None
    if held.failed_at is not None:
        return held.error
    return encode(SendError(report.code or UNKNOWN, report.reason or "The channel gave no reason."))


def _build_update(message: Message, previous: str) -> MessageUpdate:
    fields = {name: getattr(message, name) for name in message.__struct_fields__}
    return MessageUpdate(**fields | {"previous_status": previous})


def to_milliseconds(instant: datetime) -> datetime:
    """In UTC, as precisely as the database keeps it."""
    instant = instant.astimezone(UTC)
    return instant - timedelta(microseconds=instant.microsecond % 1000)
