"""Which step a change of status is, and what fills a template. Pure: no database."""

from collections.abc import Mapping

from sapa.customers.types import CustomerRef
from sapa.notifications.types import NotificationRule, ParamName, Step
from sapa.shipping.shipments.actions import name_courier
from sapa.shipping.states import GROUP_OF, GROUPS, Status
from sapa.shipping.types import NO_PARTY, Party, StoredShipment, read_party

STATUSES: Mapping[Step, tuple[Status, ...]] = {
    "booked": GROUPS["accepted"],
    "picked_up": ("picked_up", "in_transit"),
    "out_for_delivery": ("out_for_delivery",),
    "on_hold": ("on_hold",),
    "delivery_failed": ("delivery_failed",),
    "delivered": ("delivered",),
    "returning": ("returning",),
    "returned": ("returned",),
}
"""The statuses of each step. A step is news while the parcel has one of them."""

WORDS: Mapping[str, Mapping[Step, str]] = {
    "id": {
        "booked": "sedang disiapkan",
        "picked_up": "sudah dijemput kurir",
        "out_for_delivery": "sedang diantar",
        "on_hold": "tertahan",
        "delivery_failed": "gagal diantar",
        "delivered": "sudah diterima",
        "returning": "sedang dikembalikan",
        "returned": "sudah kembali ke pengirim",
    },
    "en": {
        "booked": "being prepared",
        "picked_up": "picked up by the courier",
        "out_for_delivery": "out for delivery",
        "on_hold": "on hold",
        "delivery_failed": "could not be delivered",
        "delivered": "delivered",
        "returning": "on its way back",
        "returned": "back at the sender",
    },
}
NOTHING = "-"
"""For a parameter without a value: a template takes no blank one."""


def find_step(before: str, after: str) -> Step | None:
    """The step that a parcel takes with this change; None within a step and for changes that are no news."""
    step = next((step for step, statuses in STATUSES.items() if after in statuses), None)
    if step is None or before in STATUSES[step]:
        return None
    is_first_booking = GROUP_OF[before] in {"pending", "cancelled", "failed"}
    return step if step != "booked" or is_first_booking else None


def is_current(step: Step, status: str) -> bool:
    """Whether the parcel is still at this step."""
    return status in STATUSES[step]


def build_params(
    rule: NotificationRule, shipment: StoredShipment, receiver: Party, shop: str, order_number: str | None, page: str
) -> list[str]:
    words = WORDS["en" if (rule.language or "id").startswith("en") else "id"]
    values: Mapping[ParamName, str | None] = {
        "name": receiver.name,
        "orderNumber": order_number,
        "awb": shipment.awb or shipment.order_no,
        "courier": name_courier(shipment),
        "service": shipment.service_name,
        "city": receiver.city,
        "status": words[rule.step],
        "shop": shop,
        "trackingUrl": page,
    }
    return [values[name] or NOTHING for name in rule.params]


def choose_addresses(shipment: StoredShipment, customer: CustomerRef | None) -> tuple[str | None, str | None]:
    """The phone number and e-mail address to write to: the order's customer's, else the receiver's."""
    receiver = NO_PARTY if shipment.delivery is None else read_party(shipment.delivery)
    if customer is not None and (customer.phone_number or customer.email):
        return customer.phone_number, customer.email
    return receiver.phone, receiver.email
