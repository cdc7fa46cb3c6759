"""Records messages, and updates their status by the channels' reports or by replies that prove delivery."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import takewhile

import msgspec
from msgspec.structs import asdict, replace

from sapa.access.actions import read_clock
from sapa.db.pool import Connection, Tx, notify_after_commit
from sapa.events import emit
from sapa.http.errors import Invalid
from sapa.messaging.channels.identities import canonical, list_spellings
from sapa.messaging.channels.interface import (
    Identity,
    MessageAmendment,
    ReceivedItem,
    SendReceipt,
    SendRefusal,
    Source,
    Status,
    StatusReport,
)
from sapa.messaging.contacts.types import Contact
from sapa.messaging.messages import queries, reports
from sapa.messaging.messages.amendments import AMENDMENT_EVENTS, apply_amendment
from sapa.messaging.messages.reports import ReportedChange
from sapa.messaging.messages.state import RANKS, merge
from sapa.messaging.messages.types import (
    MESSAGE_ID,
    NO_WORD,
    AmendableMessage,
    ChangedMessage,
    LockedMessage,
    Message,
    MessageChange,
    MessageEvent,
    MessageParty,
    MessageUpdated,
    MessageWithEvents,
    NewEvent,
    NewMessage,
    SendError,
)
from sapa.messaging.tickets import TicketLink, build_tickets_channel
from sapa.values.company import Company
from sapa.values.instants import format_instant, truncate_to_milliseconds
from sapa.values.json import encode

STATUS_TIMEOUT = timedelta(hours=24)
"""How long to wait for a channel's report on a message."""
UNCLEAR = "UNCLEAR"
HELD = "HELD"
REPLY_WINDOW = timedelta(hours=72)
ECHO_WINDOW = timedelta(minutes=2)
IN_FLIGHT_WINDOW = timedelta(minutes=2)
"""How long after its call a message may still be in flight."""

_read_events = msgspec.json.Decoder(list[MessageEvent]).decode


async def move_to_ticket(tx: Tx, company: Company, from_id: str, to_id: str) -> None:
    """Moves all messages of a ticket to another one."""
    await queries.move_to_ticket(tx, company.id, from_id, to_id)


async def list_of_ticket(
    db: Connection, company: Company, ticket_id: str, limit: int, before: str | None
) -> tuple[list[Message], str | None]:
    """The newest messages of a ticket, or those before another message, oldest first; and the cursor for earlier
    ones."""
    if before is not None and not await queries.is_in_ticket(db, company.id, ticket_id, before):
        raise Invalid.field("before", "must be the `earlier` of a response for this ticket")
    found = await queries.list_newest(db, company.id, ticket_id, limit + 1, before)
    page = found[:limit][::-1]
    return page, page[0].message_id2 if len(found) > limit else None


async def get_with_events(db: Connection, company: Company, id: str) -> MessageWithEvents:
    message = await queries.get_with_events(db, company.id, id)
    return MessageWithEvents(**asdict(message) | {"events": _read_events(message.events)})


async def find_id(db: Connection, company: Company, source: Source, provider_id: str) -> str | None:
    """Our id of the message that the channel knows by this one."""
    return await queries.find_id(db, company.id, source, provider_id)


async def set_parts(tx: Tx, company: Company, id: str, parts: bytes | None) -> Message:
    return await queries.set_parts(tx, company.id, id, parts)


async def record_outbound(tx: Tx, company: Company, new: NewMessage) -> Message:
    """Stores a message that has no channel id yet, so it cannot be a duplicate."""
    message = await queries.insert_message(tx, company.id, new)
    if message is None:
        raise RuntimeError("a message without the channel's id was taken for another one")
    return message


async def set_attachments(tx: Tx, company: Company, id: str, attachments: bytes) -> None:
    """Stores the attachments of a message once its files were fetched."""
    await queries.set_attachments(tx, company.id, id, attachments)


async def record_inbound(
    tx: Tx, company: Company, inbound: ReceivedItem, contact: Contact, new: NewMessage, now: datetime
) -> Message | None:
    """None if the message is stored already, or is an echo of one of ours."""
    if inbound.is_echo and await _settle_echo(tx, company, Source(new.source), inbound, contact, now):
        return None
    return await queries.insert_message(tx, company.id, new)


