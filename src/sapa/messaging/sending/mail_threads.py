"""What a mail to somebody who wrote answers, so that their mail program shows it under their own letter."""

import re
from collections.abc import Sequence

from msgspec import Struct

from sapa.db.pool import Connection
from sapa.messaging.channels.interface import Identity
from sapa.messaging.contacts import actions as contacts
from sapa.messaging.sending import queries
from sapa.values.company import Company

LONGEST_SUBJECT = 500

# As mail programs of several languages begin the subject of an answer.
_drop_prefixes = re.compile(r"(?:\s*(?:re|aw|sv|antw|bls|balas)\s*(?:\[\d+\])?\s*:)*\s*", re.IGNORECASE).sub


class Answered(Struct, frozen=True):
    """The letter that a mail answers."""

    message_id: str
    """As the mail programs name it."""
    thread: Sequence[str]
    subject: str | None
    """Of the answer; None when the letter had none."""


async def find_answered(db: Connection, company: Company, connection_id: str, to: Identity) -> Answered | None:
    """What they wrote last; None for somebody who never wrote."""
    thread = await contacts.find_thread(db, company, connection_id, to)
    if thread is None or thread.last_inbound_id is None:
        return None
    letter = await queries.find_letter(db, company.id, thread.last_inbound_id)
    if letter is None or letter.provider_id is None:
        return None
    return Answered(letter.provider_id, letter.thread or (), build_subject(letter.subject))


def build_subject(subject: str | None) -> str | None:
    """Marked as an answer once, however often it went to and fro."""
    words = _drop_prefixes("", subject or "", count=1)
    return f"Re: {words}"[:LONGEST_SUBJECT] if words else None
