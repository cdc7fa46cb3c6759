"""Queries for the simulators' requests and templates."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import msgspec
from msgspec import Struct

from sapa.db.pool import Connection, Tx
from sapa.db.sql import compose, sql
from sapa.sandbox.statement_parts import HAS_COPIES, SCHEDULED, name_scheduled
from sapa.sandbox.types import PlannedCallback


class RecordedRequest(Struct, frozen=True):
    has_copies: bool
    """Whether an address is subscribed to the callbacks that it causes."""


class OutboxRow(Struct, frozen=True):
    id: int
    source: str
    method: str
    path: str
    headers: msgspec.Raw
    body: str
    status: int
    answer: str
    asked_at: str


class TemplateRow(Struct, frozen=True):
    name: str
    language: str
    content: msgspec.Raw
    status: str
    reason: str | None


class SandboxMedia(Struct, frozen=True):
    """A file that was uploaded to a simulator."""

    id: str
    media_type: str
    content: bytes


class NumberState(Struct, frozen=True):
    """How a simulated number is rated and limited."""

    quality: str
    messaging_limit: int
    """0 for no limit."""
    throughput: str


FIND_NUMBER_STATE = sql(
    """
    SELECT quality, messaging_limit, throughput
      FROM sandbox_channel_states
     WHERE company_id = $1 AND source = $2""",
    row=NumberState,
)

PUT_NUMBER_STATE = sql(
    """
    INSERT INTO sandbox_channel_states (company_id, source, quality, messaging_limit, throughput)
    VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (company_id, source) DO UPDATE
       SET quality = excluded.quality, messaging_limit = excluded.messaging_limit, throughput = excluded.throughput"""
)

_RECORDED = """recorded AS (
    INSERT INTO sandbox_outbox (company_id, source, method, path, headers, body, status, answer, asked_at)
    SELECT $1, :source, :method, :path, :headers::text::json, :body, :status, :answer, clock_timestamp() + clock_offset
      FROM companies WHERE company_id = $1
    RETURNING id)"""

RECORD = compose([_RECORDED], "SELECT false AS has_copies", row=RecordedRequest)

RECORD_WITH_CALLBACKS = compose([SCHEDULED, _RECORDED], f"SELECT {HAS_COPIES}", row=RecordedRequest)

LIST = sql(
    """
    SELECT id, source, method, path, headers, body, status, answer, asked_at
      FROM sandbox_outbox
     WHERE company_id = $1
     ORDER BY id DESC
     LIMIT $2 OFFSET $3""",
    row=OutboxRow,
)

COUNT_ALL = sql("SELECT count(*) FROM sandbox_outbox WHERE company_id = $1")

COUNT = sql(
    """
    INSERT INTO sandbox_counts AS c (company_id, name, count) VALUES ($1, $2, 1)
        ON CONFLICT (company_id, name) DO UPDATE SET count = c.count + 1
    RETURNING count"""
)

LIST_TO_PURGE = sql(
    "SELECT DISTINCT company_id FROM sandbox_outbox WHERE asked_at < now() - make_interval(days => $1)",
    crosses="the worker purges old requests of all test environments",
)

PURGE = sql("DELETE FROM sandbox_outbox WHERE company_id = $1 AND asked_at < now() - make_interval(days => $2)")

PUT_TEMPLATE = sql(
    """
    INSERT INTO sandbox_templates (company_id, source, name, language, content, status, reason)
    VALUES ($1, $2, $3, $4, $5::text::json, $6, $7)
        ON CONFLICT (company_id, source, name, language) DO UPDATE
       SET content = excluded.content, status = excluded.status, reason = excluded.reason"""
)

LIST_TEMPLATES = sql(
    """
    SELECT name, language, content, status, reason
      FROM sandbox_templates
     WHERE company_id = $1 AND source = $2
     ORDER BY name, language""",
    row=TemplateRow,
)

FIND_TEMPLATE = sql(
    """
    SELECT name, language, content, status, reason
      FROM sandbox_templates
     WHERE company_id = $1 AND source = $2 AND name = $3 AND language = $4""",
    row=TemplateRow,
)

COUNT_TEMPLATES = sql("SELECT count(*) FROM sandbox_templates WHERE company_id = $1 AND source = $2")

DROP_TEMPLATE = sql(
    "DELETE FROM sandbox_templates WHERE company_id = $1 AND source = $2 AND name = $3 AND language = $4"
)

INSERT_MEDIA = sql(
    "INSERT INTO sandbox_media (company_id, source, id, media_type, content) VALUES ($1, $2, $3, $4, $5)"
)

FIND_MEDIA = sql(
    "SELECT id, media_type, content FROM sandbox_media WHERE company_id = $1 AND source = $2 AND id = $3",
    row=SandboxMedia,
)

DELETE_MEDIA = sql("DELETE FROM sandbox_media WHERE company_id = $1 AND source = $2 AND id = $3")

PURGE_MEDIA = sql(
    """
    DELETE FROM sandbox_media
     WHERE (company_id, source, id) IN (
           SELECT company_id, source, id FROM sandbox_media
            WHERE created_at < now() - make_interval(days => $1)
            ORDER BY created_at LIMIT $2)""",
    crosses="the worker purges old files of all test environments",
)

# A turn is free while those taken before are not further ahead than the burst. One that is further ahead than any burst
# was taken before the clock was set back.
COUNT_TURN = sql(
    """
    INSERT INTO sandbox_paces AS p (company_id, name, free_at)
    SELECT $1, $2, clock_timestamp() + clock_offset + make_interval(secs => $3) FROM companies WHERE company_id = $1
        ON CONFLICT (company_id, name) DO UPDATE
       SET free_at = CASE WHEN p.free_at > excluded.free_at + make_interval(secs => $4) THEN excluded.free_at
                          ELSE GREATEST(p.free_at + make_interval(secs => $3), excluded.free_at) END
     WHERE p.free_at <= excluded.free_at + make_interval(secs => $4 - 2 * $3)
        OR p.free_at > excluded.free_at + make_interval(secs => $4)
    RETURNING true"""
)

RECORD_PERSON = sql(
    """
    INSERT INTO sandbox_people AS p (company_id, source, person, wrote_at) VALUES ($1, $2, $3, $4)
        ON CONFLICT (company_id, source, person) DO UPDATE SET wrote_at = GREATEST(p.wrote_at, excluded.wrote_at)"""
)

FIND_WROTE_AT = sql(
    "SELECT wrote_at FROM sandbox_people WHERE company_id = $1 AND source = $2 AND person = $3", row=datetime
)

PURGE_PEOPLE = sql(
    "DELETE FROM sandbox_people WHERE wrote_at < now() - make_interval(days => $1)",
    crosses="the worker purges simulated people of all test environments who have not written for long",
)

PURGE_PACES = sql(
    "DELETE FROM sandbox_paces WHERE free_at < now() - interval '1 hour'",
    crosses="the worker purges the paces of all test environments that no longer slow anything down",
)

# A message that was sent by a call has the company's time and the real time.
FIND_MOVED = sql(
    """
    SELECT c.clock_offset - min(m.created_at - m.request_stored_at)
      FROM messages m
      JOIN companies c ON c.company_id = $1
     WHERE m.company_id = $1 AND m.source = $2 AND m.identity = ANY($3::text[]) AND m.direction = 'out'
     GROUP BY c.clock_offset"""
)


async def find_moved(db: Connection, company_id: int, source: str, identities: Sequence[str]) -> timedelta | None:
    """How far the company's clock was moved since the first message to the recipient; None if there is none."""
    moved: timedelta | None = await FIND_MOVED.value(db, company_id, source, list(identities))
    return moved


