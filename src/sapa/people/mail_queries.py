"""Whom a letter about a forgotten password goes to."""

from msgspec import Struct

from sapa.db.sql import sql
from sapa.people.queries import DIRECTORY


class Recipient(Struct, frozen=True):
    """Somebody who belongs to a company."""

    user_id: int
    email: str
    name: str
    language: str
    organisation_id: int
    organisation: str


# Of several companies the oldest, before those that they have only been invited to: a password is the same in all.
FIND_RECIPIENT = sql(
    """
    SELECT u.id AS user_id, u.email, u.name, u.language, o.id AS organisation_id, o.name AS organisation
      FROM users u
      JOIN memberships m ON m.user_id = u.id
      JOIN organisations o ON o.id = m.organisation_id
     WHERE u.email_key = $1
     ORDER BY m.joined_at IS NULL, m.created_at
     LIMIT 1""",
    row=Recipient,
    crosses=DIRECTORY,
)
