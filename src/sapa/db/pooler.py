"""Recognises a connection pooler in front of PostgreSQL that lends sessions out for one transaction at a time.

Prepared statements, settings, locks and LISTEN belong to a session; behind such a pooler they would belong to anybody.
"""

from contextlib import AsyncExitStack

from sapa.db.connection import connect

CONNECT_SECONDS = 10
ASK_SECONDS = 5
REASON = (
    "A connection pooler in front of PostgreSQL gives each transaction another session, and Sapa needs its own. "
    "Set pool_mode = session for its database (PgBouncer), or connect to PostgreSQL itself."
)

_ASK = "SELECT pg_backend_pid()"


async def shares_sessions(url: str) -> bool:
    """Whether another client got the session of an idle one, or an idle one came back to another session.

    A pooler may take its sessions in turn: then the idle one comes back to another session at the second try, or there
    are only two sessions, and the third client gets that of the idle one.
    """
    async with AsyncExitStack() as stack:
        clients = []
        for _ in range(3):
            options = {"command_timeout": ASK_SECONDS, "statement_cache_size": 0}
            clients.append(await connect(url, timeout=CONNECT_SECONDS, **options))
            stack.push_async_callback(clients[-1].close)
        idle, busy, third = clients
        before = await idle.fetchval(_ASK)
        async with busy.transaction():
            if await busy.fetchval(_ASK) == before:
                return True  # there may be no other one, and then nobody else gets any
            after = [await idle.fetchval(_ASK), await idle.fetchval(_ASK)]
            return await third.fetchval(_ASK) == before or after != [before, before]
