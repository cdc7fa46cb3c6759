"""Messages that their channel refused for the moment: when they are sent again, and when that ends."""

from datetime import datetime, timedelta

import msgspec

from sapa.access.actions import read_clock
from sapa.context import AppContext
from sapa.db.pool import Tx
from sapa.messaging.channels.interface import OutgoingMessage, SendDeferral, SendRefusal
from sapa.messaging.messages import actions as messages
from sapa.messaging.messages.types import Message
from sapa.messaging.sending import queries
from sapa.messaging.sending.queries import DeferredMessage
from sapa.values.company import Company
from sapa.values.sealing import ResealedBatch, Vault

SCHEDULE = [timedelta(minutes=minutes) for minutes in (1, 5, 15, 60)] + [
    timedelta(hours=hours) for hours in range(2, 14)
]
"""After the first try: 1, 5, 15 and 60 minutes, then hourly for 12 hours."""


async def defer(
    tx: Tx,
    company: Company,
    connection_id: str,
    outgoing: OutgoingMessage,
    deferral: SendDeferral,
    vault: Vault | None = None,
) -> Message:
    """After the first try. A message with a one-time code is sealed with the vault."""
    now, id = (await read_clock(tx, company.id)).now, outgoing.reference
    message = await messages.mark_deferred(tx, company, id, deferral.code, deferral.reason, now)
    if message.status == "pending":
        content = msgspec.msgpack.encode(outgoing)
        if vault is not None:
            content = vault.seal(content, company.id, id)
        await queries.defer(tx, company.id, id, connection_id, content, vault is not None, now, now + SCHEDULE[0])
    return message


def open_outgoing(context: AppContext, company: Company, id: str, deferred: DeferredMessage) -> OutgoingMessage:
    content = deferred.outgoing
    if deferred.is_sealed:
        content = context.vault.open(content, company.id, id)
    return msgspec.msgpack.decode(content, type=OutgoingMessage)


async def reseal(tx: Tx, vault: Vault, company_id: int, after: str, limit: int) -> ResealedBatch:
    """One batch of a rotation of the secret key."""
    batch = vault.reseal(await queries.lock_sealed(tx, company_id, after, limit), company_id)
    await queries.replace_sealed(tx, company_id, batch.sealed)
    return batch


async def defer_again(
    tx: Tx, company: Company, id: str, deferred: DeferredMessage, deferral: SendDeferral, now: datetime
) -> None:
    """After a later try; the message fails after the last one. A time that has passed is skipped."""
    later = [after for after in SCHEDULE[deferred.tries - 1 :] if deferred.deferred_at + after > now]
    if not later:
        hours = SCHEDULE[-1] // timedelta(hours=1)
        reason = f"{deferral.reason} It was tried for {hours} hours."
        await messages.refuse(tx, company, id, SendRefusal(deferral.code, reason, "temporary"), now)
        await queries.delete_deferred(tx, company.id, id)
        return
    await messages.mark_deferred(tx, company, id, deferral.code, deferral.reason, now)
    await queries.reschedule(tx, company.id, id, deferred.deferred_at + later[0])
