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
from sapa.shipping.connections.actions import get_carrier, note_health
from sapa.shipping.connections.types import ConnectedCarrier
from sapa.shipping.environment import get_environment
from sapa.shipping.providers import PROVIDERS
from sapa.shipping.types import CarrierUnavailable, Party
from sapa.values.company import Company
from sapa.values.json import encode
from sapa.values.text_folding import fold

KEPT_DAYS = 90
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
    context: AppContext, company: Company, wanted: AreaRequest, search: str | None
) -> list[CarrierArea]:
    """The places by name; raises NotFound for a parent that nobody knows."""
    async with context.database.connection() as db:
        known = await _look(context, db, company, wanted)
    if not known.is_fresh and known.connected is not None:
        told = await _ask(known.connected, wanted)
        async with context.database.connection() as db:
            known = await _settle(db, company, known, wanted, told)
    return _choose(known.areas or [], wanted, search)


async def list_pickup_cities(
    context: AppContext, db: Connection, company: Company, provider: str
) -> Sequence[CarrierArea]:
    """The cities in which the provider fetches parcels. Not for use inside a transaction: the carrier may be asked."""
    wanted = AreaRequest(provider, "cities", None)
    known = await _look(context, db, company, wanted)
    if not known.is_fresh and known.connected is not None:
        known = await _settle(db, company, known, wanted, await _ask(known.connected, wanted))
    return known.areas or []


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
    known = await _list_known(db, company, CARRIERS[adapter], district_id)
    if known and str(sub_district_id) not in {str(area.id) for area in known}:
        raise Invalid.field(
            field,
            f"{sub_district_id} is no sub-district of the district {district_id};"
            f" /shipping/coverage/sub-districts?districtId={district_id} lists those that are",
        )


async def _list_known(db: Connection, company: Company, carrier: Carrier, district_id: int) -> Sequence[CarrierArea]:
    """The sub-districts of a district. No carrier is asked for them: what it told before is as good, or nothing is."""
    wanted = AreaRequest(carrier.provider, "sub-districts", str(district_id))
    if not _has_list(carrier, wanted):
        return await queries.list_areas(db, LEVELS[wanted.level], district_id)
    known = get_environment(company).find_sub_districts(district_id)
    if known is not None:
        return known
    cached = await queries.find_cached(db, company.id, *_place(carrier, wanted), KEPT_DAYS, KEPT_DAYS)
    return _decode(cached.areas) if cached else ()


async def _look(context: AppContext, db: Connection, company: Company, wanted: AreaRequest) -> CoverageState:
    connected = (
        None if PROVIDERS[wanted.provider].is_local else await get_carrier(context, db, company, wanted.provider)
    )
    if connected is None or not _has_list(connected.carrier, wanted):
        return CoverageState(None, await _list_from_dictionary(db, wanted), is_fresh=True)
    days = get_environment(company).coverage_days
    cached = await queries.find_cached(db, company.id, *_place(connected.carrier, wanted), days, KEPT_DAYS)
    return CoverageState(connected, _decode(cached.areas), cached.is_fresh) if cached else CoverageState(connected)


async def _list_from_dictionary(db: Connection, wanted: AreaRequest) -> list[CarrierArea]:
    if not await queries.has_areas(db):
        raise Invalid.field(
            "provider", f"{wanted.provider} has no list of {wanted.level}, and no area data was imported to stand in"
        )
    parent = wanted.parent or "0"
    is_code = parent.isdigit() and len(parent) <= _LONGEST_CODE
    return await queries.list_areas(db, LEVELS[wanted.level], int(parent)) if is_code else []


async def _ask(connected: ConnectedCarrier, wanted: AreaRequest) -> list[CarrierArea] | str:
    """What the carrier says, or why it says nothing."""
    _, _, parent = _place(connected.carrier, wanted)
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            return list(await connected.carrier.list_areas(connected.connection, wanted.level, parent or None, None))
    except (CarrierAway, BadCredentials, TimeoutError) as error:
        return str(error) or "there was no answer in time"


async def _settle(
    db: Connection, company: Company, known: CoverageState, wanted: AreaRequest, told: list[CarrierArea] | str
) -> CoverageState:
    """Keeps what the carrier said; when it is away, what it said before is as good as anything."""
    connected = known.connected
    if connected is None or (isinstance(told, str) and known.areas is not None):
        return known
    if isinstance(told, str):
        await note_health(db, company.id, connected.connection.id, told)
        raise CarrierUnavailable(f"{connected.carrier.label} could not say which places it serves: {told}.")
    if told:
        await queries.keep(db, company.id, *_place(connected.carrier, wanted), encode(told))
    return CoverageState(connected, told, is_fresh=True)


def _has_list(carrier: Carrier, wanted: AreaRequest) -> bool:
    """A level that cannot be reached from the level above leads nowhere; cities for pick-ups stand by themselves."""
    levels, names = carrier.levels, list(LEVELS)
    above = names[: names.index(wanted.level)]
    return wanted.level in levels and (
        PROVIDERS[wanted.provider].has_pickup_cities or all(name in levels for name in above)
    )


def _place(carrier: Carrier, wanted: AreaRequest) -> tuple[str, str, str]:
    """Where a list is stored. Cities for pick-ups are one list, whatever province is asked for."""
    is_one_list = PROVIDERS[wanted.provider].has_pickup_cities and wanted.level == "cities"
    parent = "" if is_one_list else wanted.parent or ""
    return carrier.name, wanted.level, parent


def _choose(areas: Sequence[CarrierArea], wanted: AreaRequest, search: str | None) -> list[CarrierArea]:
    """Those that are asked for, by name. A place without any places in it is one that nobody knows."""
    within = [area for area in areas if wanted.parent is None or str(area.parent_id) == wanted.parent]
    if wanted.parent is not None and not within:
        raise NotFound(f"{wanted.provider} knows no place with the id {wanted.parent}")
    folded = fold(search or "")
    return sorted((area for area in within if folded in fold(area.name)), key=lambda area: (area.name, str(area.id)))
