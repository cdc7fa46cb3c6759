"""How customers are stored."""

from collections.abc import AsyncIterator, Mapping, Sequence

from msgspec import Struct

from sapa.customers.profile import Profile
from sapa.customers.types import Customer, CustomerRef
from sapa.db.listing import Listing
from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql
from sapa.db.write_columns import WriteColumns
from sapa.http.errors import NotFound
from sapa.values.json import encode

COUNTER = "customers"
COLUMNS = ", ".join(Customer.__struct_fields__)
WRITTEN = WriteColumns(Profile, "email_key", "search_text")

GET = sql(f"SELECT {COLUMNS} FROM customers WHERE company_id = $1 AND id = $2", row=Customer)

LIST_REFS = sql(
    f"SELECT {', '.join(CustomerRef.__struct_fields__)} FROM customers WHERE company_id = $1 AND id = ANY($2::text[])",
    row=CustomerRef,
)

LOCK = sql(f"SELECT {COLUMNS} FROM customers WHERE company_id = $1 AND id = $2 FOR NO KEY UPDATE", row=Customer)

LOCK_BY_EXTERNAL_ID = sql(
    f"SELECT {COLUMNS} FROM customers WHERE company_id = $1 AND external_id = $2 FOR NO KEY UPDATE", row=Customer
)

# A shared lock keeps the name from changing while it is copied to another table.
SHARE = sql(
    f"""
    SELECT {", ".join(CustomerRef.__struct_fields__)}
      FROM customers
     WHERE company_id = $1 AND id = $2
       FOR SHARE""",
    row=CustomerRef,
)

SHARE_BY_IDENTITY = sql(
    f"""
    SELECT {COLUMNS}
      FROM customers
     WHERE company_id = $1 AND (email_key = $2 OR phone_number = $3)
     ORDER BY id
       FOR SHARE""",
    row=Customer,
)

# Phone numbers rank in the order they are passed, before the e-mail address.
SHARE_BY_CONTACT = sql(
    f"""
    SELECT {COLUMNS}
      FROM customers
     WHERE company_id = $1 AND (phone_number = ANY($2::text[]) OR email_key = $3)
     ORDER BY array_position($2::text[], phone_number) NULLS LAST, id
     LIMIT 1
       FOR SHARE""",
    row=Customer,
)

# A conflict with another customer inserts nothing, so that the transaction can still look for that customer.
INSERT = sql(
    f"""
    WITH inserted AS (
        INSERT INTO customers (company_id, id, {WRITTEN.listed})
        VALUES ($1, $2, {WRITTEN.numbered(3)})
            ON CONFLICT DO NOTHING
        RETURNING company_id, {COLUMNS}
    ), counted AS (
        INSERT INTO counter_deltas (company_id, counter, cell, delta) SELECT $1, 'customers', '', 1 FROM inserted
    )
    SELECT {COLUMNS} FROM inserted WHERE company_id = $1""",
    row=Customer,
)


class Holder(Struct, frozen=True):
    """A customer with the same e-mail address, phone number or external id."""

    id: str
    email_key: str | None
    phone_number: str | None
    external_id: str | None


LIST_HOLDERS = sql(
    """
    SELECT id, email_key, phone_number, external_id
      FROM customers
     WHERE company_id = $1 AND id <> $2 AND (email_key = $3 OR phone_number = $4 OR external_id = $5)
     ORDER BY id""",
    row=Holder,
)

# statement_timestamp(), because the transaction may have waited for the row's lock; updated_at never goes back.
UPDATE = sql(
    f"""
    UPDATE customers
       SET {WRITTEN.assigned(3)},
           updated_at = GREATEST(statement_timestamp(), updated_at)
     WHERE company_id = $1 AND id = $2
    RETURNING {COLUMNS}""",
    row=Customer,
)

DELETE = sql(
    f"""
    WITH deleted AS (
        DELETE FROM customers WHERE company_id = $1 AND id = $2 RETURNING {COLUMNS}
    ), counted AS (
        INSERT INTO counter_deltas (company_id, counter, cell, delta) SELECT $1, 'customers', '', -1 FROM deleted
    )
    SELECT {COLUMNS} FROM deleted""",
    row=Customer,
)

LIST_ALL = sql(f"SELECT {COLUMNS} FROM customers WHERE company_id = $1 ORDER BY created_at, id", row=Customer)

