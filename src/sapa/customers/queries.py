"""How customers are stored."""

from collections.abc import Mapping, Sequence

from sapa.customers.profile import Profile
from sapa.customers.types import Customer
from sapa.db.listing import Listing
from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql
from sapa.http.errors import NotFound

COUNTER = "customers"
COLUMNS = ", ".join(Customer.__struct_fields__)

GET = sql(f"SELECT {COLUMNS} FROM customers WHERE company_id = $1 AND id = $2", row=Customer)

LOCK = sql(f"SELECT {COLUMNS} FROM customers WHERE company_id = $1 AND id = $2 FOR UPDATE", row=Customer)

LOCK_BY_EXTERNAL_ID = sql(
    f"SELECT {COLUMNS} FROM customers WHERE company_id = $1 AND external_id = $2 FOR UPDATE", row=Customer
)

# Shared locks: whoever writes a customer's name elsewhere keeps it from changing meanwhile.
SHARE = sql(f"SELECT {COLUMNS} FROM customers WHERE company_id = $1 AND id = $2 FOR SHARE", row=Customer)

SHARE_BY_IDENTITY = sql(
    f"""
    SELECT {COLUMNS}
      FROM customers
     WHERE company_id = $1 AND (email_key = $2 OR phone_number = $3)
     ORDER BY id
       FOR SHARE""",
    row=Customer,
)

# The number that is named first comes first; an e-mail address comes last.
SHARE_BY_SPELLING = sql(
    f"""
    SELECT {COLUMNS}
      FROM customers
     WHERE company_id = $1 AND (phone_number = ANY($2::text[]) OR email_key = $3)
     ORDER BY array_position($2::text[], phone_number) NULLS LAST, id
     LIMIT 1
       FOR SHARE""",
    row=Customer,
)

INSERT = sql(
    f"""
    WITH counted AS (
        INSERT INTO counter_deltas (company_id, counter, cell, delta) VALUES ($1, 'customers', '', 1)
    )
    INSERT INTO customers (company_id, id, external_id, email, phone_number, first_name, last_name, image_url, tags,
                           addresses, additional_data, subscription_status, email_key, search_text)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
    RETURNING {COLUMNS}""",
    row=Customer,
)

# The row's lock may have been waited for, so the time is that of the change and never falls behind an earlier one.
UPDATE = sql(
    f"""
    UPDATE customers
       SET external_id = $3, email = $4, phone_number = $5, first_name = $6, last_name = $7, image_url = $8, tags = $9,
           addresses = $10, additional_data = $11, subscription_status = $12, email_key = $13, search_text = $14,
           updated_at = GREATEST(clock_timestamp(), updated_at)
     WHERE company_id = $1 AND id = $2
    RETURNING {COLUMNS}""",
    row=Customer,
)

DELETE = sql(
    f"""
    WITH gone AS (
        DELETE FROM customers WHERE company_id = $1 AND id = $2 RETURNING {COLUMNS}
    ), counted AS (
        INSERT INTO counter_deltas (company_id, counter, cell, delta) SELECT $1, 'customers', '', -1 FROM gone
    )
    SELECT {COLUMNS} FROM gone""",
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
    return _found(await GET.find(db, company_id, id))


async def find_customer(db: Connection, company_id: int, id: str) -> Customer | None:
    return await GET.find(db, company_id, id)


async def find_shared(tx: Tx, company_id: int, id: str) -> Customer | None:
    return await SHARE.find(tx, company_id, id)


async def list_shared_by_identity(tx: Tx, company_id: int, profile: Profile) -> list[Customer]:
    """The customers that have the profile's e-mail address or its phone number: at most two."""
    return await SHARE_BY_IDENTITY.all(tx, company_id, profile.email_key, profile.phone_number)


async def find_shared_by_spelling(
    tx: Tx, company_id: int, phone_numbers: Sequence[str], email: str | None
) -> Customer | None:
    return await SHARE_BY_SPELLING.find(tx, company_id, list(phone_numbers), email and email.casefold())


async def lock_customer(tx: Tx, company_id: int, id: str) -> Customer:
    return _found(await LOCK.find(tx, company_id, id))


async def find_locked_by_external_id(tx: Tx, company_id: int, external_id: str) -> Customer | None:
    return await LOCK_BY_EXTERNAL_ID.find(tx, company_id, external_id)


async def insert_customer(tx: Tx, company_id: int, id: str, profile: Profile) -> Customer:
    return _found(await INSERT.find(tx, company_id, id, *_columns(profile)))


async def update_customer(tx: Tx, company_id: int, id: str, profile: Profile) -> Customer:
    return _found(await UPDATE.find(tx, company_id, id, *_columns(profile)))


async def delete_customer(tx: Tx, company_id: int, id: str) -> Customer:
    return _found(await DELETE.find(tx, company_id, id))


async def list_customers(
    db: Connection, company_id: int, filters: Mapping[str, object], sort: str, limit: int, offset: int
) -> tuple[list[Customer], int]:
    """One page, and how many customers there are in all."""
    return await LISTING.page(db, company_id, filters, sort, limit, offset)


def _found(customer: Customer | None) -> Customer:
    if customer is None:
        raise NotFound
    return customer


def _columns(profile: Profile) -> list[object]:
    return [*(getattr(profile, name) for name in profile.__struct_fields__), profile.email_key, profile.search_text]
