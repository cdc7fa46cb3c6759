"""SQL of consent."""

from collections.abc import Sequence
from datetime import datetime

from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql
from sapa.messaging.channels.interface import Identity
from sapa.messaging.consents.types import (
    CONSENT_ID,
    Consent,
    ConsentSettings,
    ConsentSubject,
    NewConsent,
    RecipientConsent,
    StopOfCustomer,
    UnsubscribeLink,
)
from sapa.values.json import encode

SETTINGS_COLUMNS = ", ".join(ConsentSettings.__struct_fields__)

# What a person says counts in its order in time: a message that arrives late does not undo a later one, unless that is
# in the future because a test environment's clock was moved back. Nobody else lifts a stop that came from the person,
# unless it is allowed for this call. A file that is imported again records nothing new.
RECORD = sql(
    """
    WITH input AS (
        SELECT id, kind, key, app, identity, status, source, proof, actor, obtained_at
          FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[],
                      $10::text[], $11::timestamptz[])
            AS input (id, kind, key, app, identity, status, source, proof, actor, obtained_at)
         WHERE NOT EXISTS (SELECT FROM consents k
                             JOIN consent_records r ON r.company_id = $1 AND r.id = k.record_id
                            WHERE k.company_id = $1 AND k.kind = input.kind AND k.key = input.key
                              AND k.app = input.app AND k.status = input.status AND NOT k.is_by_person
                              AND r.source = input.source AND r.proof::text = input.proof)
            OR actor IS NULL
    ), changed AS (
        INSERT INTO consents AS c (company_id, kind, key, app, status, is_by_person, obtained_at, record_id)
        SELECT $1, kind, key, app, status, actor IS NULL, obtained_at, id
          FROM input
            ON CONFLICT (company_id, kind, key, app) DO UPDATE
           SET status = excluded.status, is_by_person = excluded.is_by_person, obtained_at = excluded.obtained_at,
               record_id = excluded.record_id
         WHERE CASE WHEN excluded.is_by_person
                    THEN NOT c.is_by_person OR (c.status <> excluded.status
                                                AND (c.obtained_at <= excluded.obtained_at OR c.obtained_at > $12))
                    ELSE $13 OR NOT (c.is_by_person AND c.status = 'unsubscribe') END
        RETURNING company_id, kind, key, app, record_id
    ), recorded AS (
        INSERT INTO consent_records (company_id, id, kind, key, app, identity, status, source, is_by_person, proof,
                                     actor, obtained_at, created_at)
        SELECT $1, id, input.kind, input.key, input.app, identity, status, source, actor IS NULL, proof::json,
               actor::json, obtained_at, $12
          FROM input
          JOIN changed ON changed.record_id = input.id
    )
    SELECT kind, key, app FROM changed WHERE company_id = $1""",
    row=ConsentSubject,
)

# The channel may know the recipient by several ids.
FIND_RECIPIENT = sql(
    """
    WITH person AS (
        SELECT i.contact_id, c.customer_id
          FROM contact_identities i
          JOIN contacts c ON c.company_id = $1 AND c.id = i.contact_id
         WHERE i.company_id = $1 AND i.kind = $2 AND i.key = $3
    ), identities AS (
        SELECT $2::text AS kind, $3::text AS key
         UNION
        SELECT i.kind, i.key
          FROM person
          JOIN contact_identities i ON i.company_id = $1 AND i.contact_id = person.contact_id
         WHERE i.kind = ANY($4::text[])
    )
    SELECT ARRAY(SELECT k.status
                   FROM identities
                   JOIN consents k ON k.company_id = $1 AND k.kind = identities.kind AND k.key = identities.key
                  WHERE k.app = ANY($5::text[])) AS identity_statuses,
           ARRAY(SELECT subscription_status::text
                   FROM customers
                  WHERE company_id = $1 AND (phone_number = ANY($6::text[]) OR email_key = $7)
                  UNION ALL
                 SELECT customers.subscription_status::text
                   FROM person
                   JOIN customers ON customers.company_id = $1 AND customers.id = person.customer_id)
               AS subscriptions""",
    row=RecipientConsent,
)

HAS_STOPS = sql(
    "SELECT EXISTS (SELECT FROM consents WHERE company_id = $1 AND status = 'unsubscribe' AND kind <> 'customer')"
)

