"""What can go wrong with a shipment."""

from sapa.http.errors import ApiError, Conflict, NotFound


class ShipmentNotFound(NotFound):
    """shipment not found"""


class NotBooked(Conflict):
    """The shipment is not booked with a carrier yet: it has no awb."""

    code = "NOT_BOOKED"


class NotCancellable(Conflict):
    """The shipment can no longer be cancelled."""

    code = "NOT_CANCELLABLE"


class NotEditable(Conflict):
    """The shipment is with the carrier and can no longer be edited."""

    code = "NOT_EDITABLE"


class BookingInProgress(Conflict):
    """A booking of this shipment is in progress, or its outcome is unknown. Wait, then get the shipment again."""

    code = "BOOKING_IN_PROGRESS"
    constraint = "shipment_bookings_open_key"


class NotBookable(Conflict):
    """The shipment cannot be booked in its current status."""

    code = "NOT_BOOKABLE"


class InvalidMove(Conflict):
    """The shipment cannot change to the requested status."""

    code = "INVALID_TRANSITION"


class CarrierUnavailable(ApiError):
    """The carrier did not respond; the outcome is not known yet."""

    status = 502
    code = "CARRIER_UNAVAILABLE"
