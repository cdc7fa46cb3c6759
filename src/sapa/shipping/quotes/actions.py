"""Quotes: requested from the provider's carrier within five seconds, and cached for some minutes."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from hashlib import sha256

import msgspec
from msgspec import Struct

from sapa.context import AppContext
from sapa.db.group_commit import GroupCommit
from sapa.db.pool import Connection, Database, Tx
from sapa.shipping.areas import actions as areas
from sapa.shipping.areas.types import AreaRequest
from sapa.shipping.carriers.interface import (
    BadCredentials,
    CarrierAway,
    Parcel,
    Quote,
    QuoteNote,
    ServiceOffer,
    ShipmentRequest,
)
from sapa.shipping.carriers.offers import explain_cash
from sapa.shipping.connections.actions import find_cached_carrier, get_carrier, open_cached, record_health
from sapa.shipping.connections.types import CachedCarrier, ConnectedCarrier
from sapa.shipping.errors import CarrierUnavailable
from sapa.shipping.providers import PROVIDERS
from sapa.shipping.quotes import queries
from sapa.shipping.quotes.queries import NewQuote
from sapa.shipping.quotes.requests import build_key, build_request
from sapa.shipping.quotes.types import (
    EncodedQuote,
    QuoteIn,
    QuoteMessage,
    QuoteOption,
    QuoteResult,
    encode_options,
)
from sapa.shipping.shipments.validation import get_pickup_city
from sapa.shipping.weights import build_chargeable_kg, build_volumetric_kg, get_divisor
from sapa.values.company import Company
from sapa.values.json import encode

ANSWER_SECONDS = 4.7
"""In total, so that a response is sent within five seconds."""

EXPRESS_MINUTES, INSTANT_MINUTES = 30, 5
PURGE_BATCH = 5_000

_decode = msgspec.json.Decoder(EncodedQuote).decode


class QuoteLookup(Struct, frozen=True):
    """A request, the carrier to price it, and its cache key."""

    connected: ConnectedCarrier
    request: ShipmentRequest
    key: bytes


class TimedQuote(Struct, frozen=True):
    """A quote, and for how many seconds it stays cached: 0 if it is not."""

    result: QuoteResult | EncodedQuote
    seconds_left: float = 0.0


async def quote(context: AppContext, company: Company, body: QuoteIn) -> TimedQuote:
    """Without an offer there is at least one message; raises CarrierUnavailable if the carrier does not respond."""
    request = build_request(company, body)
    if PROVIDERS[body.provider].is_local:
        message = f"{body.provider} has no price list. Send your own fee when you create the shipment."
        return TimedQuote(_build_refusal(request, body.provider, "no_price_list", message))
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            return await _quote(context, company, body, request)
    except TimeoutError:
        raise CarrierUnavailable(f"The carrier of {body.provider} did not respond in time. Try again.") from None


async def _quote(context: AppContext, company: Company, body: QuoteIn, request: ShipmentRequest) -> TimedQuote:
    cached = find_cached_carrier(company, body.provider)
    async with context.database.connection() as db:
        found = None
        if cached is not None:
            found = await _look_up_account(context, db, company, body.provider, cached, request)
        if found is None:
            found = await _look_up(context, db, company, body.provider, request)
    if isinstance(found, TimedQuote):
        return found
    if PROVIDERS[body.provider].has_pickup_cities:
        request = await _with_pickup_city(context, company, body.provider, request)
        found = msgspec.structs.replace(found, request=request)
    return await _ask(context, company, found)


async def _look_up_account(
    context: AppContext,
    db: Connection,
    company: Company,
    provider: str,
    cached: CachedCarrier,
    request: ShipmentRequest,
) -> TimedQuote | QuoteLookup | None:
    """With one statement; None if the cached account is not the provider's any more."""
    key, ends = _hash_key(cached.adapter, cached.id, request), _list_ends(request)
    has_lists = areas.lists_sub_districts(cached.adapter)
    districts = [str(id) for id in areas.list_districts(ends)] if has_lists else []
    stored = await queries.look_up(db, company.id, key, provider, cached, districts, areas.MAX_AGE_DAYS)
    if stored is None:
        return None
    if stored.quote is not None:
        return TimedQuote(_decode(stored.quote), stored.seconds_left or 0.0)
    lists = areas.decode_lists(stored.sub_districts) if has_lists else None
    await areas.check_sub_districts(db, company, cached.adapter, ends, lists)
    return QuoteLookup(await open_cached(context, company, cached, stored.has_error), request, key)


async def _look_up(
    context: AppContext, db: Connection, company: Company, provider: str, request: ShipmentRequest
) -> TimedQuote | QuoteLookup:
    connected = await get_carrier(context, db, company, provider)
    key = _hash_key(connected.carrier.name, connected.connection.id, request)
    if (cached := await queries.find_quote(db, company.id, key)) is not None:
        return TimedQuote(_decode(cached.quote), cached.seconds_left)
    await areas.check_sub_districts(db, company, connected.carrier.name, _list_ends(request))
    return QuoteLookup(connected, request, key)


def _hash_key(adapter: str, connection_id: str, request: ShipmentRequest) -> bytes:
    return sha256(build_key(adapter, connection_id, request)).digest()


def _list_ends(request: ShipmentRequest) -> areas.SubDistricts:
    return {
        f"{field}.subDistrictId": (point.kecamatan_id, point.kelurahan_id)
        for field, point in (("origin", request.origin), ("destination", request.destination))
    }


async def _with_pickup_city(
    context: AppContext, company: Company, provider: str, request: ShipmentRequest
) -> ShipmentRequest:
    """Replaces the city by the carrier's own name for it."""
    cities = await areas.list_coverage(context, company, AreaRequest(provider, "cities", None), None)
    city = get_pickup_city("options.pickupCity", PROVIDERS[provider], request.service.pickup_city, cities)
    return msgspec.structs.replace(request, service=msgspec.structs.replace(request.service, pickup_city=city.name))