async def insert_request(
    tx: Tx, company_id: int, request: Mapping[str, object], hook: str = "", planned: Sequence[PlannedCallback] = ()
) -> bool:
    """With the callbacks that it causes. Returns whether an address is subscribed to them."""
    if not planned:
        await RECORD.find(tx, company_id, *RECORD.order(request))
        return False
    values = {**request, **name_scheduled(hook, planned)}
    recorded = await RECORD_WITH_CALLBACKS.find(tx, company_id, *RECORD_WITH_CALLBACKS.order(values))
    return recorded is not None and recorded.has_copies


async def list_requests(db: Connection, company_id: int, limit: int, offset: int) -> list[OutboxRow]:
    return await LIST.all(db, company_id, limit, offset)


async def count_requests(db: Connection, company_id: int) -> int:
    total: int = await COUNT_ALL.value(db, company_id)
    return total


async def count_occurrence(tx: Tx, company_id: int, name: str) -> int:
    """Counts an occurrence and returns the number so far."""
    number: int = await COUNT.value(tx, company_id, name)
    return number


async def list_companies_to_purge(db: Connection, days: int) -> list[int]:
    return [record[0] for record in await db.fetch(LIST_TO_PURGE.text, days)]


async def delete_old_requests(db: Connection, company_id: int, days: int) -> None:
    await PURGE.run(db, company_id, days)


