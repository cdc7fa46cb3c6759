"""Queries for the search over tickets.

PostgreSQL cannot know how common a word is. So each search by words has two statements: one for rare words, which
gathers all that match by the trigram index, and one for common words, which walks back from the newest.
"""

from sapa.db.pool import Connection
from sapa.db.sql import sql
from sapa.support.search.types import MessageMatch

MOST_FOUND = 50
NEWEST_TICKETS = 1_000
MOST_GATHERED = 5_000
MOST_PEOPLE = 1_000

# The same expression as the index has.
_TEXT = "lower(left(body, 2000))"

WALK_MESSAGES = sql(
    f"""
    SELECT t.id AS ticket_id, m.text
      FROM (SELECT id
              FROM tickets
             WHERE company_id = $1
             ORDER BY last_message_at DESC, id DESC
             LIMIT {NEWEST_TICKETS:d}) AS t
     CROSS JOIN LATERAL (
           SELECT left(body, 200) AS text
             FROM messages
            WHERE company_id = $1 AND ticket_id = t.id AND {_TEXT} LIKE $2
            ORDER BY id DESC
            LIMIT 1) AS m
     LIMIT {MOST_FOUND:d}""",
    row=MessageMatch,
)

GATHER_MESSAGES = sql(
    f"""
    SELECT DISTINCT ON (ticket_id) ticket_id, left(body, 200) AS text
      FROM (SELECT ticket_id, id, body
              FROM (SELECT ticket_id, id, body
                      FROM messages
                     WHERE company_id = $1 AND {_TEXT} LIKE $2 AND ticket_id IS NOT NULL
                     LIMIT {MOST_GATHERED:d}) AS gathered
             ORDER BY id DESC
             LIMIT {4 * MOST_FOUND:d}) AS matching
     ORDER BY ticket_id, id DESC""",
    row=MessageMatch,
)

LIST_CONTACTS = sql(f"SELECT id FROM contacts WHERE company_id = $1 AND lower(name) LIKE $2 LIMIT {MOST_PEOPLE:d}")

LIST_CUSTOMERS = sql(
    f"SELECT id FROM customers WHERE company_id = $1 AND search_text LIKE ANY($2::text[]) LIMIT {MOST_PEOPLE:d}"
)

LIST_IDENTITIES = sql(
    f"SELECT contact_id FROM contact_identities WHERE company_id = $1 AND lower(key) LIKE $2 LIMIT {MOST_PEOPLE:d}"
)

LIST_OF_PEOPLE = sql(
    f"""
    SELECT id
      FROM (SELECT id, last_message_at FROM tickets WHERE company_id = $1 AND contact_id = ANY($2::text[])
             UNION
            SELECT id, last_message_at FROM tickets WHERE company_id = $1 AND customer_id = ANY($3::text[])) AS found
     ORDER BY last_message_at DESC, id DESC
     LIMIT {MOST_FOUND:d}"""
)

# For names that so many have that their newest tickets would be missed.
WALK_TICKETS = sql(
    f"""
    SELECT t.id
      FROM (SELECT id, contact_id, customer_id, client_number
              FROM tickets
             WHERE company_id = $1
             ORDER BY last_message_at DESC, id DESC
             LIMIT {NEWEST_TICKETS:d}) AS t
      LEFT JOIN contacts c ON c.company_id = $1 AND c.id = t.contact_id
      LEFT JOIN customers k ON k.company_id = $1 AND k.id = t.customer_id
     WHERE lower(c.name) LIKE $2 OR k.search_text LIKE $2 OR lower(t.client_number) LIKE $2
     LIMIT {MOST_FOUND:d}"""
)

LIST_OF_CUSTOMER = sql(
    "SELECT id FROM tickets WHERE company_id = $1 AND customer_id = $2 ORDER BY created_at DESC LIMIT 50"
)


async def list_message_matches(db: Connection, company_id: int, pattern: str) -> list[MessageMatch]:
    """For each ticket the newest message that has the words."""
    newest = await WALK_MESSAGES.all(db, company_id, pattern)
    return newest if len(newest) >= MOST_FOUND else [*await GATHER_MESSAGES.all(db, company_id, pattern), *newest]


async def list_ids_of_people(db: Connection, company_id: int, name: str, number: str | None) -> list[str]:
    """The newest tickets of contacts and customers with this in their name, address or number. Both are patterns."""
    contacts = await _list_ids(db, LIST_CONTACTS.text, company_id, name)
    customers = await _list_ids(db, LIST_CUSTOMERS.text, company_id, [name, number or name])
    identities = await _list_ids(db, LIST_IDENTITIES.text, company_id, number or name)
    found = await _list_ids(db, LIST_OF_PEOPLE.text, company_id, [*contacts, *identities], customers)
    if max(len(contacts), len(customers), len(identities)) < MOST_PEOPLE:
        return found
    return [*await _list_ids(db, WALK_TICKETS.text, company_id, name), *found]


async def list_ids_of_customer(db: Connection, company_id: int, customer_id: str) -> list[str]:
    return await _list_ids(db, LIST_OF_CUSTOMER.text, company_id, customer_id)


async def _list_ids(db: Connection, statement: str, *parameters: object) -> list[str]:
    return [row[0] for row in await db.fetch(statement, *parameters)]
