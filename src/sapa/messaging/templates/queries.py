"""Queries for templates."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from msgspec import Struct

from sapa.db.listing import Listing
from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql
from sapa.db.write_columns import WriteColumns
from sapa.http.errors import NotFound
from sapa.messaging.channels.template_content import TemplateContent
from sapa.messaging.templates.types import Template

COUNTER = "message_templates"
_SENDABLE = "(not_sendable_reason IS NULL)"
COLUMNS = ", ".join(f"{_SENDABLE} AS sendable" if name == "sendable" else name for name in Template.__struct_fields__)
CONTENT = WriteColumns(TemplateContent)


class ChannelState(Struct, frozen=True):
    """What the channel says about a template; the fields are the columns."""

    status: str
    reason: str | None
    quality: str | None
    not_sendable_reason: str | None
    provider_id: str
    owner_id: str
    """The account that has the template."""


STATE = WriteColumns(ChannelState)


class TemplateOwner(Struct, frozen=True):
    """A company whose templates are to be synchronised."""

    company_id: int


GET = sql(f"SELECT {COLUMNS} FROM message_templates WHERE company_id = $1 AND id = $2", row=Template)

LOCK = sql(f"SELECT {COLUMNS} FROM message_templates WHERE company_id = $1 AND id = $2 FOR UPDATE", row=Template)

INSERT = sql(
    f"""
    WITH counted AS (
        INSERT INTO counter_deltas (company_id, counter, cell, delta) VALUES ($1, 'message_templates', '', 1)
    )
    INSERT INTO message_templates (company_id, id, name, language, source, status, {CONTENT.listed})
    VALUES ($1, $2, $3, $4, $5, 'PENDING', {CONTENT.numbered(6)})
    RETURNING {COLUMNS}""",
    row=Template,
)

UPDATE = sql(
    f"""
    UPDATE message_templates
       SET {CONTENT.assigned(3)}, status = 'PENDING', reason = NULL, not_sendable_reason = NULL,
           updated_at = GREATEST(statement_timestamp(), updated_at)
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

DELETE_BY_NAME = sql(
    """
    WITH deleted AS (
        DELETE FROM message_templates WHERE company_id = $1 AND name = $2 AND language = $3 RETURNING id
    ), counted AS (
        INSERT INTO counter_deltas (company_id, counter, cell, delta)
        SELECT $1, 'message_templates', '', -1 FROM deleted
    )
    SELECT id FROM deleted"""
)

# A template that was submitted since the channel was asked for its list is not in it yet.
DELETE_MISSING = sql(
    """
    WITH deleted AS (
        DELETE FROM message_templates t
         WHERE company_id = $1 AND provider_id IS NOT NULL AND coalesce(owner_id, $2) = $2 AND synced_at < $3
           AND NOT EXISTS (
               SELECT FROM unnest($4::text[], $5::text[]) AS found (name, language)
                WHERE found.name = t.name AND found.language = t.language)
        RETURNING id
    )
    INSERT INTO counter_deltas (company_id, counter, cell, delta)
    SELECT $1, 'message_templates', '', -1 FROM deleted"""
)

DISABLE_FOREIGN = sql(
    """
    UPDATE message_templates
       SET status = 'DISABLED', reason = $3, updated_at = GREATEST(statement_timestamp(), updated_at)
     WHERE company_id = $1 AND owner_id <> $2 AND status <> 'DISABLED'"""
)

# The channel's decision. What it does not mention stays; a new status replaces the reason of the last one.
DECIDE = sql(
    f"""
    UPDATE message_templates
       SET status = coalesce($4, status),
           reason = CASE WHEN $4::text IS NULL THEN reason ELSE $5 END,
           quality = coalesce($6, quality),
           category = coalesce($7, category),
           synced_at = now(),
           updated_at = CASE WHEN (status, quality, category) IS NOT DISTINCT FROM
                                  (coalesce($4, status), coalesce($6, quality), coalesce($7, category))
                             THEN updated_at ELSE GREATEST(clock.now, updated_at) END
      FROM (SELECT statement_timestamp() AS now) AS clock
     WHERE company_id = $1 AND name = $2 AND language = $3
    RETURNING {COLUMNS}""",
    row=Template,
)