async def _ask(context: AppContext, company: Company, lookup: QuoteLookup) -> TimedQuote:
    carrier, connection = lookup.connected.carrier, lookup.connected.connection
    wanted = lookup.request.service.service_type
    if wanted is not None and wanted not in carrier.service_types:
        message = f"{carrier.provider} does not offer {wanted}. Use {' or '.join(carrier.service_types)}."
        return TimedQuote(_build_refusal(lookup.request, carrier.provider, "service_type_not_offered", message))
    try:
        quote = await carrier.quote(connection, lookup.request)
    except (CarrierAway, BadCredentials) as error:
        async with context.database.connection() as db:
            await record_health(db, company.id, connection.id, str(error))
        raise CarrierUnavailable(f"{carrier.label} returned no prices: {error}.") from None
    result = build_result(lookup, quote)
    if lookup.connected.has_error:
        async with context.database.connection() as db:
            await record_health(db, company.id, connection.id, None)
    if not result.options:
        return TimedQuote(result)
    minutes = _minutes(result)
    encoded = encode_options(result)
    await QUOTES.run(context.database, company.id, NewQuote(lookup.key, encode(encoded), minutes))
    return TimedQuote(encoded, minutes * 60)


async def _save(tx: Tx, company_id: int, quotes: Sequence[NewQuote]) -> list[None]:
    """In the order of their keys, so that two processes cannot wait for each other."""
    by_key = {each.key: each for each in quotes}
    await queries.save_quotes(tx, company_id, [by_key[key] for key in sorted(by_key)])
    return [None] * len(quotes)


QUOTES = GroupCommit(_save, lambda new: new.key, is_one_statement=True)
"""New quotes of a company that arrive together are stored by one statement."""


def build_result(lookup: QuoteLookup, quote: Quote) -> QuoteResult:
    """The offers, cheapest first, and messages that explain missing ones."""
    notes, offers = list(quote.notes), quote.offers
    amount = lookup.request.service.cod_amount
    if amount is not None:
        offers = [offer for offer in offers if offer.collects(amount)]
        notes += _explain_omitted([offer for offer in quote.offers if not offer.collects(amount)])
    if not offers and not notes:
        message = "No service is offered for this route and parcel. Try another service type, weight or provider."
        notes.append(QuoteNote(lookup.connected.carrier.name, "no_service", message))
    parcel = lookup.request.parcel
    weights = _build_weights(parcel, {offer.courier for offer in offers if offer.service_type == "EXPRESS"})
    options = [_build_option(offer, weights) for offer in offers]
    options.sort(key=lambda option: (option.price, option.service_code))
    messages = [QuoteMessage(note.courier, note.code, note.text) for note in notes]
    return QuoteResult(options, messages, _measure_volume(parcel))


def _build_refusal(request: ShipmentRequest, courier: str, code: str, message: str) -> QuoteResult:
    return QuoteResult([], [QuoteMessage(courier, code, message)], _measure_volume(request.parcel))


def _measure_volume(parcel: Parcel, courier: str = "") -> Decimal | None:
    return build_volumetric_kg(parcel.length, parcel.width, parcel.height, courier)


def _build_weights(parcel: Parcel, couriers: Collection[str]) -> dict[str, Decimal]:
    """What each courier charges for. Most have the same divisor."""
    one_of_each = {get_divisor(courier): courier for courier in couriers}
    charged = {
        divisor: build_chargeable_kg(parcel.weight, _measure_volume(parcel, courier))
        for divisor, courier in one_of_each.items()
    }
    return {courier: charged[get_divisor(courier)] for courier in couriers}


def _explain_omitted(offers: Sequence[ServiceOffer]) -> list[QuoteNote]:
    """Why services do not collect the requested cash."""
    notes = [QuoteNote(offer.courier, "cod_out_of_range", f"{explain_cash(offer)}.") for offer in offers if offer.cod]
    if names := ", ".join(offer.service_name for offer in offers if not offer.cod):
        message = f"No cash on delivery: {names}. Without codAmount they are offered."
        notes.append(QuoteNote(offers[0].courier, "cod_not_offered", message))
    return notes


def _build_option(offer: ServiceOffer, weights: Mapping[str, Decimal]) -> QuoteOption:
    """`weights` are what couriers of parcels charge for."""
    return QuoteOption(
        service_code=offer.service_code,
        service_name=offer.service_name,
        service_type=offer.service_type,
        courier=offer.courier,
        price=offer.price,
        currency=offer.currency,
        estimate=offer.estimate,
        insurance_fee=offer.insurance_fee,
        insurance_required=offer.insurance_required,
        cod=offer.cod,
        cod_minimum=None if offer.cod_limits is None else offer.cod_limits.least,
        cod_maximum=None if offer.cod_limits is None else offer.cod_limits.most,
        cod_fee=offer.cod_fee,
        distance=offer.distance,
        vehicle_type=offer.vehicle_type,
        package_handover=list(offer.package_handover),
        chargeable_weight=weights.get(offer.courier) if offer.service_type == "EXPRESS" else None,
    )


def _minutes(result: QuoteResult) -> int:
    """Prices of instant services change by the minute."""
    is_express = all(option.service_type == "EXPRESS" for option in result.options)
    return EXPRESS_MINUTES if is_express else INSTANT_MINUTES


async def purge_expired(database: Database) -> None:
    """In small batches, so that no delete runs long."""
    purged = PURGE_BATCH
    while purged == PURGE_BATCH:
        async with database.transaction() as tx:
            purged = await queries.purge_expired(tx, PURGE_BATCH)
