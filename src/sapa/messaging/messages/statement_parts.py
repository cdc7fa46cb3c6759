"""Queries that statements of other rooms contain; see `compose` in `src/sapa/db/sql.py`."""

from sapa.db.write_columns import WriteColumns
from sapa.messaging.messages.types import NewMessage

NEW_MESSAGE = WriteColumns(NewMessage)
PREFIX = "message_"

MESSAGE = f"""message AS (
    INSERT INTO messages (company_id, {NEW_MESSAGE.listed})
    SELECT $1, {NEW_MESSAGE.named(PREFIX)}
      FROM recipient
    RETURNING id)"""
"""A new message to the contact of the part `recipient`."""

# The ids are named twice: by a join alone, all messages of the company would be read while the planner knows nothing of
# a young table. `provider_id IS NULL` is not asked: an index would offer every message without one, as failed ones are.
CHANGED = """changed AS (
    UPDATE messages AS m
       SET status = 'sent', accepted_at = a.at, sent_at = a.at, provider_id = a.provider_id, error = NULL,
           sequence = a.sequence + 1
      FROM accepted AS a
     WHERE m.company_id = $1 AND m.id = ANY(:id::text[]) AND m.id = a.id AND m.status = 'pending'
       AND m.sequence = a.sequence AND coalesce(m.provider_id, '') = ''
    RETURNING m.id),
noted AS (
    INSERT INTO message_events (company_id, message_id, kind, reported_at, at, is_implied, sequence)
    SELECT $1, a.id, 'sent', a.at, a.at, false, a.sequence + 1
      FROM accepted AS a
      JOIN changed ON changed.id = a.id)"""
"""Messages that channels accepted: those of the part `accepted` (id, sequence, provider_id, at), whose ids are the
parameter `id`, that are still as they were recorded, with their events."""
