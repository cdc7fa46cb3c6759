"""Which areas a provider serves: fetched from its carrier and cached, or read from the installation's dictionary if the
carrier has no list."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from typing import cast

import msgspec
from msgspec import Raw, Struct

from sapa.context import AppContext
from sapa.db.pool import Connection
from sapa.http.errors import ApiError, Invalid, NotFound
from sapa.shipping.areas import queries
from sapa.shipping.areas.search import (
    build_query,
    build_tolerant_query,
    has_distance_of_one,
    is_tolerant,
    list_spellings,
    parse_terms,
    search_places,
    split_words,
)
from sapa.shipping.areas.types import LEVELS, AreaRequest
from sapa.shipping.carriers.interface import (
    AreaPath,
    BadCredentials,
    Carrier,
    CarrierArea,
    CarrierAway,
    Level,
)
from sapa.shipping.carriers.registry import CARRIERS
from sapa.shipping.connections.actions import find_adapter, get_carrier, record_health
from sapa.shipping.connections.types import ConnectedCarrier
from sapa.shipping.environment import get_environment
from sapa.shipping.errors import CarrierUnavailable
from sapa.shipping.providers import LOCATED_BY_AREAS, PROVIDERS
from sapa.shipping.types import Party, StoredShipment, build_area, read_party
from sapa.values.company import Company
from sapa.values.json import encode
from sapa.values.text_folding import fold

MAX_AGE_DAYS = 90
"""How long a cached list is used while the carrier is away."""

ANSWER_SECONDS = 9.0
ABBREVIATIONS = {"kab": "kabupaten", "kec": "", "kel": "", "di": "daerah istimewa", "dki": "daerah khusus ibukota"}
"""How carriers shorten the words before a name."""
LISTS_AT_ONCE = 4
_LONGEST_CODE = 10
_AREA_FIELDS = ("kelurahan", "kecamatan", "city", "province")
_AREA_IDS = ("province_id", "city_id", "district_id", "sub_district_id")
_decode = msgspec.json.Decoder(list[CarrierArea]).decode
_decode_lists = msgspec.json.Decoder(dict[int, list[CarrierArea]]).decode


SubDistricts = Mapping[str, tuple[int | None, int | None]]
"""Both ends of a shipment: the field of the sub-district, with the ids of district and sub-district."""

CoverageLists = Mapping[int, Sequence[CarrierArea]]
"""The sub-districts of some districts."""


class CoverageState(Struct, frozen=True):
    """Which carrier to fetch from, and what the cache has."""

    connected: ConnectedCarrier | None
    """None if the dictionary is used."""
    areas: list[CarrierArea] | None = None
    fresh_seconds: float = 0.0
    """For how long the cached list is still fresh."""


class CoverageList(Struct, frozen=True):
    """Areas by name, and for how long they stay the same: 0 if that is not known."""

    areas: list[CarrierArea]
    fresh_seconds: float


async def list_coverage(
    context: AppContext, company: Company, request: AreaRequest, search: str | None
) -> list[CarrierArea]:
    """Sorted by name. Raises NotFound for an unknown parent."""
    return (await list_timed_coverage(context, company, request, search)).areas


async def list_timed_coverage(
    context: AppContext, company: Company, request: AreaRequest, search: str | None
) -> CoverageList:
    """Like `list_coverage`."""
    async with context.database.connection() as db:
        coverage = await _get_coverage(context, db, company, request)
    if coverage.fresh_seconds <= 0 and coverage.connected is not None:
        response = await _ask(coverage.connected, request)
        async with context.database.connection() as db:
            coverage = await _save_response(db, company, coverage, request, response)
    return CoverageList(_filter(coverage.areas or [], request, search), max(0.0, coverage.fresh_seconds))


async def search(context: AppContext, company: Company, provider: str, text: str, limit: int) -> list[AreaPath]:
    """Sub-districts by words of any level, the best matches first, with the ids that the provider uses."""
    if (places := get_environment(company).list_places(provider)) is not None:
        return search_places(places, text, limit)
    async with context.database.connection() as db:
        found = await _search_dictionary(db, parse_terms(text), limit)
        if not found and not await queries.has_areas(db):
            raise Invalid.field("q", "cannot be searched yet; the operator imports area data with `sapa areas import`")
        adapter = None if PROVIDERS[provider].is_local else await find_adapter(db, company, provider)
    request = AreaRequest(provider, "sub-districts", None)
    if adapter is None or not _has_list(CARRIERS[adapter], request):
        return found
    return await _list_at_carrier(context, company, provider, found)


async def is_searchable(db: Connection, company: Company) -> bool:
    """Whether a search has areas to look through."""
    has_places = get_environment(company).list_places(LOCATED_BY_AREAS) is not None
    return has_places or await queries.has_areas(db)


async def list_names(
    db: Connection, company: Company, district_id: int, sub_district_id: int | None
) -> Sequence[str | None]:
    """From the sub-district to the province, by the ids that parcels have; empty if the district is not known."""
    places = get_environment(company).list_places(LOCATED_BY_AREAS) or ()
    return (
        _find_place_names(places, district_id, sub_district_id)
        or await queries.find_names(db, district_id, sub_district_id)
        or await queries.find_served_names(db, company.id, LOCATED_BY_AREAS, district_id, sub_district_id)
    )


async def _search_dictionary(db: Connection, terms: Sequence[str], limit: int) -> list[AreaPath]:
    """As it is written; if nothing is found, with one edit in each word."""
    if not terms:
        return []
    if found := await queries.search(db, build_query(terms), limit):
        return found
    spellings = {spelling for term in terms if is_tolerant(term) for spelling in list_spellings(term)}
    similar = await queries.list_similar(db, list(spellings)) if spellings else []
    return await queries.search(db, build_tolerant_query(terms, similar), limit) if similar else []


async def _list_at_carrier(
    context: AppContext, company: Company, provider: str, places: Sequence[AreaPath]
) -> list[AreaPath]:
    """The same places with the carrier's own ids, by their names; those that it does not serve are left out."""
    served: list[tuple[AreaPath, list[int | str]]] = [(place, []) for place in places]
    for number, level in enumerate(LEVELS, start=1):
        parents = {str(ids[-1]) if ids else None for _, ids in served}
        requests = {parent: AreaRequest(provider, cast(Level, level), parent) for parent in parents}
        lists = await _fetch_lists(context, company, requests)
        served = [
            (place, [*ids, area.id])
            for place, ids in served
            if (area := find_by_name(lists[str(ids[-1]) if ids else None], place.names[-number]))
        ]
    return [msgspec.structs.replace(place, **dict(zip(_AREA_IDS, ids, strict=True))) for place, ids in served]


