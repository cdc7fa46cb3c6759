"""Queries for templates."""

from collections.abc import Mapping, Sequence

from msgspec import Raw, Struct

from sapa.db.listing import Listing
from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql
from sapa.http.errors import NotFound
from sapa.messaging.templates.types import Template

COUNTER = "message_templates"
COLUMNS = ", ".join(Template.__struct_fields__)


class Content(Struct, frozen=True):
    """The content of a template; the fields are the columns."""

    category: str
    header: bytes | Raw | None
    body: str
    footer: str | None
    buttons: bytes | Raw
    status: str
    reason: str | None
    provider_id: str | None


class TemplateOwner(Struct, frozen=True):
    """A company with a channel that reviews templates."""

    company_id: int


GET = sql(f"SELECT {COLUMNS} FROM message_templates WHERE company_id = $1 AND id = $2", row=Template)

LOCK = sql(f"SELECT {COLUMNS} FROM message_templates WHERE company_id = $1 AND id = $2 FOR UPDATE", row=Template)

INSERT = sql(
    f"""
    WITH counted AS (
        INSERT INTO counter_deltas (company_id, counter, cell, delta) VALUES ($1, 'message_templates', '', 1)
    )
    INSERT INTO message_templates (company_id, id, name, language, source, category, header, body, footer, buttons,
                                   status, reason, provider_id)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
    RETURNING {COLUMNS}""",
    row=Template,
)

UPDATE = sql(
    f"""
    UPDATE message_templates
       SET category = $3, header = $4, body = $5, footer = $6, buttons = $7, status = $8, reason = $9,
           provider_id = $10, updated_at = GREATEST(clock_timestamp(), updated_at)
     WHERE company_id = $1 AND id = $2
    RETURNING {COLUMNS}""",
    row=Template,
)

DELETE = sql(
    """
    WITH deleted AS (
        DELETE FROM message_templates WHERE company_id = $1 AND id = $2 RETURNING id
    ), counted AS (
        INSERT INTO counter_deltas (company_id, counter, cell, delta)
        SELECT $1, 'message_templates', '', -1 FROM deleted
    )
    SELECT id FROM deleted"""
)

# Stores the channel's decision and the time of the sync.
DECIDE = sql(
    f"""
    UPDATE message_templates
       SET status = $4, reason = $5, provider_id = coalesce($6, provider_id), synced_at = now(),
           updated_at = CASE WHEN status = $4 THEN updated_at ELSE GREATEST(clock_timestamp(), updated_at) END
     WHERE company_id = $1 AND name = $2 AND language = $3
    RETURNING {COLUMNS}""",
    row=Template,
)

LIST_BY_NAME = sql(
    f"""
    SELECT {COLUMNS}
      FROM message_templates
     WHERE company_id = $1 AND name = $2
     ORDER BY status = 'APPROVED' DESC, created_at, id""",
    row=Template,
)

LIST_NAMES = sql("SELECT DISTINCT name FROM message_templates WHERE company_id = $1 ORDER BY name LIMIT $2")

# Not submitted yet, or submitted with an unknown outcome.
LIST_UNSUBMITTED = sql(
    f"""
    SELECT {COLUMNS}
      FROM message_templates
     WHERE company_id = $1 AND status = 'PENDING' AND provider_id IS NULL
     ORDER BY created_at, id
     LIMIT $2""",
    row=Template,
)

FIND_PROVIDER_ID = sql("SELECT provider_id FROM message_templates WHERE company_id = $1 AND id = $2")

LIST_OWNERS = sql(
    """
    SELECT DISTINCT company_id
      FROM channel_connections
     WHERE status = 'connected' AND source = ANY($1::text[])
     ORDER BY company_id
     LIMIT $2""",
    row=TemplateOwner,
    crosses="the worker synchronises the templates of all companies",
)

LISTING = Listing(
    "message_templates",
    row=Template,
    counter=COUNTER,
    filters={
        "search": "name LIKE {}",
        "language": "language = {}",
        "source": "source = {}",
        "status": "status = {}",
    },
    sorts={"createdAt": "created_at"},
)


async def get_template(db: Connection, company_id: int, id: str) -> Template:
    return _found(await GET.find(db, company_id, id))


async def lock_template(tx: Tx, company_id: int, id: str) -> Template:
    return _found(await LOCK.find(tx, company_id, id))


async def insert_template(
    tx: Tx, company_id: int, id: str, name: str, language: str, source: str, content: Content
) -> Template:
    return _found(await INSERT.find(tx, company_id, id, name, language, source, *_columns(content)))


async def update_template(tx: Tx, company_id: int, id: str, content: Content) -> Template:
    return _found(await UPDATE.find(tx, company_id, id, *_columns(content)))


async def delete_template(tx: Tx, company_id: int, id: str) -> None:
    if await DELETE.value(tx, company_id, id) is None:
        raise NotFound


async def decide(
    tx: Tx, company_id: int, name: str, language: str, status: str, reason: str | None, provider_id: str | None
) -> Template | None:
    return await DECIDE.find(tx, company_id, name, language, status, reason, provider_id)


async def list_by_name(db: Connection, company_id: int, name: str) -> list[Template]:
    """All languages, approved ones first."""
    return await LIST_BY_NAME.all(db, company_id, name)


async def list_names(db: Connection, company_id: int, limit: int) -> list[str]:
    return [row[0] for row in await db.fetch(LIST_NAMES.text, company_id, limit)]


async def list_unsubmitted(db: Connection, company_id: int, limit: int) -> Sequence[Template]:
    return await LIST_UNSUBMITTED.all(db, company_id, limit)


async def list_owners(db: Connection, sources: Sequence[str], limit: int) -> list[TemplateOwner]:
    return await LIST_OWNERS.all(db, list(sources), limit)


async def find_provider_id(db: Connection, company_id: int, id: str) -> str | None:
    found: str | None = await FIND_PROVIDER_ID.value(db, company_id, id)
    return found


async def list_templates(
    db: Connection, company_id: int, filters: Mapping[str, object], limit: int, offset: int
) -> tuple[list[Template], int]:
    return await LISTING.page(db, company_id, filters, "createdAt:desc", limit, offset)


def _found(template: Template | None) -> Template:
    if template is None:
        raise NotFound
    return template


def _columns(content: Content) -> list[object]:
    return [getattr(content, name) for name in content.__struct_fields__]
