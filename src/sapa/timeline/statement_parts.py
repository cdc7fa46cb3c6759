"""Queries that statements of other rooms contain; see `compose` in `src/sapa/db/sql.py`."""

# In company time.
_RECORDED = """timeline AS (
    INSERT INTO timeline_entries (company_id, id, customer_id, category, type, source, edit_log, notes, actor_name,
                                  created_at, updated_at, is_counted)
    SELECT $1, e.id, e.customer_id, e.category, e.type, e.source, e.edit_log, e.notes, e.actor_name,
           coalesce(e.at, now.at), coalesce(e.at, now.at), true
      FROM json_to_recordset({document}::json) AS e (id text, customer_id text, category text, type text, source text,
                                                     edit_log text, notes text, actor_name text, at timestamptz)
     CROSS JOIN (SELECT clock_timestamp() + clock_offset AS at FROM companies WHERE company_id = $1) AS now{found}
    RETURNING customer_id, category),
counted_timeline AS (
    INSERT INTO counter_deltas (company_id, counter, cell, delta)
    SELECT $1, 'timeline', customer_id || ' ' || category, count(*) FROM timeline GROUP BY customer_id, category)"""

# A deleted customer gets no more entries, though their orders and points may still change. Each customer is looked up
# alone, never by a join: with the statistics of a table that was empty a moment ago, the planner would read all of it.
_FOUND = """
     CROSS JOIN LATERAL (
           SELECT id FROM customers WHERE company_id = $1 AND id BETWEEN e.customer_id AND e.customer_id
            ORDER BY id LIMIT 1) AS c"""


def build_recorded(document: str, *, are_known: bool = False) -> str:
    """Records the encoded entries of a parameter. The customers are looked up unless they `are_known` to be there until
    the transaction ends."""
    return _RECORDED.format(document=document, found="" if are_known else _FOUND)
