"""Queries for contacts and their conversations."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql
from sapa.messaging.contacts.types import Thread, Window


class StoredContact(Struct, frozen=True):
    id: str
    customer_id: str | None


class IdentityVariants(Struct, frozen=True):
    kind: str
    spellings: list[str]


# Locked in one order, so that two messages of one person wait for each other without a deadlock.
LOCK_BY_IDENTITIES = sql(
    """
    SELECT c.id, c.customer_id
      FROM contact_identities i
      JOIN contacts c ON c.company_id = $1 AND c.id = i.contact_id
     WHERE i.company_id = $1
       AND (i.kind, i.key) IN (SELECT k, v FROM unnest($2::text[], $3::text[]) AS input (k, v))
     ORDER BY c.id
       FOR UPDATE""",
    row=StoredContact,
)

INSERT = sql("INSERT INTO contacts (company_id, id, name) VALUES ($1, $2, $3)")

INSERT_IDENTITIES = sql(
    """
    INSERT INTO contact_identities (company_id, contact_id, kind, key, spellings)
    SELECT $1, $2, input.kind, input.key, ARRAY[input.value]
      FROM unnest($3::text[], $4::text[], $5::text[]) AS input (kind, key, value)"""
)

ADD_IDENTITIES = sql(
    """
    INSERT INTO contact_identities AS i (company_id, contact_id, kind, key, spellings)
    SELECT $1, $2, input.kind, input.key, ARRAY[input.value]
      FROM unnest($3::text[], $4::text[], $5::text[]) AS input (kind, key, value)
        ON CONFLICT (company_id, kind, key) DO UPDATE
       SET spellings = i.spellings || excluded.spellings
     WHERE NOT i.spellings @> excluded.spellings"""
)

REASSIGN_IDENTITIES = sql(
    "UPDATE contact_identities SET contact_id = $2 WHERE company_id = $1 AND contact_id = ANY($3::text[])"
)

REASSIGN_THREADS = sql(
    """
    INSERT INTO message_threads AS t
           (company_id, connection_id, contact_id, last_inbound_at, sent_since, last_message_id, last_inbound_id)
    SELECT $1, connection_id, $2, max(last_inbound_at), sum(sent_since)::int, max(last_message_id),
           (array_agg(last_inbound_id ORDER BY last_inbound_at DESC NULLS LAST))[1]
      FROM message_threads
     WHERE company_id = $1 AND contact_id = ANY($3::text[])
     GROUP BY connection_id
        ON CONFLICT (company_id, connection_id, contact_id) DO UPDATE
       SET last_inbound_at = GREATEST(t.last_inbound_at, excluded.last_inbound_at),
           last_inbound_id = CASE WHEN t.last_inbound_at >= excluded.last_inbound_at THEN t.last_inbound_id
                                  ELSE COALESCE(excluded.last_inbound_id, t.last_inbound_id) END"""
)

LIST_IDENTITIES = sql(
    "SELECT kind, spellings FROM contact_identities WHERE company_id = $1 AND contact_id = $2 ORDER BY kind, key",
    row=IdentityVariants,
)

LIST_CUSTOMER_IDENTITIES = sql(
    """
    SELECT i.kind, i.spellings
      FROM contacts c
      JOIN contact_identities i ON i.company_id = $1 AND i.contact_id = c.id
     WHERE c.company_id = $1 AND c.customer_id = $2
     ORDER BY i.kind, i.key""",
    row=IdentityVariants,
)

SET_CUSTOMER = sql("UPDATE contacts SET customer_id = $3 WHERE company_id = $1 AND id = $2")

SET_NAME = sql("UPDATE contacts SET name = $3 WHERE company_id = $1 AND id = $2 AND name IS DISTINCT FROM $3")

FIND_THREAD = sql(
    """
    SELECT t.contact_id, t.last_inbound_at, t.sent_since AS sent_in_window, t.last_message_id, t.last_inbound_id
      FROM contact_identities i
      JOIN message_threads t ON t.company_id = $1 AND t.connection_id = $2 AND t.contact_id = i.contact_id
     WHERE i.company_id = $1 AND i.kind = $3 AND i.key = $4""",
    row=Thread,
)

RECORD_INBOUND = sql(
    """
    INSERT INTO message_threads AS t
           (company_id, connection_id, contact_id, last_inbound_at, last_message_id, last_inbound_id)
    VALUES ($1, $2, $3, $4, $5, $5)
        ON CONFLICT (company_id, connection_id, contact_id) DO UPDATE
       SET last_inbound_at = GREATEST(t.last_inbound_at, excluded.last_inbound_at), sent_since = 0,
           last_message_id = excluded.last_message_id,
           last_inbound_id = CASE WHEN t.last_inbound_at > excluded.last_inbound_at THEN t.last_inbound_id
                                  ELSE excluded.last_inbound_id END
    RETURNING last_inbound_at""",
    row=datetime,
)

COUNT_OUTBOUND = sql(
    """
    INSERT INTO message_threads AS t (company_id, connection_id, contact_id, sent_since, last_message_id)
    VALUES ($1, $2, $3, 1, $4)
        ON CONFLICT (company_id, connection_id, contact_id) DO UPDATE
       SET sent_since = t.sent_since + 1, last_message_id = excluded.last_message_id
     WHERE $5::int IS NULL OR t.last_inbound_at IS NULL OR t.sent_since < $5"""
)

UNCOUNT_OUTBOUND = sql(
    """
    UPDATE message_threads
       SET sent_since = sent_since - 1
     WHERE company_id = $1 AND connection_id = $2 AND sent_since > 0
       AND contact_id = (SELECT contact_id FROM contact_identities WHERE company_id = $1 AND kind = $3 AND key = $4)"""
)


# A deleted customer is not found.
FIND_CUSTOMER = sql(
    """
    SELECT customers.id
      FROM contacts
      JOIN customers ON customers.company_id = $1 AND customers.id = contacts.customer_id
     WHERE contacts.company_id = $1 AND contacts.id = $2"""
)

FIND_CUSTOMER_OF_IDENTITY = sql(
    """
    SELECT customers.id
      FROM contact_identities i
      JOIN contacts c ON c.company_id = $1 AND c.id = i.contact_id
      JOIN customers ON customers.company_id = $1 AND customers.id = c.customer_id
     WHERE i.company_id = $1 AND i.kind = $2 AND i.key = $3"""
)

FIND_WINDOW = sql(
    """
    SELECT last_inbound_at + make_interval(secs => $4) AS closes_at
      FROM message_threads
     WHERE company_id = $1 AND connection_id = $2 AND contact_id = $3 AND last_inbound_at IS NOT NULL""",
    row=Window,
)


async def lock_by_identities(tx: Tx, company_id: int, kinds: Sequence[str], keys: Sequence[str]) -> list[StoredContact]:
    """The contacts with these identities, without duplicates."""
    found = await LOCK_BY_IDENTITIES.all(tx, company_id, list(kinds), list(keys))
    return list({contact.id: contact for contact in found}.values())


async def insert_contact(tx: Tx, company_id: int, id: str, name: str | None) -> None:
    await INSERT.run(tx, company_id, id, name)


async def insert_identities(
    tx: Tx, company_id: int, id: str, kinds: Sequence[str], keys: Sequence[str], values: Sequence[str]
) -> None:
    """Raises if one of them belongs to another contact by now."""
    await INSERT_IDENTITIES.run(tx, company_id, id, list(kinds), list(keys), list(values))


async def add_identities(
    tx: Tx, company_id: int, id: str, kinds: Sequence[str], keys: Sequence[str], values: Sequence[str]
) -> None:
    """Existing identities keep their contact and get another spelling."""
    await ADD_IDENTITIES.run(tx, company_id, id, list(kinds), list(keys), list(values))


async def reassign(tx: Tx, company_id: int, id: str, others: Sequence[str]) -> None:
    await REASSIGN_IDENTITIES.run(tx, company_id, id, list(others))
    await REASSIGN_THREADS.run(tx, company_id, id, list(others))


async def list_identities(db: Connection, company_id: int, id: str) -> list[IdentityVariants]:
    return await LIST_IDENTITIES.all(db, company_id, id)


async def list_customer_identities(db: Connection, company_id: int, customer_id: str) -> list[IdentityVariants]:
    return await LIST_CUSTOMER_IDENTITIES.all(db, company_id, customer_id)


async def set_customer(tx: Tx, company_id: int, id: str, customer_id: str) -> None:
    await SET_CUSTOMER.run(tx, company_id, id, customer_id)


async def set_name(tx: Tx, company_id: int, id: str, name: str) -> None:
    await SET_NAME.run(tx, company_id, id, name)


async def find_thread(db: Connection, company_id: int, connection_id: str, kind: str, key: str) -> Thread | None:
    return await FIND_THREAD.find(db, company_id, connection_id, kind, key)


async def record_inbound(
    tx: Tx, company_id: int, connection_id: str, contact_id: str, at: datetime, message_id: str
) -> datetime:
    """Returns when the contact last wrote."""
    last = await RECORD_INBOUND.find(tx, company_id, connection_id, contact_id, at, message_id)
    assert last is not None  # noqa: S101 - the row is inserted or updated
    return last


async def count_outbound(
    tx: Tx, company_id: int, connection_id: str, contact_id: str, message_id: str, quota: int | None
) -> bool:
    """False if the quota since the contact's last message is used up."""
    return await COUNT_OUTBOUND.run(tx, company_id, connection_id, contact_id, message_id, quota) == 1


async def uncount_outbound(tx: Tx, company_id: int, connection_id: str, kind: str, key: str) -> None:
    await UNCOUNT_OUTBOUND.run(tx, company_id, connection_id, kind, key)


async def find_customer_id(db: Connection, company_id: int, contact_id: str) -> str | None:
    found: str | None = await FIND_CUSTOMER.value(db, company_id, contact_id)
    return found


async def find_customer_of_identity(db: Connection, company_id: int, kind: str, key: str) -> str | None:
    found: str | None = await FIND_CUSTOMER_OF_IDENTITY.value(db, company_id, kind, key)
    return found


async def find_window(
    db: Connection, company_id: int, connection_id: str, contact_id: str, duration: timedelta
) -> Window | None:
    return await FIND_WINDOW.find(db, company_id, connection_id, contact_id, duration.total_seconds())
