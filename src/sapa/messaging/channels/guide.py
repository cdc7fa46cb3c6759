"""How people connect a channel."""

from collections.abc import Sequence

from msgspec import Struct


class ChannelGuide(Struct, frozen=True):
    """How an account is made and connected, for people; the console has the texts in its languages."""

    steps: Sequence[tuple[str, str]]
    """Before the account is entered: what to do, and how."""
    callback: str
    """After it."""
    page: str
    """Of the documentation."""
