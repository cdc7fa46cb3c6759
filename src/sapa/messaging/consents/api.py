"""How consent is reached."""

from sapa.access.types import Scope
from sapa.http.endpoints import Base, Call, Routes
from sapa.http.errors import NotFound
from sapa.http.query_string import PageQuery
from sapa.http.responses import Page, build_page
from sapa.messaging.consents import actions
from sapa.messaging.consents.types import (
    Consent,
    ConsentIn,
    ConsentSettings,
    ConsentSettingsPatch,
    UnsubscribedByPerson,
)
from sapa.values.ids import CustomerId

routes = Routes("/customers", base=Base.CUSTOMER, tag="Customers")

settings_routes = Routes("/consent-settings", base=Base.CUSTOMER, tag="Customers")


@routes.get("/{id}/consents", scope=Scope.CUSTOMERS_READ, raises=[NotFound])
async def list_customer_consents(call: Call, id: CustomerId, query: PageQuery) -> Page[Consent]:
    """List what a customer decided about marketing messages.

    Newest first, with who recorded it and what proves it. It includes decisions about the numbers, addresses and ids
    that they use on channels. The decisions with `current` apply: a marketing template is sent only if none of those
    for CRM and for its channel is `unsubscribe`.
    """
    consents, total = await actions.list_for_customer(call.db, call.company, id, query.limit, query.offset)
    return build_page(consents, query.page, query.limit, total)


@routes.post("/{id}/consents", scope=Scope.CUSTOMERS_WRITE, raises=[NotFound, UnsubscribedByPerson])
async def record_customer_consent(call: Call, id: CustomerId, body: ConsentIn) -> Consent:
    """Record what a customer decided about marketing messages, with the proof.

    It also changes the customer's `subscriptionStatus`. A customer who unsubscribed in person (with STOP, the link of a
    mail, or in the channel's app) stays unsubscribed: only they can subscribe again, or a user of the console records
    the proof that they want to.
    """
    return await actions.record_for_customer(call.db, call.company, id, body, call.actor)


@settings_routes.get("", scope=Scope.CUSTOMERS_READ)
async def get_consent_settings(call: Call) -> ConsentSettings:
    """Get the words that unsubscribe people, the replies to them, and who gets automatic marketing messages."""
    return await actions.get_settings(call.db, call.company)


@settings_routes.put("", scope=Scope.CUSTOMERS_WRITE)
async def update_consent_settings(call: Call, body: ConsentSettingsPatch) -> ConsentSettings:
    """Change the words that unsubscribe people, the replies to them, and who gets automatic marketing messages.

    A field that you leave out keeps its value. STOP, UNSUBSCRIBE, BERHENTI, STOP PROMO, BATAL LANGGANAN and START
    always work.
    """
    return await actions.change_settings(call.db, call.company, body)
