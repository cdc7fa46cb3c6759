"""What can go wrong with a shipment."""

from sapa.http.errors import ApiError, Conflict, NotFound


class ShipmentNotFound(NotFound):
    """shipment not found"""


class NotBooked(Conflict):
    """The shipment is not booked with a carrier yet: it has no awb."""

    code = "NOT_BOOKED"
    fix = "Book the shipment first, or delete it."


class NotCancellable(Conflict):
    """The shipment can no longer be cancelled."""

    code = "NOT_CANCELLABLE"
    fix = "Ask the carrier: the parcel is on its way, or has arrived."


class NotEditable(Conflict):
    """The shipment is with the carrier and can no longer be edited."""

    code = "NOT_EDITABLE"
    fix = "Cancel the shipment and create another one."


class BookingInProgress(Conflict):
    """A booking of this shipment is in progress, or its outcome is unknown. Wait, then get the shipment again."""

    code = "BOOKING_IN_PROGRESS"
    constraint = "shipment_bookings_open_key"
    fix = "Get the shipment until its status is certain. Do not create another one: the parcel would be booked twice."


class NotBookable(Conflict):
    """The shipment cannot be booked in its current status."""

    code = "NOT_BOOKABLE"
    fix = "Get the shipment to see its status. What was picked up or cancelled needs a new shipment."


class InvalidMove(Conflict):
    """The shipment cannot change to the requested status."""

    code = "INVALID_TRANSITION"
    fix = "Get the shipment: its status decides what can follow."


class CarrierUnavailable(ApiError):
    """The carrier did not respond; the outcome is not known yet."""

    status = 502
    code = "CARRIER_UNAVAILABLE"
    fix = (
        "Get the shipment again: Sapa asks the carrier until the outcome is certain. A quote can be tried "
        "again at once."
    )
