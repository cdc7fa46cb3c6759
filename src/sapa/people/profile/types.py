"""A user's own settings: sessions, and what they want to hear of."""

from msgspec import Struct

from sapa.http.responses import Timestamp

KINDS = ("assigned", "unassigned", "mentioned", "order", "shipment")
"""What can be announced: a customer waits in one's own conversation or in one that nobody has, a note mentions the
person, a paid order waits to be shipped, a parcel needs somebody."""


class OpenSession(Struct, frozen=True):
    """A browser in which a user is signed in."""

    hash: bytes
    organisation: str
    address: str
    browser: str
    created_at: Timestamp
    seen_at: Timestamp | None


class AlertSettings(Struct, frozen=True):
    """What a user hears of in one company, and how."""

    kinds: tuple[str, ...] = ("assigned", "unassigned", "mentioned")
    sound: bool = True
    desktop: bool = False
    mail: bool = True
    """When something waits and they are away."""


class AwayMember(Struct, frozen=True):
    """A user who was not at the console for a while and has a mail to get, if something waits."""

    user_id: int
    email: str
    name: str
    language: str
    organisation_id: int
    organisation: str
    company_id: int
    alerts: bytes | None
    since: str
    """When they were last there, or last mailed."""
