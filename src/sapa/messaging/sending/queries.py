"""Queries for the mail that a message answers, the rate of each connection, and messages to send again."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from msgspec import Raw, Struct

from sapa.access.statement_parts import CLOCK
from sapa.customers.statement_parts import MATCHING
from sapa.db.due import WORKER, build_next_due
from sapa.db.pool import Connection, Tx
from sapa.db.sql import compose, sql
from sapa.db.wakeups import DueQueue
from sapa.events import RECORDED
from sapa.messaging.channel_status.statement_parts import THROUGHPUT
from sapa.messaging.channels.identities import build_key, canonical, list_customer_keys
from sapa.messaging.channels.interface import Identity, Source
from sapa.messaging.connections.statement_parts import CONNECTION
from sapa.messaging.contacts.statement_parts import RECIPIENT, THREAD
from sapa.messaging.history import statement_parts as history_parts
from sapa.messaging.history.statement_parts import ANSWERED
from sapa.messaging.messages.statement_parts import CHANGED, MESSAGE, NEW_MESSAGE, PREFIX
from sapa.messaging.messages.types import MessageStatusUpdated, NewMessage
from sapa.values.sealing import SealedValue


class ReceivedMail(Struct, frozen=True):
    """A received mail."""

    provider_id: str | None
    """The Message-ID."""
    subject: str | None
    thread: list[str] | None


class MessageTarget(Struct, frozen=True):
    """A message that another one refers to."""

    provider_id: str | None
    direction: str
    source: str
    connection_id: str
    contact_id: str | None
    identity_kind: str
    identity: str


class StoredConversation(Struct, frozen=True):
    """What a send reads: the time, the stored account with the channel, and the thread with the recipient."""

    now: datetime
    real: datetime
    connection_id: str | None
    account: Raw | None
    credentials: bytes | None
    last_error: str | None
    throughput: str | None
    contact_id: str | None
    last_inbound_at: datetime | None
    sent_in_window: int | None
    last_message_id: str | None
    last_inbound_id: str | None
    customer_id: str | None


class RecordOutcome(Struct, frozen=True):
    is_stored: bool


class StoredAcceptance(Struct, frozen=True):
    id: str
    has_deliveries: bool


class DueMessage(Struct, frozen=True):
    """A deferred message whose time has come."""

    company_id: int
    message_id: str


class DeferredMessage(Struct, frozen=True):
    connection_id: str
    outgoing: bytes
    is_sealed: bool
    tries: int
    deferred_at: datetime


FIND = sql(
    """
    SELECT provider_id, subject, thread
      FROM messages
     WHERE company_id = $1 AND id = $2 AND direction = 'in'""",
    row=ReceivedMail,
)


# The recipient may be a customer who never wrote.
GET_CONVERSATION = compose(
    [CLOCK, CONNECTION, THROUGHPUT, THREAD, MATCHING],
    """
    SELECT clock.now, clock.real, connection.id AS connection_id, connection.account, connection.credentials,
           connection.last_error, (SELECT throughput FROM throughput) AS throughput, thread.contact_id,
           thread.last_inbound_at, thread.sent_in_window, thread.last_message_id, thread.last_inbound_id,
           coalesce(thread.customer_id, (SELECT id FROM matching)) AS customer_id
      FROM clock
      LEFT JOIN connection ON true
      LEFT JOIN thread ON true""",
    row=StoredConversation,
)

# Nothing if the recipient's identity has gone to another contact.
RECORD = compose(
    [RECIPIENT, MESSAGE, history_parts.RECORD], "SELECT EXISTS (SELECT FROM message) AS is_stored", row=RecordOutcome
)

ACCEPT = compose(
    [
        """accepted AS (
    SELECT *
      FROM unnest(:id::text[], :sequence::int[], :provider_id::text[], :at::timestamptz[], :event_id::text[],
                  :body::bytea[], :record_stored_at::timestamptz[], :record_id::text[], :snapshot::bytea[])
           AS a (id, sequence, provider_id, at, event_id, body, record_stored_at, record_id, snapshot))""",
        CHANGED,
        ANSWERED,
        f"""announced AS (
    SELECT a.event_id AS id, '{MessageStatusUpdated.kind}' AS kind, a.id AS resource_id, a.body
      FROM accepted AS a
      JOIN changed ON changed.id = a.id)""",
        RECORDED,
    ],
    "SELECT id, EXISTS (SELECT FROM deliveries) AS has_deliveries FROM changed",
    row=StoredAcceptance,
)

FIND_TARGET = sql(
    f"SELECT {', '.join(MessageTarget.__struct_fields__)} FROM messages WHERE company_id = $1 AND id = $2",
    row=MessageTarget,
)

# A slot too far ahead is not reserved: the row stays as it is.
RESERVE_SLOT = sql(
    """
    INSERT INTO channel_paces AS p (company_id, connection_id, free_at)
    VALUES ($1, $2, clock_timestamp() + make_interval(secs => $3))
    ON CONFLICT (company_id, connection_id) DO UPDATE
       SET free_at = GREATEST(p.free_at, clock_timestamp()) + make_interval(secs => $3)
     WHERE p.free_at <= clock_timestamp() + make_interval(secs => $4)
    RETURNING GREATEST(0, date_part('epoch', free_at - clock_timestamp()) - $3)"""
)

FIND_WAIT = sql(
    """
    SELECT GREATEST(0, date_part('epoch', free_at - clock_timestamp()))
      FROM channel_paces
     WHERE company_id = $1 AND connection_id = $2"""
)


DEFER = sql(
    """
    INSERT INTO deferred_messages (company_id, message_id, connection_id, outgoing, is_sealed, deferred_at, due_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7)
        ON CONFLICT (company_id, message_id) DO NOTHING"""
)

# A few per company, so that one company does not fill the list.
LIST_DUE = sql(
    """
    SELECT company_id, message_id
      FROM (SELECT d.company_id, d.message_id, d.due_at,
                   row_number() OVER (PARTITION BY d.company_id ORDER BY d.due_at) AS place
              FROM deferred_messages d
              JOIN companies c ON c.company_id = d.company_id
             WHERE d.due_at <= now() + c.clock_offset AND d.claimed_at IS NULL) AS due
     WHERE place <= $1
     ORDER BY due_at
     LIMIT $2""",
    row=DueMessage,
    crosses="the worker finds deferred messages of all companies, then sends them one by one",
)

ABANDONED_SECONDS = 300.0
"""Longer than a try and storing its outcome can take: the worker that claimed the message has died."""

NEXT_DEFERRED = sql(
    f"""
    SELECT LEAST(({build_next_due("deferred_messages", "due_at", "claimed_at IS NULL")}),
                 (SELECT extract(epoch FROM min(claimed_at) - now())::float8 + {ABANDONED_SECONDS}
                    FROM deferred_messages
                   WHERE claimed_at IS NOT NULL))""",
    crosses=WORKER,
)
DEFERRED = DueQueue("deferred messages", NEXT_DEFERRED.text)
"""Due messages, and those whose worker died."""

LIST_ABANDONED = sql(
    "SELECT company_id, message_id FROM deferred_messages WHERE claimed_at < now() - make_interval(secs => $1)",
    row=DueMessage,
    crosses="the worker finds deferred messages whose worker died, then settles them one by one",
)

CLAIM_DEFERRED = sql(
    """
    UPDATE deferred_messages
       SET claimed_at = now(), tries = tries + 1
     WHERE company_id = $1 AND message_id = $2 AND claimed_at IS NULL
    RETURNING connection_id, outgoing, is_sealed, tries, deferred_at""",
    row=DeferredMessage,
)

RESCHEDULE = sql(
    "UPDATE deferred_messages SET due_at = $3, claimed_at = NULL WHERE company_id = $1 AND message_id = $2"
)

DELETE_DEFERRED = sql("DELETE FROM deferred_messages WHERE company_id = $1 AND message_id = $2")

LOCK_SEALED = sql(
    """
    SELECT message_id AS position, message_id AS bound_to, outgoing AS sealed
      FROM deferred_messages
     WHERE company_id = $1 AND message_id > $2 AND is_sealed
     ORDER BY message_id
     LIMIT $3
       FOR NO KEY UPDATE""",
    row=SealedValue,
)

REPLACE_SEALED = sql(
    """
    UPDATE deferred_messages AS d
       SET outgoing = new.sealed
      FROM unnest($2::text[], $3::bytea[]) AS new (message_id, sealed)
     WHERE d.company_id = $1 AND d.message_id = new.message_id"""
)


async def get_conversation(
    db: Connection, company_id: int, source: Source, connection_id: str | None, to: Identity | None
) -> StoredConversation:
    """`connection_id` is that of an account that is not stored; without a recipient nobody is found."""
    phone_numbers, email = list_customer_keys(to) if to else ([], None)
    values = {
        "source": source,
        "connection_id": connection_id,
        "identity_kind": canonical(to).kind if to else None,
        "identity_key": build_key(to) if to else None,
        "phone_numbers": phone_numbers,
        "email_key": email and email.casefold(),
    }
    (found,) = await GET_CONVERSATION.all(db, company_id, *GET_CONVERSATION.order(values))
    return found


async def record(tx: Tx, company_id: int, to: Identity, new: NewMessage, record_values: Mapping[str, object]) -> bool:
    """Stores a message to a known contact and the record of its call; False if the contact is another one by now."""
    values = {
        "identity_kind": canonical(to).kind,
        "identity_key": build_key(to),
        **NEW_MESSAGE.name_values(PREFIX, new),
        **record_values,
    }
    (outcome,) = await RECORD.all(tx, company_id, *RECORD.order(values))
    return outcome.is_stored


async def accept(tx: Tx, company_id: int, acceptances: Sequence[Struct]) -> tuple[set[str], bool]:
    """The ids of the messages that were still as recorded, and whether there are webhooks to deliver."""
    columns = {name: [getattr(each, name) for each in acceptances] for name in ACCEPT.names}
    accepted = await ACCEPT.all(tx, company_id, *ACCEPT.order(columns))
    return {each.id for each in accepted}, any(each.has_deliveries for each in accepted)


async def find_mail(db: Connection, company_id: int, id: str) -> ReceivedMail | None:
    return await FIND.find(db, company_id, id)


async def find_target(db: Connection, company_id: int, id: str) -> MessageTarget | None:
    return await FIND_TARGET.find(db, company_id, id)


async def reserve_slot(
    db: Connection, company_id: int, connection_id: str, gap: float, max_seconds: float
) -> float | None:
    """Reserves the next free slot. Returns the seconds until then; None if that is more than `max_seconds`."""
    seconds: float | None = await RESERVE_SLOT.value(db, company_id, connection_id, gap, max_seconds)
    return seconds


async def find_wait(db: Connection, company_id: int, connection_id: str) -> float | None:
    seconds: float | None = await FIND_WAIT.value(db, company_id, connection_id)
    return seconds


async def defer(
    tx: Tx,
    company_id: int,
    message_id: str,
    connection_id: str,
    outgoing: bytes,
    is_sealed: bool,
    now: datetime,
    due_at: datetime,
) -> None:
    await DEFER.run(tx, company_id, message_id, connection_id, outgoing, is_sealed, now, due_at)


async def list_due(db: Connection, max_per_company: int, limit: int) -> list[DueMessage]:
    """Longest waiting first."""
    return await LIST_DUE.all(db, max_per_company, limit)


async def list_abandoned(db: Connection, seconds: float) -> list[DueMessage]:
    return await LIST_ABANDONED.all(db, seconds)


async def claim_deferred(tx: Tx, company_id: int, message_id: str) -> DeferredMessage | None:
    """None if another worker was faster."""
    return await CLAIM_DEFERRED.find(tx, company_id, message_id)


async def reschedule(tx: Tx, company_id: int, message_id: str, due_at: datetime) -> None:
    await RESCHEDULE.run(tx, company_id, message_id, due_at)


async def delete_deferred(tx: Tx, company_id: int, message_id: str) -> None:
    await DELETE_DEFERRED.run(tx, company_id, message_id)


async def lock_sealed(tx: Tx, company_id: int, after: str, limit: int) -> list[SealedValue]:
    return await LOCK_SEALED.all(tx, company_id, after, limit)


async def replace_sealed(tx: Tx, company_id: int, sealed: Mapping[str, bytes]) -> None:
    await REPLACE_SEALED.run(tx, company_id, list(sealed), list(sealed.values()))