async def _fetch_lists(
    context: AppContext, company: Company, requests: Mapping[str | None, AreaRequest]
) -> dict[str | None, list[CarrierArea]]:
    """From the cache, and a few at a time from the carrier."""
    slots = asyncio.Semaphore(LISTS_AT_ONCE)

    async def fetch(request: AreaRequest) -> list[CarrierArea]:
        async with slots:
            try:
                return await list_coverage(context, company, request, None)
            except NotFound:
                return []

    try:
        async with asyncio.TaskGroup() as group:
            tasks = {parent: group.create_task(fetch(request)) for parent, request in requests.items()}
    except* ApiError as errors:
        raise errors.exceptions[0] from None
    return {parent: task.result() for parent, task in tasks.items()}


def find_by_name(areas: Sequence[CarrierArea], name: str) -> CarrierArea | None:
    """Carriers spell a name a little differently: `Kota Bandung`, `Bandung`, `Kab. Bandung`."""
    by_name = {simplify(area.name): area for area in areas}
    wanted = simplify(name)
    exact = by_name.get(wanted) or by_name.get(wanted.removeprefix("kota ").removeprefix("kabupaten "))
    close = [] if exact else [area for known, area in by_name.items() if has_distance_of_one(known, wanted)]
    return exact or (close[0] if len(close) == 1 else None)


def simplify(name: str) -> str:
    words = [ABBREVIATIONS.get(word, word) for word in split_words(name)]
    return " ".join(" ".join(words).split())


async def check_sub_districts(
    db: Connection, company: Company, adapter: str, ends: SubDistricts, cached: CoverageLists | None = None
) -> None:
    """Raises Invalid if a sub-district is not in its district; passes if the district's list is not cached. The caller
    may have read the cached lists already."""
    districts = list_districts(ends)
    if not districts:
        return
    coverage = await _list_sub_districts(db, company, CARRIERS[adapter], districts, cached)
    for field, (district_id, sub_district_id) in ends.items():
        areas = coverage.get(district_id or 0) if sub_district_id is not None else None
        if areas and str(sub_district_id) not in {str(area.id) for area in areas}:
            raise Invalid.field(
                field,
                f"{sub_district_id} is not a sub-district of the district {district_id};"
                f" /shipping/coverage/sub-districts?districtId={district_id} lists them",
            )