RECORD_SUBMISSION = sql(
    f"""
    UPDATE message_templates
       SET category = $3, {STATE.assigned(4)}, synced_at = now(),
           updated_at = GREATEST(statement_timestamp(), updated_at)
     WHERE company_id = $1 AND id = $2
    RETURNING {COLUMNS}""",
    row=Template,
)

# Of two submissions at the same time the channel refuses the second, because it has the first.
REJECT = sql(
    f"""
    UPDATE message_templates
       SET status = 'REJECTED', reason = $3, updated_at = GREATEST(statement_timestamp(), updated_at)
     WHERE company_id = $1 AND id = $2 AND provider_id IS NULL
    RETURNING {COLUMNS}""",
    row=Template,
)

_FIRST_STATE = 4 + len(CONTENT.names)

# A change since the channel was asked for its list is newer than the list. The examples are left out of the
# comparison: the channel signs their addresses anew each time.
REFRESH = sql(
    f"""
    UPDATE message_templates AS t
       SET {CONTENT.assigned(4)}, {STATE.assigned(_FIRST_STATE)}, synced_at = now(),
           updated_at = CASE WHEN (t.status, t.reason, t.quality, t.category, t.body, t.footer, t.header::text,
                                   t.buttons::text, t.cards::text)
                                  IS NOT DISTINCT FROM
                                  (${_FIRST_STATE}, ${_FIRST_STATE + 1}, ${_FIRST_STATE + 2}, $4, $7, $8,
                                   $6::json::text, $9::json::text, $10::json::text)
                             THEN updated_at ELSE GREATEST(clock.now, updated_at) END
      FROM (SELECT statement_timestamp() AS now) AS clock
     WHERE company_id = $1 AND id = $2 AND (synced_at IS NULL OR synced_at < $3)
    RETURNING {COLUMNS}""",
    row=Template,
)

