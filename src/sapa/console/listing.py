"""One page of a list, by the query of the address."""

from typing import Any

from sapa.console.page_request import PageRequest
from sapa.http.endpoints import Base
from sapa.http.errors import Invalid

PAGE = 25


async def read_list(page: PageRequest, path: str, *filters: str, base: Base = Base.CUSTOMER) -> dict[str, Any]:
    """The API's list; an invalid query shows its error in place of the list."""
    page.keep_filters()
    params = page.request.query_params
    query = {name: params.get(name, "").strip() for name in ("search", "page", *filters)}
    try:
        found = await page.call("GET", path, query | {"limit": str(PAGE)}, base=base)
    except Invalid as error:
        page.error = error
        found = {"data": [], "meta": {"page": 1, "limit": PAGE, "total": 0, "hasNextPage": False}}
    return {"items": found["data"], "meta": found["meta"], "query": query}
