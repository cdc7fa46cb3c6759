"""How the history of an order is reached."""

from sapa.access.types import Scope
from sapa.http.endpoints import Base, Call, Routes
from sapa.http.errors import NotFound
from sapa.http.query_string import PageQuery
from sapa.http.responses import Page, build_page
from sapa.orders.history import queries
from sapa.orders.history.types import HistoryEntry
from sapa.orders.types import OrderId

routes = Routes("/orders", base=Base.CUSTOMER, tag="Orders")


@routes.get("/{id}/history", scope=Scope.ORDERS_READ, raises=[NotFound])
async def list_order_history(call: Call, id: OrderId, query: PageQuery) -> Page[HistoryEntry]:
    """List the changes of an order.

    Newest first: who changed it, when, and every field before and after.
    """
    entries, total = await queries.list_entries(call.db, call.company.id, id, query.limit, query.offset)
    return build_page(entries, query.page, query.limit, total)
