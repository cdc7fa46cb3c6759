"""Searches tickets by people, numbers, ids and words of messages."""

from sapa.db.pool import Connection
from sapa.http.errors import Invalid
from sapa.support import tickets
from sapa.support.search import queries
from sapa.support.search.queries import MAX_FOUND
from sapa.support.search.types import TicketMatch, TicketSearch, TicketSearchMeta
from sapa.support.types import TICKET_ID
from sapa.values.company import Company
from sapa.values.ids import CUSTOMER_ID
from sapa.values.text_folding import fold

SHORTEST = 3
MAX_WORDS = 10


async def search(db: Connection, company: Company, query: str) -> TicketSearch:
    """The tickets with the newest messages come first."""
    text = fold(query)
    if len(text) < SHORTEST or "\0" in text:
        raise Invalid.field("query", f"must have at least {SHORTEST} letters or digits")
    if TICKET_ID.matches(text):
        return await _list_named(db, company, [text])
    if CUSTOMER_ID.matches(text):
        return await _list_named(db, company, await queries.list_ids_of_customer(db, company.id, text))
    words = _split(text)
    has_most = await queries.has_most_tickets(db, company.id)
    people, has_all_people = await queries.list_ids_of_people(db, company.id, words, _parse_digits(query), has_most)
    messages, has_all_messages = await queries.list_message_matches(db, company.id, words, has_most)
    text_by_ticket = {match.ticket_id: match.text for match in messages}
    found = await tickets.list_newest_of(db, company, [*people, *text_by_ticket], MAX_FOUND)
    matches = [TicketMatch(ticket, text_by_ticket.get(ticket.id)) for ticket in found]
    return TicketSearch(matches, TicketSearchMeta(newest_only=not (has_all_people and has_all_messages)))


async def _list_named(db: Connection, company: Company, ids: list[str]) -> TicketSearch:
    found = await tickets.list_newest_of(db, company, ids, MAX_FOUND)
    return TicketSearch([TicketMatch(ticket, None) for ticket in found], TicketSearchMeta())


def _split(text: str) -> list[str]:
    """The words. A text of short ones alone is searched as a whole, because the index finds none of them."""
    words = text.split()[:MAX_WORDS]
    return words if any(map(queries.is_indexed, words)) else [text]


def _parse_digits(query: str) -> str | None:
    """The digits of a part of a phone number without the trunk zero; None for anything else."""
    digits = "".join(filter(str.isdigit, query)).lstrip("0")
    is_number = not any(char.isalpha() or char == "@" for char in query)
    return digits if is_number and len(digits) >= SHORTEST else None