async def _settle_echo(
    tx: Tx, company: Company, source: Source, inbound: ReceivedItem, contact: Contact, now: datetime
) -> bool:
    """Takes the echo of a message that we sent as its report; False if it is of none of ours. An echo without a
    reference may arrive before our own call gets its response."""
    reference = inbound.reference if inbound.reference and MESSAGE_ID.matches(inbound.reference) else None
    locked = await queries.find_locked(tx, company.id, source, reference, inbound.message_id)
    if locked is None:
        values = _list_identity_values(inbound, contact)
        locked = await queries.find_locked_pending(tx, company.id, source, values, now - ECHO_WINDOW, inbound.body)
    if locked is None:
        return False
    report = StatusReport("sent", inbound.at, message_id=inbound.message_id, reference=locked.id)
    await apply(tx, company, source, report, now)
    return True


async def record_reply(
    tx: Tx, company: Company, source: Source, inbound: ReceivedItem, contact: Contact, at: datetime, now: datetime
) -> None:
    """Marks the quoted message as replied; without a quotation, the latest one within the reply window. Repeating it
    changes nothing."""
    locked = await _find_answered(tx, company, source, inbound, contact, at)
    if locked is None or locked.replied_at is not None:
        return
    await _imply_delivery(tx, company, locked, at, now)
    await queries.set_replied(tx, company.id, locked.id, max(at, locked.state.created_at))
    await queries.insert_events(tx, company.id, [NewEvent(locked.id, "replied", at, at)])


async def is_reply_early(
    tx: Tx, company: Company, source: Source, inbound: ReceivedItem, contact: Contact, now: datetime
) -> bool:
    """Whether a reply may quote a message whose id the channel has not told us yet: its outcome is still unknown."""
    if inbound.quoted is None or await queries.find_id(tx, company.id, source, inbound.quoted):
        return False
    values = _list_identity_values(inbound, contact)
    return await queries.is_in_flight(tx, company.id, source, values, now - STATUS_TIMEOUT, now)


async def _find_answered(
    tx: Tx, company: Company, source: Source, inbound: ReceivedItem, contact: Contact, at: datetime
) -> LockedMessage | None:
    for quoted in [inbound.quoted, *reversed(inbound.thread)]:
        if quoted and (locked := await queries.find_locked(tx, company.id, source, None, quoted)):
            return locked
    reference = inbound.quoted_reference
    if reference and MESSAGE_ID.matches(reference):
        return await queries.find_locked(tx, company.id, source, reference, None)
    if inbound.quoted:
        return None
    values = _list_identity_values(inbound, contact)
    return await queries.find_locked_latest(tx, company.id, source, values, at - REPLY_WINDOW, at)


def _list_identity_values(inbound: ReceivedItem, contact: Contact) -> list[str]:
    """All ids of the contact: a channel may know them by another id than we do."""
    identities = [*inbound.sender, *contact.identities]
    return list(dict.fromkeys(value for identity in identities for value in list_values(identity)))


async def link_ticket(tx: Tx, company: Company, message: Message, link: TicketLink) -> Message:
    await queries.set_ticket(tx, company.id, message.message_id2, link.ticket_id, link.agent_id)
    return replace(message, ticket_id=link.ticket_id, agent_id=link.agent_id)


async def amend(tx: Tx, company: Company, source: Source, amendment: MessageAmendment) -> bool:
    """Records an edit, a deletion or a reaction as an event of the original message, and updates the message, in
    whatever order they arrive. False if the message is not stored."""
    stored = await queries.find_amendable(tx, company.id, source, amendment.message_id)
    if stored is None:
        return False
    now = (await read_clock(tx, company.id)).now
    reported_at = truncate_to_milliseconds(amendment.at)
    kind, at = AMENDMENT_EVENTS[amendment.kind], min(reported_at, now)
    if not await _record_amendment(tx, company, NewEvent(stored.id, kind, reported_at, at, detail=amendment.body)):
        return True
    party: MessageParty = "company" if _is_by_company(stored, amendment) else "customer"
    message = await queries.amend(tx, company.id, apply_amendment(stored, amendment, party, at))
    if message.ticket_id is not None:
        notify_after_commit(tx, build_tickets_channel(company.id))
    change = MessageChange(kind, party, format_instant(at), amendment.body)
    await emit(tx, company, MessageUpdated(ChangedMessage(**asdict(message), change=change)))
    return True