def lists_sub_districts(adapter: str) -> bool:
    """Whether the carrier has a list of sub-districts, so that ids are its own."""
    carrier = CARRIERS[adapter]
    return _has_list(carrier, AreaRequest(carrier.provider, "sub-districts", None))


def decode_lists(lists: Raw | None) -> CoverageLists:
    """The part SUB_DISTRICTS as a JSON object: the areas by their district."""
    return {} if lists is None else _decode_lists(lists)


def list_districts(ends: SubDistricts) -> set[int]:
    """The districts whose sub-districts are checked."""
    return {district for district, sub_district in ends.values() if district is not None and sub_district is not None}


async def _list_sub_districts(
    db: Connection, company: Company, carrier: Carrier, district_ids: Collection[int], cached: CoverageLists | None
) -> CoverageLists:
    """By district, without calling the carrier: from the dictionary, the environment or the cache."""
    level: Level = "sub-districts"
    if not _has_list(carrier, AreaRequest(carrier.provider, level, None)):
        return {id: await queries.list_areas(db, LEVELS[level], id) for id in district_ids}
    environment = get_environment(company)
    found = {id: areas for id in district_ids if (areas := environment.find_sub_districts(id)) is not None}
    others = [id for id in district_ids if id not in found]
    if cached is not None:
        return found | {id: cached[id] for id in others if id in cached}
    if others:
        lists = await queries.list_cached(db, company.id, carrier.name, level, list(map(str, others)), MAX_AGE_DAYS)
        found |= {int(parent): _decode(areas) for parent, areas in lists.items()}
    return found


async def locate(
    db: Connection, company: Company, shipment: StoredShipment, ends: Mapping[str, Party]
) -> StoredShipment:
    """Checks the changed ends against the areas of the carrier that serves the provider, as far as they are cached, and
    names the receiver's area. Raises Invalid."""
    ids = {f"{field}.kelurahanId": (party.kecamatan_id, party.kelurahan_id) for field, party in ends.items()}
    districts, receiver = [str(id) for id in list_districts(ids)], ids.get("delivery.kelurahanId", (None, None))
    found = await queries.locate(db, company.id, shipment.provider, districts, MAX_AGE_DAYS, receiver)
    adapter = found.adapter or get_environment(company).find_adapter(shipment.provider)
    has_lists = adapter is not None and lists_sub_districts(adapter)
    if adapter is not None:
        lists = decode_lists(found.sub_districts) if has_lists else None
        await check_sub_districts(db, company, adapter, ids, lists)
    if not has_lists or get_environment(company).list_places(shipment.provider) is not None:
        return await with_area(db, company, shipment, adapter)
    if shipment.area is not None or "delivery" not in ends:
        return shipment
    return msgspec.structs.replace(shipment, area=build_area(_with_names(ends["delivery"], found.names)))


async def with_area(db: Connection, company: Company, shipment: StoredShipment, adapter: str | None) -> StoredShipment:
    """The shipment with its area if the receiver has it by ids only; the ids are those of the adapter's carrier."""
    if shipment.area is not None or shipment.delivery is None:
        return shipment
    located = msgspec.structs.replace(shipment, adapter=adapter)
    party = await with_area_names(db, company, located, read_party(shipment.delivery))
    return msgspec.structs.replace(shipment, area=build_area(party))


async def with_area_names(db: Connection, company: Company, shipment: StoredShipment, party: Party) -> Party:
    """A party with the names of the areas that it has by their ids only, as far as they are known here."""
    if party.kecamatan_id is None or party.city:
        return party
    names = await _list_names(db, company, shipment, party.kecamatan_id, party.kelurahan_id)
    return _with_names(party, names)


def _with_names(party: Party, names: Sequence[str | None]) -> Party:
    """Only what the party does not have itself."""
    missing = {field: name for field, name in zip(_AREA_FIELDS, names, strict=False) if not getattr(party, field)}
    return msgspec.structs.replace(party, **missing)


