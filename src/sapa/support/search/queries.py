"""Queries for the search over tickets.

PostgreSQL cannot know how common a word is. So the messages of the newest tickets are looked through first: a word that
is rare there is gathered by the trigram index, and common words are found by walking back from the newest tickets.
"""

from collections.abc import Sequence
from typing import Any

from sapa.db.counters import get_total
from sapa.db.listing import OWNS_MOST, contains
from sapa.db.pool import Connection
from sapa.db.sql import sql
from sapa.support.search.types import GatheredMessage, MessageMatch

MAX_FOUND = 50
SAMPLED_TICKETS = 100
MAX_RARE, MAX_RARE_BESIDE_OTHERS = 0.002, 0.03
"""The share of the sampled messages that a rare word is in: alone, and beside other words, which leave few of them."""
NEWEST_TICKETS, NEWEST_TICKETS_OF_A_WORD = 1_000, 2_500
"""How far to walk back. Among so many, one word that is not rare is in fifty."""
FEW_TICKETS = 10_000
"""Among so few even common words are gathered in time."""
MAX_GATHERED, MAX_SORTED = 2_500, 200
"""Messages with a rare word: how many are gathered, and of how many of the newest the tickets are found."""
MANY_PEOPLE, MAX_PEOPLE = 500, 2_500
NEWEST_TICKETS_OF_PEOPLE = 10_000
"""Of many people fifty tickets are probably among these. Of the most, others are not looked for."""
SHORTEST_INDEXED = 3

# The same expression as the index has.
_TEXT = "lower(left(body, 2000))"

# For a company that has most of the tickets the condition is a filter, never one of the index: reading the long list of
# its rows there costs more than reading the few matches of others.
_OWN = ("company_id = $1", "(company_id = $1) IS TRUE")

HAS_MOST_TICKETS = sql(OWNS_MOST.format(table="tickets"))

COUNT_WORDS = sql(
    f"""
    WITH newest AS MATERIALIZED (
        SELECT m.text
          FROM (SELECT id
                  FROM tickets
                 WHERE company_id = $1
                 ORDER BY last_message_at DESC, id DESC
                 LIMIT {SAMPLED_TICKETS:d}) AS t
         CROSS JOIN LATERAL (
               SELECT {_TEXT} AS text
                 FROM messages
                WHERE company_id = $1 AND ticket_id = t.id
                ORDER BY id DESC
                LIMIT 20) AS m
    )
    SELECT (SELECT count(*) FROM newest WHERE text LIKE words.pattern)
      FROM unnest($2::text[]) WITH ORDINALITY AS words (pattern, place)
     ORDER BY place"""
)

WALK_MESSAGES = sql(
    f"""
    SELECT t.id AS ticket_id, m.text
      FROM (SELECT id
              FROM tickets
             WHERE company_id = $1
             ORDER BY last_message_at DESC, id DESC
             LIMIT $3) AS t
     CROSS JOIN LATERAL (
           SELECT left(body, 200) AS text
             FROM messages
            WHERE company_id = $1 AND ticket_id = t.id AND {_TEXT} LIKE ALL($2::text[])
            ORDER BY id DESC
            LIMIT 1) AS m
     LIMIT {MAX_FOUND:d}""",
    row=MessageMatch,
)

GATHER_MESSAGES, GATHER_MESSAGES_BY_TEXT = (
    sql(
        f"""
        SELECT DISTINCT ON (ticket_id) ticket_id, left(body, 200) AS text, gathered
          FROM (SELECT ticket_id, id, body, count(*) OVER () AS gathered
                  FROM (SELECT ticket_id, id, body
                          FROM messages
                         WHERE {own} AND {_TEXT} LIKE $2 AND {_TEXT} LIKE $3 AND ticket_id IS NOT NULL
                           AND {_TEXT} LIKE ALL($4::text[])
                         LIMIT {MAX_GATHERED:d}) AS matching
                 ORDER BY id DESC
                 LIMIT {MAX_SORTED:d}) AS newest
         ORDER BY ticket_id, id DESC""",
        row=GatheredMessage,
    )
    for own in _OWN
)

# In one statement, because a common name has thousands of ids to hand over.
FIND_PEOPLE, FIND_PEOPLE_BY_TEXT = (
    sql(
        f"""
        WITH matching_contacts AS MATERIALIZED (
            SELECT id
              FROM contacts
             WHERE {own} AND lower(name) LIKE $2 AND lower(name) LIKE ALL($3::text[])
             LIMIT {MAX_PEOPLE:d}
        ), matching_customers AS MATERIALIZED (
            SELECT id
              FROM customers
             WHERE {own}
               AND (search_text LIKE $2 AND search_text LIKE ALL($3::text[]) OR search_text LIKE $4)
             LIMIT {MAX_PEOPLE:d}
        ), matching_identities AS MATERIALIZED (
            SELECT contact_id AS id
              FROM contact_identities
             WHERE {own} AND lower(key) LIKE $5
             LIMIT {MAX_PEOPLE:d}
        ), longest AS MATERIALIZED (
            SELECT greatest((SELECT count(*) FROM matching_contacts), (SELECT count(*) FROM matching_customers),
                            (SELECT count(*) FROM matching_identities)) AS people
        ), walked AS MATERIALIZED (
            SELECT id
              FROM (SELECT id, contact_id, customer_id
                      FROM tickets
                     WHERE company_id = $1
                     ORDER BY last_message_at DESC, id DESC
                     LIMIT {NEWEST_TICKETS_OF_PEOPLE:d}) AS newest
             WHERE contact_id IN (SELECT id FROM matching_contacts UNION ALL SELECT id FROM matching_identities)
                OR customer_id IN (SELECT id FROM matching_customers)
             LIMIT {MAX_FOUND:d}
        )
        SELECT CASE
                   WHEN people >= {MAX_PEOPLE:d} THEN NULL
                   WHEN people >= {MANY_PEOPLE:d} AND (SELECT count(*) FROM walked) = {MAX_FOUND:d}
                   THEN ARRAY(SELECT id FROM walked)
                   ELSE ARRAY(
                        SELECT id
                          FROM (SELECT id, last_message_at
                                  FROM tickets
                                 WHERE company_id = $1
                                   AND contact_id = ANY(ARRAY(
                                       SELECT id FROM matching_contacts UNION ALL SELECT id FROM matching_identities))
                                 UNION
                                SELECT id, last_message_at
                                  FROM tickets
                                 WHERE company_id = $1
                                   AND customer_id = ANY(ARRAY(SELECT id FROM matching_customers))) AS found
                         ORDER BY last_message_at DESC, id DESC
                         LIMIT {MAX_FOUND:d})
               END AS ticket_ids
          FROM longest"""
    )
    for own in _OWN
)

