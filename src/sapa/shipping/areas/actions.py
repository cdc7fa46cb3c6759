"""Which places a provider serves: asked of its carrier, remembered for a while, and read from the installation's
dictionary where the carrier has no list of its own."""

import asyncio
from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct

from sapa.context import AppContext
from sapa.db.pool import Connection
from sapa.http.errors import Invalid, NotFound
from sapa.shipping.areas import queries
from sapa.shipping.areas.types import LEVELS, AreaRequest
from sapa.shipping.carriers.interface import (
    BadCredentials,
    Carrier,
    CarrierArea,
    CarrierAway,
)
from sapa.shipping.carriers.registry import CARRIERS
from sapa.shipping.connections.actions import get_carrier, record_health
from sapa.shipping.connections.types import ConnectedCarrier
from sapa.shipping.environment import get_environment
from sapa.shipping.providers import PROVIDERS
from sapa.shipping.types import CarrierUnavailable, Party
from sapa.values.company import Company
from sapa.values.json import encode
from sapa.values.text_folding import fold

MAX_AGE_DAYS = 90
"""For how long a list is used when the carrier is away."""

ANSWER_SECONDS = 9.0
_LONGEST_CODE = 10
_decode = msgspec.json.Decoder(list[CarrierArea]).decode


class CoverageState(Struct, frozen=True):
    """Who can tell, and what is known already."""

    connected: ConnectedCarrier | None
    """None where the dictionary has to do."""
    areas: list[CarrierArea] | None = None
    is_fresh: bool = False


async def list_coverage(
    context: AppContext, company: Company, request: AreaRequest, search: str | None
) -> list[CarrierArea]:
    """The places by name; raises NotFound for a parent that nobody knows."""
    async with context.database.connection() as db:
        coverage = await _find_coverage(context, db, company, request)
    if not coverage.is_fresh and coverage.connected is not None:
        response = await _ask(coverage.connected, request)
        async with context.database.connection() as db:
            coverage = await _save_response(db, company, coverage, request, response)
    return _filter(coverage.areas or [], request, search)


async def list_pickup_cities(
    context: AppContext, db: Connection, company: Company, provider: str
) -> Sequence[CarrierArea]:
    """The cities in which the provider fetches parcels. Not for use inside a transaction: the carrier may be asked."""
    request = AreaRequest(provider, "cities", None)
    coverage = await _find_coverage(context, db, company, request)
    if not coverage.is_fresh and coverage.connected is not None:
        coverage = await _save_response(db, company, coverage, request, await _ask(coverage.connected, request))
    return coverage.areas or []


async def check_ends(db: Connection, company: Company, adapter: str | None, ends: Mapping[str, Party]) -> None:
    """That the ends of a shipment are places of the carrier's, as far as that is known."""
    for field, party in ends.items():
        if adapter is not None:
            ids = party.kecamatan_id, party.kelurahan_id
            await check_sub_district(db, company, adapter, f"{field}.kelurahanId", *ids)


async def check_sub_district(
    db: Connection, company: Company, adapter: str, field: str, district_id: int | None, sub_district_id: int | None
) -> None:
    """That the one lies in the other, where it is known what lies in the district."""
    if district_id is None or sub_district_id is None:
        return
    coverage = await _list_sub_districts(db, company, CARRIERS[adapter], district_id)
    if coverage and str(sub_district_id) not in {str(area.id) for area in coverage}:
        raise Invalid.field(
            field,
            f"{sub_district_id} is no sub-district of the district {district_id};"
            f" /shipping/coverage/sub-districts?districtId={district_id} lists those that are",
        )


