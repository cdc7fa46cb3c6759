"""The tables that connect the rooms: ports and subscriptions. Without routes and jobs, which commands do not need."""

from typing import Any

from sapa.access.types import ManagementChange
from sapa.customers.subscriptions import CONSENTS
from sapa.customers.types import CustomerRemoved, CustomerRenamed
from sapa.loyalty import actions as loyalty_actions
from sapa.loyalty.rewards import closing
from sapa.loyalty.types import ReservationsClosed
from sapa.messaging.channel_events.types import PreferenceReceived
from sapa.messaging.connections import environment as messaging_environment
from sapa.messaging.consents import actions as consent_actions
from sapa.messaging.tickets import TICKETS
from sapa.messaging.widget import visits as widget_visits
from sapa.notifications import actions as notification_actions
from sapa.orders import customer_copies
from sapa.orders.shipments import SHIPMENTS
from sapa.orders.types import OrderChanged, OrdersPlaced
from sapa.people import actions as people_actions
from sapa.pictures import actions as picture_actions
from sapa.ports import Port, Subscriptions, install_subscriptions
from sapa.products.types import ProductMediaChanged
from sapa.sandbox.carriers.environment import SandboxShipping
from sapa.sandbox.channels.environment import SandboxMessaging
from sapa.shipping import environment as shipping_environment
from sapa.shipping.events import CashCollected, CashParcelReturned, ShipmentStatusChanged
from sapa.shipping.settlements import actions as settlement_actions
from sapa.shipping.shipments import actions as shipment_actions
from sapa.support import actions as support_actions

PORTS: list[tuple[Port[Any], Any]] = [
    (TICKETS, support_actions),
    (CONSENTS, consent_actions),
    (SHIPMENTS, shipment_actions),
    (messaging_environment.TEST, SandboxMessaging()),
    (shipping_environment.TEST, SandboxShipping()),
]
"""Ports of lower rooms, each with the higher room's implementation."""

SUBSCRIPTIONS: Subscriptions = {
    CustomerRenamed: [customer_copies.rename_customer],
    CustomerRemoved: [loyalty_actions.forfeit, consent_actions.purge_customer, widget_visits.purge_customer],
    ProductMediaChanged: [picture_actions.follow_product],
    OrderChanged: [loyalty_actions.settle_order],
    OrdersPlaced: [loyalty_actions.settle_orders],
    CashCollected: [settlement_actions.record_collection],
    CashParcelReturned: [settlement_actions.record_return],
    PreferenceReceived: [consent_actions.apply_preference],
    ReservationsClosed: [closing.close_redemptions],
    ShipmentStatusChanged: [notification_actions.queue_step],
    ManagementChange: [people_actions.record_program],
}
"""Announcements of lower rooms, each with the subscribers that run in the same transaction, in this order."""


def install() -> None:
    """Connects the rooms. Every process calls it once before it uses an action: the app, the worker, the CLI, tests."""
    for port, implementation in PORTS:
        port.install(implementation)
    install_subscriptions(SUBSCRIPTIONS)
