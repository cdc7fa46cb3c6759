"""How people save filters of the console's lists."""

from sapa.db.pool import Connection, Tx
from sapa.http.errors import Invalid
from sapa.people.filters import queries
from sapa.people.filters.types import FILTER_ID, SavedFilter

MAX_FILTERS = 20
MAX_NAME = 60
MAX_QUERY = 1_000


async def list_filters(db: Connection, company_id: int, user_id: int, list_name: str) -> list[SavedFilter]:
    """By name."""
    return await queries.list_filters(db, company_id, user_id, list_name, MAX_FILTERS)


async def save(tx: Tx, company_id: int, user_id: int, list_name: str, name: str, query: str) -> None:
    """Replaces the filter of the same name. Raises Invalid."""
    if not 0 < len(name) <= MAX_NAME:
        raise Invalid.field("name", f"must have 1 to {MAX_NAME} characters")
    if not 0 < len(query) <= MAX_QUERY:
        raise Invalid.field("query", "choose a filter first")
    stored = await queries.list_filters(tx, company_id, user_id, list_name, MAX_FILTERS)
    if len(stored) == MAX_FILTERS and name not in {one.name for one in stored}:
        raise Invalid.field("name", f"at most {MAX_FILTERS} filters can be saved; remove one first")
    await queries.save(tx, company_id, FILTER_ID.new(), user_id, list_name, name, query)


async def delete(tx: Tx, company_id: int, user_id: int, id: str) -> None:
    await queries.delete(tx, company_id, user_id, id)