# LIMIT keeps the planner from joining: each customer is looked up by the index of its own key. During a large import
# the statistics lag behind: a table that was vacuumed while a dry run filled and emptied it counts as empty, and any
# index that starts with company_id then seems as good as the right one. Only the right one yields the requested order,
# and sorting is disabled. BETWEEN, because for `=` any order would do.
LOCK_MANY = sql(
    f"""
    SELECT {COLUMNS}
      FROM unnest($2::text[]) AS requested (own)
     CROSS JOIN LATERAL (
           SELECT {COLUMNS} FROM customers
            WHERE company_id = $1 AND external_id BETWEEN requested.own AND requested.own
            ORDER BY external_id LIMIT 1 FOR NO KEY UPDATE) AS c
    UNION ALL
    SELECT {COLUMNS}
      FROM unnest($3::text[]) AS requested (ours)
     CROSS JOIN LATERAL (
           SELECT {COLUMNS} FROM customers
            WHERE company_id = $1 AND id BETWEEN requested.ours AND requested.ours
            ORDER BY id LIMIT 1 FOR NO KEY UPDATE) AS c""",
    row=Customer,
)


def _build_by_contact(columns: str, lock: str) -> str:
    """As above: each customer by the index of its own key."""
    return f"""
    SELECT {columns}
      FROM unnest($2::text[]) AS requested (address)
     CROSS JOIN LATERAL (
           SELECT {columns} FROM customers
            WHERE company_id = $1 AND email_key BETWEEN requested.address AND requested.address
            ORDER BY email_key LIMIT 1 {lock}) AS c
    UNION ALL
    SELECT {columns}
      FROM unnest($3::text[]) AS requested (number)
     CROSS JOIN LATERAL (
           SELECT {columns} FROM customers
            WHERE company_id = $1 AND phone_number BETWEEN requested.number AND requested.number
            ORDER BY phone_number LIMIT 1 {lock}) AS c"""


LOCK_MANY_BY_CONTACT = sql(_build_by_contact(COLUMNS, "FOR NO KEY UPDATE"), row=Customer)

# Their names cannot change while they are copied to orders.
SHARE_MANY_BY_CONTACT = sql(_build_by_contact(", ".join(CustomerRef.__struct_fields__), "FOR SHARE"), row=CustomerRef)

SHARE_MANY = sql(
    f"SELECT {COLUMNS} FROM customers WHERE company_id = $1 AND id = ANY($2) ORDER BY id FOR SHARE", row=Customer
)

NOW = sql("SELECT now()")

_ROWS = f"json_to_recordset($2::json) AS input (id text, {WRITTEN.typed})"

# Rows that conflict with another customer are skipped; the unique indexes decide.
INSERT_MANY = sql(
    f"""
    WITH inserted AS (
        INSERT INTO customers (company_id, id, {WRITTEN.listed}, created_at, updated_at)
        SELECT $1, id, {WRITTEN.listed}, $3::text::timestamptz, $3::text::timestamptz
          FROM {_ROWS}
            ON CONFLICT DO NOTHING
        RETURNING company_id, id
    ), counted AS (
        INSERT INTO counter_deltas (company_id, counter, cell, delta)
        SELECT $1, 'customers', '', count(*) FROM inserted HAVING count(*) > 0
    )
    SELECT id FROM inserted WHERE company_id = $1"""
)

# All of them exist and are locked by LOCK_MANY, so nothing is ever inserted: this form finds the rows by primary key
# whatever the statistics say.
UPDATE_MANY = sql(
    f"""
    INSERT INTO customers AS c (company_id, id, {WRITTEN.listed}, updated_at)
    SELECT $1, id, {WRITTEN.listed}, statement_timestamp()
      FROM {_ROWS}
        ON CONFLICT (company_id, id) DO UPDATE
       SET {WRITTEN.excluded},
           updated_at = GREATEST(excluded.updated_at, c.updated_at)
    RETURNING {COLUMNS}""",
    row=Customer,
)

LISTING = Listing(
    "customers",
    row=Customer,
    counter=COUNTER,
    texts=("search",),
    filters={
        "search": "search_text LIKE ANY({}::text[])",
        "tags": "tags @> {}",
        "created_from": "created_at >= {}",
        "created_to": "created_at <= {}",
        "updated_from": "updated_at >= {}",
        "updated_to": "updated_at <= {}",
    },
    sorts={
        "updatedAt": "updated_at",
        "createdAt": "created_at",
        "firstName": "lower(first_name)",
        "lastName": "lower(last_name)",
        "email": "email_key",
    },
)


async def get_customer(db: Connection, company_id: int, id: str) -> Customer:
    return _or_not_found(await GET.find(db, company_id, id))


async def find_customer(db: Connection, company_id: int, id: str) -> Customer | None:
    return await GET.find(db, company_id, id)


async def find_share_locked(tx: Tx, company_id: int, id: str) -> CustomerRef | None:
    return await SHARE.find(tx, company_id, id)