async def _record_amendment(tx: Tx, company: Company, event: NewEvent) -> bool:
    """False if it is stored already. Channels give times in whole seconds: a second one within a second is stored one
    millisecond later."""
    while not await queries.insert_events(tx, company.id, [event]):
        if await queries.find_event_detail(tx, company.id, event) == event.detail:
            return False
        event = replace(event, reported_at=event.reported_at + timedelta(milliseconds=1))
    return True


def _is_by_company(stored: AmendableMessage, amendment: MessageAmendment) -> bool:
    """Only its sender edits or deletes a message; both sides react."""
    return amendment.is_echo if amendment.kind == "reaction" else stored.direction == "out"


async def apply(tx: Tx, company: Company, source: Source, report: StatusReport, now: datetime) -> list[Message]:
    """Returns the messages whose status changed; none if the report is a duplicate or changes nothing.

    `now` is the company's time. A report on an unknown message changes nothing and is not stored: see
    `receive_reports`.
    """
    locked = await _lock_reported(tx, company, source, report)
    changed = await reports.store(tx, company, [_merge_report(message, report, now) for message in locked])
    return [message for message in changed if message is not None]


async def receive_reports(
    tx: Tx, company: Company, source: Source, received: Sequence[StatusReport], now: datetime
) -> list[bool]:
    """Applies the reports in their order, with few statements for many. True for one that has to be applied again
    later: a fast channel reports before the response to our own call is stored. Then the channel's id is not known yet,
    and a watermark misses a message in flight."""
    is_early = [False] * len(received)
    waiting = list(range(len(received)))
    while waiting:
        if received[waiting[0]].watermark is not None:
            place = waiting.pop(0)
            is_early[place] = await _receive_watermark(tx, company, source, received[place], now)
            continue
        group = list(takewhile(lambda place: received[place].watermark is None, waiting))
        messages = await _lock_all_reported(tx, company, source, [received[place] for place in group])
        changes: dict[str, ReportedChange] = {}
        left = []
        for place, locked in zip(group, messages, strict=True):
            if locked is None:
                is_early[place] = True
            elif locked.id in changes:  # a later report on a message sees what the earlier one changed
                left.append(place)
            else:
                changes[locked.id] = _merge_report(locked, received[place], now)
        await reports.store_all(tx, company, list(changes.values()))
        waiting = left + waiting[len(group) :]
    return is_early


async def _receive_watermark(tx: Tx, company: Company, source: Source, report: StatusReport, now: datetime) -> bool:
    await apply(tx, company, source, report, now)
    recipients = list_values(report.recipient) if report.recipient else []
    since, until = now - IN_FLIGHT_WINDOW, report.watermark or now
    return await queries.is_in_flight(tx, company.id, source, recipients, since, until)


async def accept(tx: Tx, company: Company, source: Source, id: str, sent: SendReceipt, now: datetime) -> Message:
    """The channel accepted the message in its response. Its reports may have come first."""
    provider_id = sent.message_id
    locked = await queries.lock_message(tx, company.id, id)
    if sent.held is not None and locked.status == "pending":
        return await _hold(tx, company, locked, provider_id, sent.held, now)
    state = replace(locked.state, accepted_at=now)
    existing_id = await queries.find_id(tx, company.id, source, provider_id)
    report = StatusReport("sent", now, message_id=provider_id if existing_id in {None, id} else None)
    [changed] = await reports.store(tx, company, [ReportedChange(locked, report, merge(state, "sent", now, now))])
    message = changed or await queries.get_message(tx, company.id, id)
    if sent.missing is not None:
        await queries.insert_events(tx, company.id, [NewEvent(id, "incomplete", now, now, detail=sent.missing)])
    return message


async def _hold(
    tx: Tx, company: Company, locked: LockedMessage, provider_id: str, reason: str, now: datetime
) -> Message:
    """The channel has the message, and has not sent it: it stays pending until the channel reports on it."""
    error = encode(SendError(HELD, reason))
    await queries.insert_events(tx, company.id, [NewEvent(locked.id, "held", now, now, detail=reason)])
    return await queries.hold(tx, company.id, locked.id, provider_id, error)


async def refuse(tx: Tx, company: Company, id: str, refusal: SendRefusal, now: datetime) -> Message | None:
    """The channel refused the message in its response; None if the failure is stored already."""
    locked = await queries.lock_message(tx, company.id, id)
    report = StatusReport(
        "failed",
        now,
        code=refusal.code,
        reason=refusal.reason,
        category=refusal.category,
        is_retryable=refusal.retry_after is not None,
    )
    change = ReportedChange(locked, report, merge(locked.state, "failed", now, now))
    [failed] = await reports.store(tx, company, [change])
    return failed


