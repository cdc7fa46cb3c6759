"""A simulated inbound message, before its channel's simulator formats it."""

from datetime import datetime

from msgspec import Struct

from sapa.messaging.channels.interface import MediaType
from sapa.sandbox.inbound_contents import NO_CONTENTS, SimulatedContents


class SimulatedInbound(Struct, frozen=True):
    sender: str
    message_id: str
    at: datetime
    text: str | None = None
    choice: tuple[str, str, str] | None = None
    """Its kind (button or list), id and title."""
    media: MediaType | None = None
    quoted: str | None = None
    name: str | None = None
    is_echo: bool = False
    """The company sent it by other means."""
    subject: str | None = None
    is_automatic: bool = False
    contents: SimulatedContents = NO_CONTENTS
