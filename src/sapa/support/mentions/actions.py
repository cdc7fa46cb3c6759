"""Keeps whom notes mention until they open the ticket."""

import re
from collections.abc import Iterable

from sapa.db.pool import Connection, Tx
from sapa.support.mentions import queries
from sapa.values.company import Company


def build_pattern(names: Iterable[str]) -> re.Pattern[str] | None:
    """Finds `@name`; of names that begin alike, the longest. None without names."""
    longest_first = sorted(map(re.escape, names), key=len, reverse=True)
    return re.compile(rf"(?<!\w)@(?:{'|'.join(longest_first)})(?!\w)", re.IGNORECASE) if longest_first else None


async def record(tx: Tx, company: Company, ticket_id: str, author_id: int, text: str) -> None:
    """The author is not told of their own note."""
    if "@" not in text:
        return
    people = await queries.list_candidates(tx, company.id, text)
    pattern = build_pattern(person.name for person in people)
    found = {mention.lower() for mention in pattern.findall(text)} if pattern else set()
    ids = [person.id for person in people if f"@{person.name}".lower() in found and person.id != author_id]
    await queries.insert(tx, company.id, ticket_id, ids)


async def count(db: Connection, company_id: int, agent_id: int) -> int:
    """The tickets that mention the agent and that they have not opened since."""
    return await queries.count(db, company_id, agent_id)


async def mark_read(tx: Tx, company_id: int, agent_id: int, ticket_id: str) -> None:
    await queries.delete(tx, company_id, agent_id, ticket_id)


async def move(tx: Tx, company: Company, ticket_id: str, to_ticket_id: str) -> None:
    """With the notes of a merged ticket."""
    await queries.move(tx, company.id, ticket_id, to_ticket_id)