# By the customers' own numbers and addresses, and by all ids by which channels know them.
LIST_STOPS = sql(
    """
    SELECT input.number, k.kind, k.key, k.app
      FROM unnest($2::int[], $3::text[], $4::text[]) AS input (number, kind, key)
      JOIN consents k ON k.company_id = $1 AND k.kind = input.kind AND k.key = input.key
     WHERE k.status = 'unsubscribe'
     UNION
    SELECT input.number, k.kind, k.key, k.app
      FROM unnest($5::int[], $6::text[]) AS input (number, customer_id)
      JOIN contacts c ON c.company_id = $1 AND c.customer_id = input.customer_id
      JOIN contact_identities i ON i.company_id = $1 AND i.contact_id = c.id
      JOIN consents k ON k.company_id = $1 AND k.kind = i.kind AND k.key = i.key
     WHERE k.status = 'unsubscribe'""",
    row=StopOfCustomer,
)

_SUBJECTS = """
        SELECT 'customer' AS kind, $2::text AS key
         UNION
        SELECT kind, key FROM unnest($3::text[], $4::text[]) AS own (kind, key)
         UNION
        SELECT i.kind, i.key
          FROM contacts c
          JOIN contact_identities i ON i.company_id = $1 AND i.contact_id = c.id
         WHERE c.company_id = $1 AND c.customer_id = $2"""

LIST = sql(
    f"""
    WITH subjects AS ({_SUBJECTS}
    )
    SELECT r.id, r.app, NULLIF(r.kind, 'customer') AS identity_kind, r.identity, r.status, r.source,
           r.is_by_person AS by_person,
           EXISTS (SELECT FROM consents k
                    WHERE k.company_id = $1 AND k.kind = r.kind AND k.key = r.key AND k.app = r.app
                      AND k.record_id = r.id) AS current,
           r.proof, r.actor, r.obtained_at, r.created_at
      FROM subjects
      JOIN consent_records r ON r.company_id = $1 AND r.kind = subjects.kind AND r.key = subjects.key
     ORDER BY r.created_at DESC, r.id DESC
     LIMIT $5 OFFSET $6""",
    row=Consent,
)

COUNT = sql(
    f"""
    WITH subjects AS ({_SUBJECTS}
    )
    SELECT count(*)
      FROM subjects
      JOIN consent_records r ON r.company_id = $1 AND r.kind = subjects.kind AND r.key = subjects.key"""
)

GET_CURRENT = sql(
    """
    SELECT r.id, r.app, NULLIF(r.kind, 'customer') AS identity_kind, r.identity, r.status, r.source,
           r.is_by_person AS by_person, true AS current, r.proof, r.actor, r.obtained_at, r.created_at
      FROM consents k
      JOIN consent_records r ON r.company_id = $1 AND r.id = k.record_id
     WHERE k.company_id = $1 AND k.kind = $2 AND k.key = $3 AND k.app = $4""",
    row=Consent,
)

DELETE_STATE = sql("DELETE FROM consents WHERE company_id = $1 AND kind = 'customer' AND key = $2")

DELETE_RECORDS = sql("DELETE FROM consent_records WHERE company_id = $1 AND kind = 'customer' AND key = $2")

FIND_SETTINGS = sql(f"SELECT {SETTINGS_COLUMNS} FROM consent_settings WHERE company_id = $1", row=ConsentSettings)

# One change at a time, so that two that change different fields both remain.
LOCK_SETTINGS = sql("SELECT pg_advisory_xact_lock(hashtextextended('consent settings of ' || $1::bigint, 0))")

SAVE_SETTINGS = sql(
    f"""
    INSERT INTO consent_settings (company_id, {SETTINGS_COLUMNS}, updated_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7)
        ON CONFLICT (company_id) DO UPDATE
       SET stop_words = excluded.stop_words, start_words = excluded.start_words, stop_reply = excluded.stop_reply,
           start_reply = excluded.start_reply, automatic_marketing = excluded.automatic_marketing,
           updated_at = excluded.updated_at"""
)

FIND_TOKEN = sql("SELECT token FROM unsubscribe_links WHERE company_id = $1 AND kind = $2 AND key = $3")

INSERT_LINK = sql(
    """
    INSERT INTO unsubscribe_links (company_id, kind, key, token, identity, source)
    VALUES ($1, $2, $3, $4, $5, $6)
        ON CONFLICT (company_id, kind, key) DO NOTHING"""
)

