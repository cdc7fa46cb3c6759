"""How notifications are set up and read."""

from sapa.access.types import Scope
from sapa.http.endpoints import Base, Call, Routes
from sapa.http.errors import Unauthorized
from sapa.messaging.templates.types import TemplateNotFound, TemplateParamsMismatch
from sapa.notifications import actions
from sapa.notifications.types import NotificationSettings, NotificationSettingsIn, ShipmentNotification
from sapa.shipping.errors import ShipmentNotFound
from sapa.shipping.types import ShipmentId

routes = Routes("/shipping", base=Base.CUSTOMER, tag="Shipping", product="CRM", refusal=Unauthorized)


@routes.get("/notifications", scope=Scope.ORDERS_READ)
async def get_shipping_notification_settings(call: Call) -> NotificationSettings:
    """Get which steps of a parcel customers are notified of."""
    return await actions.get_settings(call.db, call.company)


@routes.put("/notifications", scope=Scope.ORDERS_WRITE, raises=[TemplateNotFound, TemplateParamsMismatch])
async def update_shipping_notification_settings(call: Call, body: NotificationSettingsIn) -> NotificationSettings:
    """Choose which steps of a parcel customers are notified of.

    Each step has a template and, in `params`, what fills its parameters. The message goes to the customer of the order,
    else to the receiver, once for each step. A step that the parcel has left by then, or that the carrier reported more
    than 12 hours late, is skipped. So is a MARKETING template for a customer who did not subscribe, unless
    `automaticMarketing` of the consent settings says otherwise, and a channel whose reply window is closed.
    """
    return await actions.save_settings(call.db, call.company, body)


@routes.get("/shipments/{id}/notifications", scope=Scope.ORDERS_READ, raises=[ShipmentNotFound])
async def list_shipment_notifications(call: Call, id: ShipmentId) -> list[ShipmentNotification]:
    """List the steps of a shipment that the customer was notified of, or why not."""
    return await actions.list_notifications(call.db, call.company, id)
