"""How the areas that providers serve are reached."""

from typing import Annotated

from msgspec import Meta, Struct

from sapa.access.types import Scope
from sapa.http.endpoints import Base, Routes
from sapa.http.errors import Invalid, NotFound, Unauthorized
from sapa.http.outbound_call import OutboundCall
from sapa.http.query_string import SearchText
from sapa.shipping.areas import actions
from sapa.shipping.areas.types import AreaRequest, AreaSearchResult, CoverageArea
from sapa.shipping.carriers.interface import Level
from sapa.shipping.connections.types import ProviderNotConnected
from sapa.shipping.errors import CarrierUnavailable
from sapa.shipping.providers import LOCATED_BY_AREAS, PROVIDERS, Provider

routes = Routes("/shipping", base=Base.CUSTOMER, tag="Shipping", product="CRM", refusal=Unauthorized)

AreaKey = Annotated[str, Meta(min_length=1, max_length=64, pattern="^[A-Za-z0-9._-]+$", examples=["31"])]
RAISES = [NotFound, ProviderNotConnected, CarrierUnavailable]


class ProvincesQuery(Struct, frozen=True, kw_only=True, rename="camel"):
    """Which provinces to list."""

    provider: Annotated[Provider, Meta(description="Whose areas to list.")] = LOCATED_BY_AREAS
    search: Annotated[SearchText, Meta(description="A part of the name.")] | None = None


class CitiesQuery(ProvincesQuery, frozen=True, kw_only=True, rename="camel"):
    """Which cities to list."""

    province_id: (
        Annotated[
            AreaKey, Meta(description="An id of coverage/provinces. Required except for ev_courier.", examples=["31"])
        ]
        | None
    ) = None


class DistrictsQuery(ProvincesQuery, frozen=True, kw_only=True, rename="camel"):
    """Which districts to list."""

    city_id: Annotated[AreaKey, Meta(description="An id of coverage/cities.", examples=["3171"])]


class SubDistrictsQuery(ProvincesQuery, frozen=True, kw_only=True, rename="camel"):
    """Which sub-districts to list."""

    district_id: Annotated[AreaKey, Meta(description="An id of coverage/districts.", examples=["317106"])]


class AreaSearchQuery(Struct, frozen=True, kw_only=True, rename="camel"):
    """What to look for."""

    q: Annotated[SearchText, Meta(description="Words of names, or a postal code.", examples=["sukajadi bandung"])]
    provider: Annotated[Provider, Meta(description="Whose areas to search.")] = LOCATED_BY_AREAS
    limit: Annotated[int, Meta(ge=1, le=50, description="How many areas to return.")] = 10


@routes.get("/coverage/provinces", scope=Scope.ORDERS_READ, raises=RAISES, is_cached=True)
async def list_shipping_provinces(call: OutboundCall, query: ProvincesQuery) -> list[CoverageArea]:
    """List the provinces that a provider serves.

    The first step to the ids of districts and sub-districts, which express parcels need. Ids are the carrier's own:
    pass them on unchanged.
    """
    return await _list(call, query, "provinces", None)


@routes.get("/coverage/cities", scope=Scope.ORDERS_READ, raises=RAISES, is_cached=True)
async def list_shipping_cities(call: OutboundCall, query: CitiesQuery) -> list[CoverageArea]:
    """List the cities and regencies of a province.

    With `provider=ev_courier`: the cities in which it picks up parcels, without a province. Use one of them as the
    `pickupCity` of its quotes and shipments.
    """
    if query.province_id is None and not PROVIDERS[query.provider].has_pickup_cities:
        raise Invalid.field("provinceId", "is required; /shipping/coverage/provinces lists them")
    return await _list(call, query, "cities", query.province_id)


@routes.get("/coverage/districts", scope=Scope.ORDERS_READ, raises=RAISES, is_cached=True)
async def list_shipping_districts(call: OutboundCall, query: DistrictsQuery) -> list[CoverageArea]:
    """List the districts (kecamatan) of a city."""
    return await _list(call, query, "districts", query.city_id)


@routes.get("/coverage/sub-districts", scope=Scope.ORDERS_READ, raises=RAISES, is_cached=True)
async def list_shipping_sub_districts(call: OutboundCall, query: SubDistrictsQuery) -> list[CoverageArea]:
    """List the sub-districts (kelurahan) of a district."""
    return await _list(call, query, "sub-districts", query.district_id)


@routes.get("/coverage/search", scope=Scope.ORDERS_READ, raises=[ProviderNotConnected, CarrierUnavailable])
async def search_shipping_areas(call: OutboundCall, query: AreaSearchQuery) -> list[AreaSearchResult]:
    """Search areas by name or postal code.

    The words of `q` may name any level, in any order: `sukajadi bandung`, `40162`, `menteng jakarta pusat`. Each word
    is the beginning of a name. If nothing matches as written, one wrong, missing, extra or swapped letter in each word
    is tolerated. The best matches come first.
    """
    found = await actions.search(call.context, call.company, query.provider, query.q, query.limit)
    return [
        AreaSearchResult(
            place.province_id, place.city_id, place.district_id, place.sub_district_id, place.label, place.zip
        )
        for place in found
    ]


async def _list(call: OutboundCall, query: ProvincesQuery, level: Level, parent: str | None) -> list[CoverageArea]:
    if query.search is not None and not query.search.strip():
        raise Invalid.field("search", "must not be blank")
    request = AreaRequest(query.provider, level, parent)
    found = await actions.list_timed_coverage(call.context, call.company, request, query.search)
    if found.fresh_seconds > 0:
        call.cache_seconds = found.fresh_seconds
    return [CoverageArea(area.id, area.name, area.parent_id, area.zip) for area in found.areas]
