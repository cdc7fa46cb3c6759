"""How the log of API calls is read over HTTP."""

from sapa.access.calls import actions
from sapa.access.calls.types import ApiCall, ApiCallsQuery
from sapa.access.types import Scope
from sapa.http.endpoints import Base, Call, Routes
from sapa.http.query_string import check_period
from sapa.http.responses import CursorPage

routes = Routes("/api-calls", base=Base.CUSTOMER, tag="API keys", resource="api_calls")


@routes.get("", scope=Scope.KEYS_READ)
async def list_api_calls(call: Call, query: ApiCallsQuery) -> CursorPage[ApiCall]:
    """List the API calls of the last 30 days.

    Every call with a key of the company's environment, refused calls included, newest first. A call is listed within a
    second of its response. Query strings, headers and bodies are not logged. Of calls that the rate limit refused, at
    least the first 100 of each key and minute are.

    To read older calls, send the response's nextBefore as `before` until hasMore is false. A page can have fewer calls
    than its limit, or none, while hasMore is true: for a rare combination of filters the log is searched part by part.
    """
    check_period("calledFrom", query.called_from, "calledTo", query.called_to)
    return await actions.list_page(call.db, call.company.id, query)