async def put_template(
    tx: Tx,
    company_id: int,
    source: str,
    name: str,
    language: str,
    content: bytes,
    status: str,
    reason: str | None,
) -> None:
    await PUT_TEMPLATE.run(tx, company_id, source, name, language, content.decode(), status, reason)


async def list_templates(db: Connection, company_id: int, source: str) -> list[TemplateRow]:
    return await LIST_TEMPLATES.all(db, company_id, source)


async def find_template(db: Connection, company_id: int, source: str, name: str, language: str) -> TemplateRow | None:
    return await FIND_TEMPLATE.find(db, company_id, source, name, language)


async def count_templates(db: Connection, company_id: int, source: str) -> int:
    count: int = await COUNT_TEMPLATES.value(db, company_id, source)
    return count


async def delete_template(tx: Tx, company_id: int, source: str, name: str, language: str) -> None:
    await DROP_TEMPLATE.run(tx, company_id, source, name, language)


async def insert_media(db: Connection, company_id: int, source: str, id: str, media_type: str, content: bytes) -> None:
    await INSERT_MEDIA.run(db, company_id, source, id, media_type, content)


async def find_media(db: Connection, company_id: int, source: str, id: str) -> SandboxMedia | None:
    return await FIND_MEDIA.find(db, company_id, source, id)


async def delete_media(db: Connection, company_id: int, source: str, id: str) -> None:
    await DELETE_MEDIA.run(db, company_id, source, id)


async def purge_media(db: Connection, days: int, limit: int) -> int:
    return await PURGE_MEDIA.run(db, days, limit)


async def find_number_state(db: Connection, company_id: int, source: str) -> NumberState | None:
    return await FIND_NUMBER_STATE.find(db, company_id, source)


async def put_number_state(tx: Tx, company_id: int, source: str, state: NumberState) -> None:
    await PUT_NUMBER_STATE.run(tx, company_id, source, state.quality, state.messaging_limit, state.throughput)


async def count_turn(db: Connection, company_id: int, name: str, gap: float, burst: float) -> bool:
    """Whether one more is possible now, at a pace of one in `gap` seconds, with `burst` seconds' worth at once."""
    return bool(await COUNT_TURN.value(db, company_id, name, gap, burst))


async def record_person(tx: Tx, company_id: int, source: str, person: str, wrote_at: datetime) -> None:
    await RECORD_PERSON.run(tx, company_id, source, person, wrote_at)


async def find_wrote_at(db: Connection, company_id: int, source: str, person: str) -> datetime | None:
    return await FIND_WROTE_AT.find(db, company_id, source, person)


async def purge_people(db: Connection, days: int) -> None:
    await PURGE_PEOPLE.run(db, days)
    await PURGE_PACES.run(db)
