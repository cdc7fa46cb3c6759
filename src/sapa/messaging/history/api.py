"""Endpoint for the history of calls."""

from sapa.access.types import Scope
from sapa.http.endpoints import Base, Call, Routes, ToolTraits
from sapa.http.query_string import check_period
from sapa.messaging.history import actions
from sapa.messaging.history.types import RecordsPage, RecordsQuery

routes = Routes("/messages", base=Base.MESSAGING, tag="Messages")


@routes.get("/requests", scope=Scope.MESSAGES_READ, tool=ToolTraits(hidden="Its responses contain API keys."))
async def list_message_requests(call: Call, query: RecordsQuery) -> RecordsPage:
    """List the calls that send messages.

    The newest first, refused calls included. Each one is shown as received, with the caller's key: keep the response
    secret. A working key that has a scope or product your key lacks is masked in `x-api-key`: `svc_test_…RiHj`. A retry
    with the same Idempotency-Key is not recorded again.
    """
    check_period("startDate", query.start_date, "endDate", query.end_date)
    return await actions.list_page(call.db, call.context.vault, call.key, query)