async def mark_unclear(tx: Tx, company: Company, id: str, reason: str) -> Message:
    """The outcome is unknown, unless the channel has reported on the message since."""
    locked = await queries.lock_message(tx, company.id, id)
    if locked.status != "pending":
        return await queries.get_message(tx, company.id, id)
    now = (await read_clock(tx, company.id)).now
    message = await queries.set_error(tx, company.id, id, encode(SendError(UNCLEAR, reason)))
    await queries.insert_events(tx, company.id, [NewEvent(id, "unclear", now, now, detail=reason)])
    return message


async def mark_deferred(tx: Tx, company: Company, id: str, code: str, reason: str, now: datetime) -> Message:
    """The channel did not take the message yet, and it is sent again later."""
    locked = await queries.lock_message(tx, company.id, id)
    if locked.status != "pending":
        return await queries.get_message(tx, company.id, id)
    message = await queries.set_error(tx, company.id, id, encode(SendError(code, reason)))
    await queries.insert_events(tx, company.id, [NewEvent(id, "deferred", now, now, code=code, detail=reason)])
    return message


async def is_pending(tx: Tx, company: Company, id: str) -> bool:
    """Locks the message, so that its status stays until the transaction ends."""
    return (await queries.lock_message(tx, company.id, id)).status == "pending"


async def expire_unsettled(tx: Tx, company: Company, id: str, now: datetime) -> Message | None:
    """Fails a message that stayed without an outcome; None if it has one."""
    locked = await queries.lock_message(tx, company.id, id)
    if locked.status != "pending":
        return None
    hours = STATUS_TIMEOUT // timedelta(hours=1)
    reason = f"The channel did not report on the message within {hours} hours. It may have arrived."
    report = StatusReport("failed", now, code=NO_WORD, reason=reason)
    change = ReportedChange(locked, report, merge(locked.state, "failed", now, now))
    [failed] = await reports.store(tx, company, [change])
    return failed


async def _imply_delivery(tx: Tx, company: Company, locked: LockedMessage, at: datetime, now: datetime) -> None:
    """A reply proves delivery, but not that the message was read."""
    report = StatusReport("delivered", at)
    if RANKS.get(locked.status, -1) < RANKS["delivered"]:
        merged = merge(locked.state, "delivered", at, now)
        await reports.store(tx, company, [ReportedChange(locked, report, merged, is_implied=True)])


async def _lock_reported(tx: Tx, company: Company, source: Source, report: StatusReport) -> Sequence[LockedMessage]:
    if report.watermark is not None:
        if report.recipient is None:
            return []
        recipients = list_values(report.recipient)
        return await queries.lock_up_to(tx, company.id, source, recipients, report.watermark, _below(report.status))
    return [message for message in await _lock_all_reported(tx, company, source, [report]) if message is not None]


async def _lock_all_reported(
    tx: Tx, company: Company, source: Source, received: Sequence[StatusReport]
) -> list[LockedMessage | None]:
    """The message of each report: by our reference if the channel returned it, else by the channel's id."""
    references = [report.reference for report in received if report.reference and MESSAGE_ID.matches(report.reference)]
    provider_ids = [report.message_id for report in received if report.message_id]
    locked = await queries.lock_reported(tx, company.id, source, references, provider_ids)
    by_id = {message.id: message for message in locked}
    by_provider_id = {message.provider_id: message for message in locked if message.source == source}
    return [
        by_id.get(report.reference or "") or (by_provider_id.get(report.message_id) if report.message_id else None)
        for report in received
    ]


def _merge_report(locked: LockedMessage, report: StatusReport, now: datetime) -> ReportedChange:
    return ReportedChange(locked, report, merge(locked.state, report.status, truncate_to_milliseconds(report.at), now))


def list_values(identity: Identity) -> list[str]:
    """All values by which messages may refer to a person."""
    identity = canonical(identity)
    return list_spellings(identity.value) if identity.kind == "phone" else [identity.value]


def _below(status: Status) -> list[str]:
    return [name for name, rank in RANKS.items() if rank < RANKS.get(status, 0)]


def build_error(refusal: SendRefusal) -> SendError:
    return SendError(refusal.code, refusal.reason, refusal.category, refusal.retry_after is not None)
