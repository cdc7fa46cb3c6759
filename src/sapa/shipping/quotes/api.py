"""How quotes are reached."""

from sapa.access.types import Scope
from sapa.http.endpoints import Base, Routes
from sapa.http.errors import Unauthorized
from sapa.http.outbound_call import OutboundCall
from sapa.shipping.connections.types import ProviderNotConnected
from sapa.shipping.errors import CarrierUnavailable
from sapa.shipping.quotes import actions
from sapa.shipping.quotes.types import QuoteAnswer, QuoteIn, build_answer

routes = Routes("/shipping", base=Base.CUSTOMER, tag="Shipping", product="CRM", refusal=Unauthorized)


@routes.post(
    "/calculate-fee",
    scope=Scope.ORDERS_READ,
    status=200,
    raises=[ProviderNotConnected, CarrierUnavailable],
    is_cached=True,
)
async def quote_shipping(call: OutboundCall, body: QuoteIn) -> QuoteAnswer:
    """Get the price of a shipment.

    The options of all providers have the same shape. If nothing is offered, `options` is empty and `messages` say why
    and how to fix it. aggregator_carrier needs `districtId` and `subDistrictId` at both ends, instant_carrier and
    ev_courier need `coordinates`, ev_courier also a `pickupCity`. Prices are cached for a few minutes.
    """
    quote = await actions.quote(call.context, call.company, body)
    if quote.seconds_left > 0:
        call.cache_seconds = quote.seconds_left
    return build_answer(quote.result)
