"""Queries that statements of other rooms contain; see `compose` in `src/sapa/db/sql.py`."""

from collections.abc import Sequence

import msgspec

from sapa.sandbox.types import PlannedCallback

SCHEDULED = """planned AS (
    SELECT clock_timestamp() + clock_offset + make_interval(secs => milliseconds / 1000.0) AS due_at, headers::json,
           body, is_own
      FROM companies
     CROSS JOIN unnest(:callback_headers::text[], :callback_bodies::bytea[], :milliseconds::bigint[], :are_own::bool[])
           WITH ORDINALITY AS p (headers, body, milliseconds, is_own, place)
     WHERE company_id = $1
     ORDER BY place),
subscriber AS (
    SELECT url FROM sandbox_subscriptions WHERE company_id = $1 AND path = :hook ORDER BY level DESC LIMIT 1),
copied AS (
    INSERT INTO sandbox_deliveries (company_id, due_at, url, headers, body)
    SELECT $1, due_at, url, headers, body FROM planned CROSS JOIN subscriber
    RETURNING id),
scheduled AS (
    INSERT INTO sandbox_callbacks (company_id, due_at, path, headers, body)
    SELECT $1, due_at, :hook, headers, body FROM planned WHERE is_own)"""
"""Callbacks to one of our paths. Of several subscribed addresses the one with the highest level gets a copy."""

HAS_COPIES = "EXISTS (SELECT FROM copied) AS has_copies"


def name_scheduled(hook: str, planned: Sequence[PlannedCallback]) -> dict[str, object]:
    """The parameters of the part `scheduled`."""
    return {
        "hook": hook,
        "callback_headers": [msgspec.json.encode(each.headers).decode() for each in planned],
        "callback_bodies": [each.body for each in planned],
        "milliseconds": [round(each.after_seconds * 1000) for each in planned],
        "are_own": [each.is_own for each in planned],
    }
