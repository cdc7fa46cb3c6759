"""Endpoint for the history of calls."""

from sapa.access.types import Scope
from sapa.http.endpoints import Base, Call, Routes
from sapa.messaging.history import actions
from sapa.messaging.history.types import RecordsPage, RecordsQuery

routes = Routes("/messages", base=Base.MESSAGING, tag="Messages")


@routes.get("/requests", scope=Scope.MESSAGES_READ)
async def list_requests(call: Call, query: RecordsQuery) -> RecordsPage:
    """List the calls that asked for messages.

    The newest first, refused calls included; each as it came in, with the caller's key, so treat the answer as a
    secret. The retry of a call with the same Idempotency-Key leaves no record of its own.
    """
    return await actions.list_page(call.db, call.context.vault, call.company, query)
