"""How WhatsApp says what a message is charged as."""

from collections.abc import Sequence

from sapa.messaging.channels.identities import PHONE
from sapa.messaging.channels.interface import Identity, ReportedPricing
from sapa.messaging.channels.reading import Node, get, text
from sapa.messaging.channels.whatsapp.people import BSUID
from sapa.values.phones import find_region, is_region

CHARGED = "regular"
LONGEST_WORD = 60


def read_pricing(status: Node, recipient: Sequence[Identity]) -> ReportedPricing | None:
    """`billable` is to be removed from the callback; then the type alone tells."""
    category, type = text(status, "pricing", "category"), text(status, "pricing", "type")
    if category is None:
        return None
    billable = get(status, "pricing", "billable")
    is_billable = billable if isinstance(billable, bool) else type == CHARGED
    short_type = None if type is None else type[:LONGEST_WORD].lower()
    return ReportedPricing(category[:LONGEST_WORD].lower(), short_type, is_billable, _find_country(recipient))


def _find_country(recipient: Sequence[Identity]) -> str | None:
    """Of the phone number, or else of the user id, which begins with it."""
    for identity in recipient:
        if identity.kind == PHONE.name and (region := find_region(identity.value)):
            return region
        if identity.kind == BSUID.name and is_region(identity.value[:2]):
            return identity.value[:2]
    return None
