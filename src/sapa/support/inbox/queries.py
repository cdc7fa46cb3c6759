"""One statement for what every page of the inbox offers: as a call for each list it takes most of the page's time."""

import msgspec

from sapa.db.pool import Connection
from sapa.db.sql import sql
from sapa.support.inbox.types import InboxChoices

MOST = 1_000
"""Of each list, the newest."""


def _list(columns: str, table: str, name: str = "name", condition: str = "true") -> str:
    return f"""
           (SELECT coalesce(json_agg(row_to_json(one) ORDER BY lower(one."{name}"), one.id), '[]')
              FROM (SELECT {columns}
                      FROM {table}
                     WHERE company_id = $1 AND {condition}
                     ORDER BY created_at DESC, id DESC
                     LIMIT {MOST:d}) AS one)"""


_MINE = "(agent_id IS NULL OR agent_id = (SELECT a.id FROM agents a WHERE a.company_id = $1 AND a.user_id = $2))"

_MENTIONS = f"""
           (SELECT coalesce(json_agg(one.ticket_id ORDER BY one.created_at, one.ticket_id), '[]')
              FROM (SELECT ticket_id, created_at
                      FROM ticket_mentions
                     WHERE company_id = $1
                       AND agent_id = (SELECT a.id FROM agents a WHERE a.company_id = $1 AND a.user_id = $2)
                     LIMIT {MOST:d}) AS one)"""

GET = sql(
    f"""
    SELECT json_build_object(
           'agents', {_list('id, name, type, active, user_id AS "userId"', "agents")},
           'labels', {_list("id, name, color", "ticket_labels")},
           'teams', {_list("id, name", "teams")},
           'views', {_list('id, name, agent_id AS "agentId", filters', "ticket_views", condition=_MINE)},
           'macros', {_list("id, name", "macros", condition="$3::boolean")},
           'savedReplies', {_list("id, shortcut, text", "saved_replies", "shortcut", "$3")},
           'mentions', {_MENTIONS},
           'clockOffsetSeconds', (SELECT extract(epoch FROM clock_offset) FROM companies WHERE company_id = $1))"""
)


async def get_choices(db: Connection, company_id: int, user_id: int, *, with_replies: bool) -> InboxChoices:
    return msgspec.json.decode(await GET.value(db, company_id, user_id, with_replies), type=InboxChoices)