async def _list_names(
    db: Connection, company: Company, shipment: StoredShipment, district_id: int, sub_district_id: int | None
) -> Sequence[str | None]:
    """From the sub-district to the province, without calling the carrier. A shipment without a carrier may have the ids
    of the dictionary, or those that the provider for parcels uses."""
    places = get_environment(company).list_places(shipment.provider) or ()
    if found := _find_place_names(places, district_id, sub_district_id):
        return found
    if shipment.adapter is not None and lists_sub_districts(shipment.adapter):
        return await queries.find_cached_names(db, company.id, shipment.adapter, district_id, sub_district_id)
    names = await queries.find_names(db, district_id, sub_district_id)
    if names or shipment.adapter is not None:
        return names
    return await queries.find_served_names(db, company.id, LOCATED_BY_AREAS, district_id, sub_district_id)


def _find_place_names(
    places: Sequence[AreaPath], district_id: int, sub_district_id: int | None
) -> Sequence[str | None]:
    in_district = [place for place in places if place.district_id == district_id]
    exact = next((place for place in in_district if place.sub_district_id == sub_district_id), None)
    if exact is not None:
        return exact.names
    return [None, *in_district[0].names[1:]] if in_district else []


async def _get_coverage(context: AppContext, db: Connection, company: Company, request: AreaRequest) -> CoverageState:
    connected = (
        None if PROVIDERS[request.provider].is_local else await get_carrier(context, db, company, request.provider)
    )
    if connected is None or not _has_list(connected.carrier, request):
        return CoverageState(None, await _list_from_dictionary(db, request))
    days = get_environment(company).coverage_days
    cached = await queries.find_cached(db, company.id, *_build_key(connected.carrier, request), days, MAX_AGE_DAYS)
    if cached is None:
        return CoverageState(connected)
    return CoverageState(connected, _decode(cached.areas), cached.fresh_seconds)


async def _list_from_dictionary(db: Connection, request: AreaRequest) -> list[CarrierArea]:
    if not await queries.has_areas(db):
        raise Invalid.field(
            "provider",
            f"{request.provider} has no list of {request.level}; import area data with `sapa areas import`",
        )
    parent = request.parent or "0"
    is_code = parent.isdigit() and len(parent) <= _LONGEST_CODE
    return await queries.list_areas(db, LEVELS[request.level], int(parent)) if is_code else []


async def _ask(connected: ConnectedCarrier, request: AreaRequest) -> list[CarrierArea] | str:
    """The carrier's areas, or why there are none."""
    _, _, parent = _build_key(connected.carrier, request)
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            return list(await connected.carrier.list_areas(connected.connection, request.level, parent or None, None))
    except (CarrierAway, BadCredentials, TimeoutError) as error:
        return str(error) or "it did not respond in time"


async def _save_response(
    db: Connection, company: Company, coverage: CoverageState, request: AreaRequest, response: list[CarrierArea] | str
) -> CoverageState:
    """Caches the carrier's areas; if it is away, the cached list is returned even if it is stale."""
    connected = coverage.connected
    if connected is None or (isinstance(response, str) and coverage.areas is not None):
        return coverage
    if isinstance(response, str):
        await record_health(db, company.id, connected.connection.id, response)
        raise CarrierUnavailable(f"{connected.carrier.label} did not return its areas: {response}.")
    if response:
        await queries.save_coverage(db, company.id, *_build_key(connected.carrier, request), encode(response))
    return CoverageState(connected, response)


def _has_list(carrier: Carrier, request: AreaRequest) -> bool:
    """A level needs the levels above it, except pickup cities, which have no province."""
    levels, names = carrier.levels, list(LEVELS)
    above = names[: names.index(request.level)]
    return request.level in levels and (
        PROVIDERS[request.provider].has_pickup_cities or all(name in levels for name in above)
    )


def _build_key(carrier: Carrier, request: AreaRequest) -> tuple[str, str, str]:
    """The cache key. Pickup cities are one list, whatever the province."""
    is_one_list = PROVIDERS[request.provider].has_pickup_cities and request.level == "cities"
    parent = "" if is_one_list else request.parent or ""
    return carrier.name, request.level, parent


def _filter(areas: Sequence[CarrierArea], request: AreaRequest, search: str | None) -> list[CarrierArea]:
    """Filters by parent and search text. A parent without children is unknown."""
    children = [area for area in areas if request.parent is None or str(area.parent_id) == request.parent]
    if request.parent is not None and not children:
        raise NotFound(f"{request.provider} has no area with the id {request.parent}")
    folded = fold(search or "")
    return sorted((area for area in children if folded in fold(area.name)), key=lambda area: (area.name, str(area.id)))
