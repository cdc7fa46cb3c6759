"""Recognises a connection pooler in front of PostgreSQL that lends sessions out for one transaction at a time.

Prepared statements, settings, locks and LISTEN belong to a session; behind such a pooler they would belong to anybody.
"""

from contextlib import AsyncExitStack

from sapa.db.connection import connect

CONNECT_SECONDS = 10
REASON = (
    "A connection pooler in front of PostgreSQL gives each transaction another session, and Sapa needs its own. "
    "Set pool_mode = session for its database (PgBouncer), or connect to PostgreSQL itself."
)

_ASK = "SELECT pg_backend_pid()"


async def shares_sessions(url: str) -> bool:
    """Whether another client got the session of an idle one, or an idle one came back to another session."""
    async with AsyncExitStack() as stack:
        idle = await connect(url, timeout=CONNECT_SECONDS, statement_cache_size=0)
        stack.push_async_callback(idle.close)
        busy = await connect(url, timeout=CONNECT_SECONDS, statement_cache_size=0)
        stack.push_async_callback(busy.close)
        before: int = await idle.fetchval(_ASK)
        async with busy.transaction():
            taken: int = await busy.fetchval(_ASK)
            after: int = await idle.fetchval(_ASK)
    return taken == before or after != before