async def list_share_locked_by_identity(tx: Tx, company_id: int, profile: Profile) -> list[Customer]:
    """The customers with the profile's e-mail address or phone number: at most two."""
    return await SHARE_BY_IDENTITY.all(tx, company_id, profile.email_key, profile.phone_number)


async def find_share_locked_by_contact(
    tx: Tx, company_id: int, phone_numbers: Sequence[str], email: str | None
) -> Customer | None:
    return await SHARE_BY_CONTACT.find(tx, company_id, list(phone_numbers), email and email.casefold())


async def lock_customer(tx: Tx, company_id: int, id: str) -> Customer:
    return _or_not_found(await LOCK.find(tx, company_id, id))


async def find_locked(tx: Tx, company_id: int, id: str) -> Customer | None:
    return await LOCK.find(tx, company_id, id)


async def find_locked_by_external_id(tx: Tx, company_id: int, external_id: str) -> Customer | None:
    return await LOCK_BY_EXTERNAL_ID.find(tx, company_id, external_id)


async def insert_customer(tx: Tx, company_id: int, id: str, profile: Profile) -> Customer | None:
    """None if another customer has the same e-mail address, phone number or external id."""
    return await INSERT.find(tx, company_id, id, *WRITTEN.values(profile))


async def list_holders(tx: Tx, company_id: int, id: str, profile: Profile) -> list[Holder]:
    """The other customers who have the profile's e-mail address, phone number or external id: at most three."""
    return await LIST_HOLDERS.all(tx, company_id, id, profile.email_key, profile.phone_number, profile.external_id)


async def update_customer(tx: Tx, company_id: int, id: str, profile: Profile) -> Customer:
    return _or_not_found(await UPDATE.find(tx, company_id, id, *WRITTEN.values(profile)))


async def delete_customer(tx: Tx, company_id: int, id: str) -> Customer:
    return _or_not_found(await DELETE.find(tx, company_id, id))


async def list_customers(
    db: Connection, company_id: int, filters: Mapping[str, object], sort: str, limit: int, offset: int
) -> tuple[list[Customer], int]:
    """One page, and the total number of matches."""
    return await LISTING.page(db, company_id, filters, sort, limit, offset)


async def list_refs(db: Connection, company_id: int, ids: Sequence[str]) -> list[CustomerRef]:
    return await LIST_REFS.all(db, company_id, list(ids))


async def list_all_customers(db: Connection, company_id: int) -> list[Customer]:
    return await LIST_ALL.all(db, company_id)


def stream_all_customers(tx: Tx, company_id: int) -> AsyncIterator[list[Customer]]:
    return LIST_ALL.stream(tx, company_id)


async def lock_customers(tx: Tx, company_id: int, external_ids: Sequence[str], ids: Sequence[str]) -> list[Customer]:
    """The customers found by external id or by id."""
    return await LOCK_MANY.all(tx, company_id, external_ids, ids)


async def lock_customers_by_contact(
    tx: Tx, company_id: int, emails: Sequence[str], phones: Sequence[str]
) -> list[Customer]:
    """The customers with these e-mail addresses, as they are compared, and phone numbers; some may occur twice."""
    return await LOCK_MANY_BY_CONTACT.all(tx, company_id, sorted(emails), sorted(phones))


async def list_share_locked_by_contact(
    tx: Tx, company_id: int, emails: Sequence[str], phones: Sequence[str]
) -> list[CustomerRef]:
    """Like `lock_customers_by_contact`, with shared locks."""
    return await SHARE_MANY_BY_CONTACT.all(tx, company_id, sorted(emails), sorted(phones))


async def list_share_locked(tx: Tx, company_id: int, ids: Sequence[str]) -> list[Customer]:
    return await SHARE_MANY.all(tx, company_id, ids)


async def get_now(tx: Tx) -> str:
    """When the transaction began."""
    now: str = await NOW.value(tx)
    return now


async def insert_customers(tx: Tx, company_id: int, profiles: Mapping[str, Profile], now: str) -> set[str]:
    """Inserts the customers, by their ids, that conflict with no other, and returns the ids of those."""
    document = _build_documents(list(profiles), list(profiles.values()))
    return {row[0] for row in await tx.fetch(INSERT_MANY.text, company_id, document, now)}


async def update_customers(tx: Tx, company_id: int, ids: Sequence[str], profiles: Sequence[Profile]) -> list[Customer]:
    """The customers must be locked."""
    return await UPDATE_MANY.all(tx, company_id, _build_documents(ids, profiles))


def _or_not_found(customer: Customer | None) -> Customer:
    if customer is None:
        raise NotFound
    return customer


def _build_documents(ids: Sequence[str], profiles: Sequence[Profile]) -> bytes:
    return encode([{"id": id, **WRITTEN.document(profile)} for id, profile in zip(ids, profiles, strict=True)])