FIND_LINK = sql(
    "SELECT kind, identity, source FROM unsubscribe_links WHERE company_id = $1 AND token = $2", row=UnsubscribeLink
)


async def record(
    tx: Tx, company_id: int, new: Sequence[NewConsent], now: datetime, *, lifts_stops: bool
) -> list[ConsentSubject]:
    """The subjects whose consent changed. Each may occur once in `new`."""
    ordered = sorted(new, key=lambda one: (one.kind, one.key, one.app))  # in one order, against deadlocks
    return await RECORD.all(
        tx,
        company_id,
        [CONSENT_ID.new() for _ in ordered],
        [one.kind for one in ordered],
        [one.key for one in ordered],
        [one.app for one in ordered],
        [one.identity for one in ordered],
        [one.status for one in ordered],
        [one.source for one in ordered],
        [encode(one.proof).decode() for one in ordered],
        [None if one.actor is None else encode(one.actor).decode() for one in ordered],
        [one.obtained_at for one in ordered],
        now,
        lifts_stops,
    )


async def get_recipient(
    db: Connection,
    company_id: int,
    subject: tuple[str, str],
    kinds: Sequence[str],
    apps: Sequence[str],
    phones: Sequence[str],
    email_key: str | None,
) -> RecipientConsent:
    found = await FIND_RECIPIENT.find(db, company_id, *subject, list(kinds), list(apps), list(phones), email_key)
    return found or RecipientConsent([], [])


async def has_stops(db: Connection, company_id: int) -> bool:
    """Whether anybody's number, address or id was ever stopped."""
    return bool(await HAS_STOPS.value(db, company_id))


async def list_stops(
    db: Connection, company_id: int, identities: Sequence[tuple[int, str, str]], customers: Sequence[tuple[int, str]]
) -> list[StopOfCustomer]:
    return await LIST_STOPS.all(
        db,
        company_id,
        [number for number, _, _ in identities],
        [kind for _, kind, _ in identities],
        [key for _, _, key in identities],
        [number for number, _ in customers],
        [id for _, id in customers],
    )


async def list_records(
    db: Connection, company_id: int, customer_id: str, own: Sequence[tuple[str, str]], limit: int, offset: int
) -> tuple[list[Consent], int]:
    """One page, newest first, and the total. `own` are kinds and keys of the customer's number and address."""
    subjects = (company_id, customer_id, [kind for kind, _ in own], [key for _, key in own])
    total: int = await COUNT.value(db, *subjects)
    return await LIST.all(db, *subjects, limit, offset), total


async def get_current(db: Connection, company_id: int, new: NewConsent) -> Consent:
    """What is in force for the subject of a decision that was recorded."""
    (current,) = await GET_CURRENT.all(db, company_id, new.kind, new.key, new.app)
    return current


async def delete_of_customer(tx: Tx, company_id: int, customer_id: str) -> None:
    await DELETE_STATE.run(tx, company_id, customer_id)
    await DELETE_RECORDS.run(tx, company_id, customer_id)


async def find_settings(db: Connection, company_id: int) -> ConsentSettings | None:
    return await FIND_SETTINGS.find(db, company_id)


async def find_locked_settings(tx: Tx, company_id: int) -> ConsentSettings | None:
    """Nobody else changes them until the transaction ends."""
    await LOCK_SETTINGS.value(tx, company_id)
    return await FIND_SETTINGS.find(tx, company_id)


async def save_settings(tx: Tx, company_id: int, settings: ConsentSettings, now: datetime) -> None:
    values = [getattr(settings, name) for name in ConsentSettings.__struct_fields__]
    await SAVE_SETTINGS.run(tx, company_id, *values, now)


async def find_token(db: Connection, company_id: int, kind: str, key: str) -> str | None:
    token: str | None = await FIND_TOKEN.value(db, company_id, kind, key)
    return token


async def insert_link(db: Connection, company_id: int, key: str, token: str, identity: Identity, source: str) -> None:
    """Does nothing if the person has a link already."""
    await INSERT_LINK.run(db, company_id, identity.kind, key, token, identity.value, source)


async def find_link(db: Connection, company_id: int, token: str) -> UnsubscribeLink | None:
    return await FIND_LINK.find(db, company_id, token)
