"""Developer settings: the log of API calls."""

from starlette.responses import Response

from sapa.access import actions as access
from sapa.console.fields import parse_instant
from sapa.console.page_request import PageRequest
from sapa.console.roles import DEVELOPERS
from sapa.console.routes import console
from sapa.http.errors import Invalid

PAGE = 50
FILTERS = ("keyId", "method", "route", "status", "code", "address", "requestId", "calledFrom", "calledTo")


@console.get("/{environment}/calls", roles=DEVELOPERS)
async def list_calls(page: PageRequest) -> Response:
    params = page.request.query_params
    query = {name: params.get(name, "").strip() for name in FILTERS}
    wanted = query | {
        "calledFrom": parse_instant(page, query["calledFrom"]),
        "calledTo": parse_instant(page, query["calledTo"], is_end=True),
        "before": params.get("before", ""),
        "limit": str(PAGE),
    }
    try:
        found = await page.call("GET", "/api-calls", wanted)
    except Invalid as error:
        page.error = error
        found = {"data": [], "pagination": {"hasMore": False, "nextBefore": None}}
    async with page.context.database.connection() as db:
        keys = {key.id: key.name for key in await access.list_keys(db, page.company_id)}
    return page.show(
        "calls.html",
        items=found["data"],
        pagination=found["pagination"],
        keys=keys,
        query=query,
        is_filtered=any(query.values()),
        is_later=bool(wanted["before"]),
    )
