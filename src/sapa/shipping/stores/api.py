"""How store locations are reached."""

from functools import partial

from sapa.access.types import Scope
from sapa.http.endpoints import Base, Call, Routes, ToolTraits
from sapa.http.errors import NotFound, Unauthorized
from sapa.http.outbound_call import OutboundCall
from sapa.http.query_string import PageQuery
from sapa.http.responses import Page, build_page
from sapa.shipping.stores import actions, queries
from sapa.shipping.stores.types import StoreLocation, StoreLocationIn, StoreLocationPatch
from sapa.shipping.types import LocationId

routes = Routes(
    "/shipping", base=Base.CUSTOMER, tag="Shipping", product="CRM", refusal=Unauthorized, resource="store_locations"
)


@routes.get("/store-locations", scope=Scope.ORDERS_READ)
async def list_store_locations(call: Call, query: PageQuery) -> Page[StoreLocation]:
    """List store locations.

    Newest first.
    """
    found, total = await queries.list_stores(call.db, call.company.id, query.limit, query.offset)
    return build_page(found, query.page, query.limit, total)


@routes.post("/store-locations", scope=Scope.ORDERS_WRITE)
async def create_store_location(call: Call, body: StoreLocationIn) -> StoreLocation:
    """Create a store location.

    A shipment with its id as `storeLocationId` takes its sender from it. The default store location, of which there is
    at most one, is used for shipments without a store location and without a sender. The first store location is the
    default unless you set `isDefault` to false.
    """
    return await actions.create(call.db, call.company, body)


@routes.get("/store-locations/{id}", scope=Scope.ORDERS_READ, raises=[NotFound])
async def get_store_location(call: Call, id: LocationId) -> StoreLocation:
    """Get one store location."""
    return await queries.get_store(call.db, call.company.id, id)


@routes.put("/store-locations/{id}", scope=Scope.ORDERS_WRITE, raises=[NotFound])
async def update_store_location(call: Call, id: LocationId, body: StoreLocationPatch) -> StoreLocation:
    """Update a store location.

    A field that is absent keeps its value, null clears it. Existing shipments keep their sender.
    """
    return await actions.update(call.db, call.company, id, body)


@routes.patch(
    "/store-locations/{id}",
    scope=Scope.ORDERS_WRITE,
    raises=[NotFound],
    tool=ToolTraits(hidden="update_store_location does the same."),
)
async def patch_store_location(call: Call, id: LocationId, body: StoreLocationPatch) -> StoreLocation:
    """Update a store location, as PUT does."""
    return await actions.update(call.db, call.company, id, body)


@routes.delete("/store-locations/{id}", scope=Scope.ORDERS_DELETE, raises=[NotFound])
async def delete_store_location(call: OutboundCall, id: LocationId) -> None:
    """Delete a store location.

    This cannot be undone. Shipments from it keep their sender, and their `storeLocationId` is cleared, in parts if they
    are many: if the call is interrupted, repeat it.
    """
    await actions.detach_shipments(call.context.database, call.company, id)
    await call.commit(partial(actions.delete, company=call.company, id=id))
