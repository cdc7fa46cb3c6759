"""What shipments announce: to other rooms in the same transaction, and to webhooks."""

from sapa.events import Event
from sapa.ports import Announcement
from sapa.shipping.types import Shipment, StoredShipment
from sapa.values.api_base import Base


class CashCollected(Announcement, frozen=True):
    """A shipment was delivered and its cash collected; it is locked."""

    shipment: StoredShipment


class CashParcelReturned(Announcement, frozen=True):
    """A shipment came back although its cash had been reported as collected; it is locked."""

    shipment: StoredShipment


class ShipmentStatusChanged(Announcement, frozen=True):
    """A shipment was saved with another shippingStatus."""

    before: StoredShipment
    after: StoredShipment


class ShipmentCreated(Event):
    """A shipment was created."""

    kind = "shipment.created"
    base = Base.CUSTOMER
    resource_type = Shipment


class ShipmentUpdated(Event):
    """A shipment was updated."""

    kind = "shipment.updated"
    base = Base.CUSTOMER
    resource_type = Shipment


class ShipmentBooked(Event):
    """A carrier accepted a shipment."""

    kind = "shipment.booked"
    base = Base.CUSTOMER
    resource_type = Shipment


class ShipmentCancelled(Event):
    """A shipment was cancelled."""

    kind = "shipment.cancelled"
    base = Base.CUSTOMER
    resource_type = Shipment


class ShipmentStatusUpdated(Event):
    """A shipment's shippingStatus changed."""

    kind = "shipment.status.updated"
    base = Base.CUSTOMER
    resource_type = Shipment
