"""How the settings of the tracking pages are reached."""

from sapa.access.types import Scope
from sapa.http.endpoints import Base, Call, Routes
from sapa.http.errors import Unauthorized
from sapa.shipping.tracking_page import actions
from sapa.shipping.tracking_page.types import TrackingPageSettings, TrackingPageSettingsIn

routes = Routes("/shipping", base=Base.CUSTOMER, tag="Shipping", product="CRM", refusal=Unauthorized)


@routes.get("/tracking-page", scope=Scope.ORDERS_READ)
async def get_tracking_page_settings(call: Call) -> TrackingPageSettings:
    """Get the settings of the public tracking pages."""
    return await actions.get_settings(call.db, call.company)


@routes.put("/tracking-page", scope=Scope.ORDERS_WRITE)
async def update_tracking_page_settings(call: Call, body: TrackingPageSettingsIn) -> TrackingPageSettings:
    """Change the settings of the public tracking pages.

    Every shipment has a page at its `trackingPage`. It shows your name, colour and logo, the steps of the delivery and
    the city, in Bahasa Indonesia or English, and no other personal data.
    """
    return await actions.save_settings(call.db, call.company, body)
