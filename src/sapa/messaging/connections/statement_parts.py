"""Queries that statements of other rooms contain; see `compose` in `src/sapa/db/sql.py`."""

CONNECTION = """connection AS (
    SELECT id, account, credentials, last_error
      FROM channel_connections
     WHERE company_id = $1 AND source = :source AND status = 'connected')"""
"""The stored account with a channel."""