FIND_BY_NAME = sql(
    f"""
    SELECT {COLUMNS}
      FROM message_templates
     WHERE company_id = $1 AND name = $2 AND language = $3
       FOR UPDATE""",
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

# Not submitted yet, or submitted with an unknown outcome. An approved one is of a test environment, from before they
# had a review.
LIST_UNSUBMITTED = sql(
    f"""
    SELECT {COLUMNS}
      FROM message_templates
     WHERE company_id = $1 AND status IN ('PENDING', 'APPROVED') AND provider_id IS NULL
     ORDER BY created_at, id
     LIMIT $2""",
    row=Template,
)

FIND_PROVIDER_ID = sql("SELECT provider_id FROM message_templates WHERE company_id = $1 AND id = $2")

# Accounts that are to be read, and those that have not decided yet. Test environments have no connections: theirs are
# of interest only while something is to be submitted.
LIST_OWNERS = sql(
    """
    SELECT company_id
      FROM channel_connections
     WHERE status = 'connected' AND source = ANY($1::text[]) AND company_id > $2
       AND templates_due_at <= statement_timestamp()
     UNION
    SELECT t.company_id
      FROM message_templates t
      JOIN channel_connections c ON c.company_id = t.company_id
     WHERE t.status = 'PENDING' AND t.company_id > $2 AND c.status = 'connected' AND c.source = ANY($1::text[])
     UNION
    SELECT t.company_id
      FROM message_templates t
      JOIN companies c ON c.company_id = t.company_id AND c.environment = 'test'
     WHERE t.provider_id IS NULL AND t.status IN ('PENDING', 'APPROVED') AND t.company_id > $2
     ORDER BY company_id
     LIMIT $3""",
    row=TemplateOwner,
    crosses="the worker synchronises the templates of all companies",
)

ASK_FOR = sql("UPDATE channel_connections SET templates_due_at = now() WHERE company_id = $1 AND status = 'connected'")

# What was asked for since the channel was read stays due.
POSTPONE = sql(
    """
    UPDATE channel_connections
       SET templates_due_at = now() + make_interval(secs => $3)
     WHERE company_id = $1 AND status = 'connected' AND templates_due_at <= $2"""
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
    columns={"sendable": "(r.not_sendable_reason IS NULL)"},
)


async def get_template(db: Connection, company_id: int, id: str) -> Template:
    return _or_not_found(await GET.find(db, company_id, id))


async def lock_template(tx: Tx, company_id: int, id: str) -> Template:
    return _or_not_found(await LOCK.find(tx, company_id, id))


async def insert_template(
    tx: Tx, company_id: int, id: str, name: str, language: str, source: str, content: TemplateContent
) -> Template:
    return _or_not_found(await INSERT.find(tx, company_id, id, name, language, source, *CONTENT.values(content)))


async def update_template(tx: Tx, company_id: int, id: str, content: TemplateContent) -> Template:
    return _or_not_found(await UPDATE.find(tx, company_id, id, *CONTENT.values(content)))


async def delete_template(tx: Tx, company_id: int, id: str) -> None:
    if await DELETE.value(tx, company_id, id) is None:
        raise NotFound


async def delete_by_name(tx: Tx, company_id: int, name: str, language: str) -> None:
    await DELETE_BY_NAME.run(tx, company_id, name, language)


async def delete_missing(
    tx: Tx, company_id: int, owner_id: str, since: datetime, existing: Sequence[tuple[str, str]]
) -> None:
    """Deletes what the channel had before `since`, except for those with these names and languages."""
    names, languages = [name for name, _ in existing], [language for _, language in existing]
    await DELETE_MISSING.run(tx, company_id, owner_id, since, names, languages)


async def disable_foreign(tx: Tx, company_id: int, owner_id: str, reason: str) -> None:
    await DISABLE_FOREIGN.run(tx, company_id, owner_id, reason)


async def decide(
    tx: Tx,
    company_id: int,
    name: str,
    language: str,
    status: str | None,
    reason: str | None,
    quality: str | None,
    category: str | None,
) -> Template | None:
    return await DECIDE.find(tx, company_id, name, language, status, reason, quality, category)


async def record_submission(tx: Tx, company_id: int, id: str, category: str, state: ChannelState) -> Template | None:
    return await RECORD_SUBMISSION.find(tx, company_id, id, category, *STATE.values(state))


async def reject(tx: Tx, company_id: int, id: str, reason: str) -> Template | None:
    return await REJECT.find(tx, company_id, id, reason)


async def refresh(
    tx: Tx, company_id: int, id: str, since: datetime, content: TemplateContent, state: ChannelState
) -> None:
    """Stores what the channel's list has, unless the template changed after `since`."""
    await REFRESH.run(tx, company_id, id, since, *CONTENT.values(content), *STATE.values(state))


async def find_by_name(tx: Tx, company_id: int, name: str, language: str) -> Template | None:
    return await FIND_BY_NAME.find(tx, company_id, name, language)


async def list_by_name(db: Connection, company_id: int, name: str) -> list[Template]:
    """All languages, approved ones first."""
    return await LIST_BY_NAME.all(db, company_id, name)


async def list_names(db: Connection, company_id: int, limit: int) -> list[str]:
    return [row[0] for row in await db.fetch(LIST_NAMES.text, company_id, limit)]


async def list_unsubmitted(db: Connection, company_id: int, limit: int) -> Sequence[Template]:
    return await LIST_UNSUBMITTED.all(db, company_id, limit)


async def list_owners(db: Connection, sources: Sequence[str], after: int, limit: int) -> list[TemplateOwner]:
    """One page, by company."""
    return await LIST_OWNERS.all(db, list(sources), after, limit)


async def ask_for_templates(tx: Tx, company_id: int) -> None:
    """The next round reads the templates of the company's account."""
    await ASK_FOR.run(tx, company_id)


async def postpone(db: Connection, company_id: int, since: datetime, seconds: float) -> None:
    await POSTPONE.run(db, company_id, since, seconds)


async def find_provider_id(db: Connection, company_id: int, id: str) -> str | None:
    found: str | None = await FIND_PROVIDER_ID.value(db, company_id, id)
    return found


async def list_templates(
    db: Connection, company_id: int, filters: Mapping[str, object], limit: int, offset: int
) -> tuple[list[Template], int]:
    return await LISTING.page(db, company_id, filters, "createdAt:desc", limit, offset)


def _or_not_found(template: Template | None) -> Template:
    if template is None:
        raise NotFound
    return template
