"""Records what channels report besides messages and their status."""

from collections.abc import Sequence
from datetime import timedelta
from hashlib import sha256

import msgspec

from sapa.access.actions import read_clock
from sapa.db.pool import Connection, Database, Tx
from sapa.messaging.channel_events import queries
from sapa.messaging.channel_events.types import (
    CHANNEL_EVENT_ID,
    ChannelEvent,
    NewChannelEvent,
    PreferenceReceived,
)
from sapa.messaging.channels.identities import canonical
from sapa.messaging.channels.interface import AmendmentKind, ChannelNotice, MessageAmendment, Source
from sapa.messaging.contacts import actions as contacts
from sapa.ports import publish
from sapa.values.company import Company
from sapa.values.instants import truncate_to_milliseconds
from sapa.values.json import encode_document

MAX_SHOWN = 20
MAX_NUMBER_LENGTH = 320
RETENTION = timedelta(days=90)
BATCH = 500


async def record(tx: Tx, company: Company, source: Source, connection_id: str, notice: ChannelNotice) -> None:
    """Stores a report once, and announces what a person chose."""
    contact = None
    if notice.sender:
        contact = await contacts.find_or_create_contact(tx, company, notice.sender, notice.sender_name)
    now = (await read_clock(tx, company.id)).now
    new = NewChannelEvent(
        id=CHANNEL_EVENT_ID.new(),
        connection_id=connection_id,
        source=source,
        kind=notice.kind,
        name=notice.name,
        key=notice.key,
        contact_id=contact.id if contact else None,
        customer_id=contact.customer_id if contact else None,
        client_number=canonical(notice.sender[0]).value[:MAX_NUMBER_LENGTH] if notice.sender else None,
        data=notice.data,
        occurred_at=min(truncate_to_milliseconds(notice.at), now),
    )
    is_new = await queries.insert_event(tx, company.id, new)
    if not is_new or contact is None or notice.preference is None:
        return
    announcement = PreferenceReceived(
        new.id,
        source,
        connection_id,
        contact.id,
        contact.customer_id,
        notice.sender,
        notice.preference,
        new.occurred_at,
    )
    await publish(tx, company, announcement)


async def record_amendment(
    tx: Tx, company: Company, source: Source, connection_id: str, amendment: MessageAmendment
) -> None:
    """Stores an edit, a deletion or a reaction whose message has not arrived."""
    data = encode_document({"body": amendment.body, "isEcho": amendment.is_echo})
    at = truncate_to_milliseconds(amendment.at)
    identified = [amendment.kind, amendment.message_id, at.isoformat(), data.decode()]
    new = NewChannelEvent(
        id=CHANNEL_EVENT_ID.new(),
        connection_id=connection_id,
        source=source,
        kind=amendment.kind,
        name=amendment.kind,
        key=sha256(encode_document(identified)).hexdigest(),
        message_id=amendment.message_id,
        client_number=canonical(amendment.sender).value[:MAX_NUMBER_LENGTH] if amendment.sender else None,
        data=data,
        occurred_at=at,
    )
    await queries.insert_event(tx, company.id, new)


class AmendmentData(msgspec.Struct, frozen=True, rename="camel"):
    body: str | None
    is_echo: bool


_parse_amendment = msgspec.json.Decoder(AmendmentData).decode


async def list_amendments(
    db: Connection, company: Company, source: Source, message_id: str
) -> Sequence[MessageAmendment]:
    """Those that arrived before their message, the oldest first."""
    found = []
    for stored in await queries.list_amendments(db, company.id, source, message_id):
        data = _parse_amendment(stored.data)
        kind = msgspec.convert(stored.kind, AmendmentKind)
        found.append(MessageAmendment(kind, message_id, stored.occurred_at, data.body, is_echo=data.is_echo))
    return found


async def list_latest(db: Connection, company: Company, connection_id: str) -> list[ChannelEvent]:
    return await queries.list_of_connection(db, company.id, connection_id, MAX_SHOWN)


async def purge_old(database: Database) -> None:
    """Worker job."""
    async with database.connection() as db:
        companies = await queries.list_companies_to_purge(db, RETENTION)
    for company_id in companies:
        purged = BATCH
        while purged == BATCH:
            async with database.transaction() as tx:
                purged = await queries.purge(tx, company_id, RETENTION, BATCH)
