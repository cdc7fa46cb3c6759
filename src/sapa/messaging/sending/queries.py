"""How the letter is found that a mail answers."""

from msgspec import Struct

from sapa.db.pool import Connection
from sapa.db.sql import sql


class Letter(Struct, frozen=True):
    """A mail that came in."""

    provider_id: str | None
    """Its Message-ID."""
    subject: str | None
    thread: list[str] | None


FIND = sql(
    """
    SELECT provider_id, subject, thread
      FROM messages
     WHERE company_id = $1 AND id = $2 AND direction = 'in'""",
    row=Letter,
)


async def find_letter(db: Connection, company_id: int, id: str) -> Letter | None:
    return await FIND.find(db, company_id, id)