# For names and parts of numbers that very many have.
WALK_TICKETS = sql(
    f"""
    SELECT t.id
      FROM (SELECT id, contact_id, customer_id, client_number
              FROM tickets
             WHERE company_id = $1
             ORDER BY last_message_at DESC, id DESC
             LIMIT {NEWEST_TICKETS_OF_PEOPLE:d}) AS t
      LEFT JOIN contacts c ON c.company_id = $1 AND c.id = t.contact_id
      LEFT JOIN customers k ON k.company_id = $1 AND k.id = t.customer_id
     WHERE lower(c.name) LIKE ALL($2::text[]) OR k.search_text LIKE ALL($2::text[])
        OR lower(t.client_number) LIKE ALL($2::text[]) OR k.search_text LIKE $3 OR t.client_number LIKE $3
     LIMIT {MAX_FOUND:d}"""
)

LIST_OF_CUSTOMER = sql(
    "SELECT id FROM tickets WHERE company_id = $1 AND customer_id = $2 ORDER BY created_at DESC LIMIT 50"
)


async def has_most_tickets(db: Connection, company_id: int) -> bool:
    """Whether most tickets are this company's."""
    return bool(await HAS_MOST_TICKETS.value(db, company_id, "tickets"))


async def list_message_matches(
    db: Connection, company_id: int, words: Sequence[str], has_most: bool
) -> tuple[list[MessageMatch], bool]:
    """For each ticket the newest message that has all the words, one of which the index must be able to find; and
    whether the newest fifty are among them."""
    patterns = [contains(word) for word in words]
    total, *counts = await _list_values(db, COUNT_WORDS.text, company_id, ["%", *patterns])
    indexed = [(count, -len(word), word) for count, word in zip(counts, words, strict=True) if is_indexed(word)]
    (count, _, rarest), (_, _, second) = (sorted(indexed) * 2)[:2]
    gathering = GATHER_MESSAGES_BY_TEXT if has_most else GATHER_MESSAGES
    if count <= total * (MAX_RARE if len(indexed) == 1 else MAX_RARE_BESIDE_OTHERS):
        gathered = await gathering.all(db, company_id, contains(rarest), contains(second), patterns)
        if not gathered or gathered[0].gathered < MAX_GATHERED:
            return _read_gathered(gathered)
    tickets = NEWEST_TICKETS_OF_A_WORD if len(words) == 1 else NEWEST_TICKETS
    newest = await WALK_MESSAGES.all(db, company_id, patterns, tickets)
    if len(newest) == MAX_FOUND or await get_total(db, company_id, "tickets") > FEW_TICKETS:
        return newest, len(newest) == MAX_FOUND
    matches, has_all = _read_gathered(await gathering.all(db, company_id, contains(rarest), contains(second), patterns))
    return [*matches, *newest], has_all


def _read_gathered(gathered: Sequence[GatheredMessage]) -> tuple[list[MessageMatch], bool]:
    has_all = len(gathered) >= MAX_FOUND or not gathered or gathered[0].gathered <= MAX_SORTED
    return [MessageMatch(match.ticket_id, match.text) for match in gathered], has_all


def is_indexed(word: str) -> bool:
    """Whether the trigram indexes find it."""
    return len(word) >= SHORTEST_INDEXED


async def list_ids_of_people(
    db: Connection, company_id: int, words: Sequence[str], number: str | None, has_most: bool
) -> tuple[list[str], bool]:
    """The newest tickets of contacts and customers with all the words in their name or address, or with this part of a
    number; and whether the newest fifty are among them."""
    longest, patterns = contains(max(words, key=len)), [contains(word) for word in words]
    digits = contains(number) if number else None
    whole = digits or contains(" ".join(words))
    finding = FIND_PEOPLE_BY_TEXT if has_most else FIND_PEOPLE
    found: list[str] | None = await finding.value(db, company_id, longest, patterns, digits, whole)
    if found is not None:
        return found, True
    newest = await _list_values(db, WALK_TICKETS.text, company_id, patterns, digits)
    has_all = len(newest) == MAX_FOUND or await get_total(db, company_id, "tickets") <= NEWEST_TICKETS_OF_PEOPLE
    return newest, has_all


async def list_ids_of_customer(db: Connection, company_id: int, customer_id: str) -> list[str]:
    return await _list_values(db, LIST_OF_CUSTOMER.text, company_id, customer_id)


async def _list_values(db: Connection, statement: str, *parameters: object) -> list[Any]:
    """The first column."""
    return [row[0] for row in await db.fetch(statement, *parameters)]
