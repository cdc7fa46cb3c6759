"""Queries that statements of other rooms contain; see `compose` in `src/sapa/db/sql.py`."""

THROUGHPUT = """throughput AS (
    SELECT throughput
      FROM channel_statuses
     WHERE company_id = $1 AND connection_id = (SELECT id FROM connection))"""
"""What the channel says of the throughput of the part `connection`."""
