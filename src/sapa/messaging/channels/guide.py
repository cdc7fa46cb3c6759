"""How people connect a channel."""

from collections.abc import Sequence

from msgspec import Struct


class GuideStep(Struct, frozen=True):
    """What to do, and how."""

    title: str
    text: str
    fields: Sequence[str] = ()
    """Of the account: what the step yields. Without them it is about this server."""


class ChannelGuide(Struct, frozen=True):
    """How an account is made and connected, for people; the console has the texts in its languages."""

    steps: Sequence[GuideStep]
    """Before the account is entered."""
    callback: str
    """After it."""
    page: str
    """Of the documentation."""