async def _list_sub_districts(
    db: Connection, company: Company, carrier: Carrier, district_id: int
) -> Sequence[CarrierArea]:
    """Without calling the carrier: from the dictionary, the environment or the cache."""
    request = AreaRequest(carrier.provider, "sub-districts", str(district_id))
    if not _has_list(carrier, request):
        return await queries.list_areas(db, LEVELS[request.level], district_id)
    coverage = get_environment(company).find_sub_districts(district_id)
    if coverage is not None:
        return coverage
    cached = await queries.find_cached(db, company.id, *_build_key(carrier, request), MAX_AGE_DAYS, MAX_AGE_DAYS)
    return _decode(cached.areas) if cached else ()


async def _find_coverage(context: AppContext, db: Connection, company: Company, request: AreaRequest) -> CoverageState:
    connected = (
        None if PROVIDERS[request.provider].is_local else await get_carrier(context, db, company, request.provider)
    )
    if connected is None or not _has_list(connected.carrier, request):
        return CoverageState(None, await _list_from_dictionary(db, request), is_fresh=True)
    days = get_environment(company).coverage_days
    cached = await queries.find_cached(db, company.id, *_build_key(connected.carrier, request), days, MAX_AGE_DAYS)
    return CoverageState(connected, _decode(cached.areas), cached.is_fresh) if cached else CoverageState(connected)


async def _list_from_dictionary(db: Connection, request: AreaRequest) -> list[CarrierArea]:
    if not await queries.has_areas(db):
        raise Invalid.field(
            "provider", f"{request.provider} has no list of {request.level}, and no area data was imported to stand in"
        )
    parent = request.parent or "0"
    is_code = parent.isdigit() and len(parent) <= _LONGEST_CODE
    return await queries.list_areas(db, LEVELS[request.level], int(parent)) if is_code else []


async def _ask(connected: ConnectedCarrier, request: AreaRequest) -> list[CarrierArea] | str:
    """What the carrier says, or why it says nothing."""
    _, _, parent = _build_key(connected.carrier, request)
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            return list(await connected.carrier.list_areas(connected.connection, request.level, parent or None, None))
    except (CarrierAway, BadCredentials, TimeoutError) as error:
        return str(error) or "there was no answer in time"


async def _save_response(
    db: Connection, company: Company, coverage: CoverageState, request: AreaRequest, response: list[CarrierArea] | str
) -> CoverageState:
    """Keeps what the carrier said; when it is away, what it said before is as good as anything."""
    connected = coverage.connected
    if connected is None or (isinstance(response, str) and coverage.areas is not None):
        return coverage
    if isinstance(response, str):
        await record_health(db, company.id, connected.connection.id, response)
        raise CarrierUnavailable(f"{connected.carrier.label} could not say which places it serves: {response}.")
    if response:
        await queries.save_coverage(db, company.id, *_build_key(connected.carrier, request), encode(response))
    return CoverageState(connected, response, is_fresh=True)


def _has_list(carrier: Carrier, request: AreaRequest) -> bool:
    """A level that cannot be reached from the level above leads nowhere; cities for pick-ups stand by themselves."""
    levels, names = carrier.levels, list(LEVELS)
    above = names[: names.index(request.level)]
    return request.level in levels and (
        PROVIDERS[request.provider].has_pickup_cities or all(name in levels for name in above)
    )


def _build_key(carrier: Carrier, request: AreaRequest) -> tuple[str, str, str]:
    """Where a list is stored. Cities for pick-ups are one list, whatever province is asked for."""
    is_one_list = PROVIDERS[request.provider].has_pickup_cities and request.level == "cities"
    parent = "" if is_one_list else request.parent or ""
    return carrier.name, request.level, parent


def _filter(areas: Sequence[CarrierArea], request: AreaRequest, search: str | None) -> list[CarrierArea]:
    """Those that are asked for, by name. A place without any places in it is one that nobody knows."""
    children = [area for area in areas if request.parent is None or str(area.parent_id) == request.parent]
    if request.parent is not None and not children:
        raise NotFound(f"{request.provider} knows no place with the id {request.parent}")
    folded = fold(search or "")
    return sorted((area for area in children if folded in fold(area.name)), key=lambda area: (area.name, str(area.id)))
