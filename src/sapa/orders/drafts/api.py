"""How draft orders are reached."""

from typing import Annotated

from msgspec import Meta

from sapa.access.types import Scope
from sapa.customers.types import IdentityConflict
from sapa.http.endpoints import Base, Call, Routes
from sapa.http.errors import NotFound
from sapa.http.query_string import PageQuery
from sapa.http.responses import Page, build_page
from sapa.orders.drafts import actions, queries
from sapa.orders.drafts.types import (
    DraftCompleted,
    DraftCompletion,
    DraftOrder,
    DraftOrderId,
    DraftOrderIn,
    DraftOrderPatch,
    DraftStatus,
)
from sapa.orders.types import Order, OrderExists
from sapa.products.types import InsufficientStock
from sapa.values.ids import CUSTOMER_ID

routes = Routes(
    "/draft-orders",
    base=Base.CUSTOMER,
    tag="Draft orders",
    about="Orders that are prepared and priced, and become orders when you complete them.",
)

PLAIN_COMPLETION = DraftCompletion()


class DraftOrdersQuery(PageQuery, frozen=True, kw_only=True):
    """Which draft orders to list."""

    status: Annotated[DraftStatus, Meta(description="Open or completed ones.")] | None = None
    customer_id: Annotated[str, Meta(pattern=CUSTOMER_ID.pattern, description="Drafts for this customer.")] | None = (
        None
    )


@routes.get("", scope=Scope.ORDERS_READ)
async def list_draft_orders(call: Call, query: DraftOrdersQuery) -> Page[DraftOrder]:
    """List draft orders.

    Newest first.
    """
    filters: dict[str, object] = {}
    if query.customer_id is not None:
        filters["customer_id"] = query.customer_id
    if query.status is not None:
        filters["cells"] = [query.status]
    drafts, total = await queries.list_drafts(call.db, call.company.id, filters, query.limit, query.offset)
    return build_page(drafts, query.page, query.limit, total)


@routes.post("", scope=Scope.ORDERS_WRITE)
async def create_draft_order(call: Call, body: DraftOrderIn) -> DraftOrder:
    """Create a draft order.

    It is priced like an order, takes nothing from the stock and has no number. A customer with a phone number or
    e-mail address is looked up or created when the draft is completed.
    """
    return await actions.create(call.db, call.company, body)


@routes.get("/{id}", scope=Scope.ORDERS_READ, raises=[NotFound])
async def get_draft_order(call: Call, id: DraftOrderId) -> DraftOrder:
    """Get one draft order."""
    return await queries.get_draft(call.db, call.company.id, id)


@routes.put("/{id}", scope=Scope.ORDERS_WRITE, raises=[NotFound, DraftCompleted])
async def update_draft_order(call: Call, id: DraftOrderId, body: DraftOrderPatch) -> DraftOrder:
    """Update an open draft order.

    A field that you leave out keeps its value; null clears it. `lineItems` is the whole list: a line with its id keeps
    its price, a new line gets the current price of its product variant.
    """
    return await actions.update(call.db, call.company, id, body)


@routes.delete("/{id}", scope=Scope.ORDERS_DELETE, raises=[NotFound, DraftCompleted])
async def delete_draft_order(call: Call, id: DraftOrderId) -> None:
    """Delete an open draft order."""
    await actions.delete(call.db, call.company, id)


@routes.post(
    "/{id}/complete",
    scope=Scope.ORDERS_WRITE,
    raises=[NotFound, DraftCompleted, OrderExists, IdentityConflict, InsufficientStock],
)
async def complete_draft_order(call: Call, id: DraftOrderId, body: DraftCompletion = PLAIN_COMPLETION) -> Order:
    """Turn a draft into an order.

    The order has the draft's prices, and takes its units from the stock. The draft stays, completed, with the order's
    id.
    """
    return await actions.complete(call.db, call.company, id, body, actor=call.actor)
