"""Queries that statements of other rooms contain; see `compose` in `src/sapa/db/sql.py`."""

RECORD = """record AS (
    INSERT INTO api_requests (company_id, stored_at, id, created_at, message_id, template_id, source, endpoint_type,
                              failed_at, snapshot)
    SELECT $1, :record_stored_at::timestamptz, :record_id::text, :record_created_at::timestamptz,
           :record_message_id::text, :record_template_id::text, :record_source::text, :record_endpoint_type::text,
           :record_failed_at::timestamptz, :record_snapshot::bytea
      FROM message),
counted_record AS (
    INSERT INTO counter_deltas (company_id, counter, cell, delta)
    SELECT $1, c.counter, c.cell, 1
      FROM message
     CROSS JOIN unnest(:record_counters::text[], :record_cells::text[]) AS c (counter, cell))"""
"""The record of a call that created the part `message`, counted in its cells."""

ANSWERED = """answered AS (
    UPDATE api_requests AS r
       SET snapshot = a.snapshot
      FROM accepted AS a
      JOIN changed ON changed.id = a.id
     WHERE r.company_id = $1 AND r.stored_at = a.record_stored_at AND r.id = a.record_id)"""
"""The final responses of calls: those of the part `accepted` (id, record_stored_at, record_id, snapshot) whose message
is in the part `changed`."""
