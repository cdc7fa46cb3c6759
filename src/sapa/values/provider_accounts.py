"""What accounts at channels and carriers have in common."""

from msgspec import Struct


class AccountField(Struct, frozen=True):
    """One part of an account, for commands and pages that ask for it."""

    name: str
    label: str
    is_secret: bool = True
    is_required: bool = True
    is_generated: bool = False
    """Made by us when nobody gives it, and shown once."""
    pattern: str = r".*"
    """What its value looks like."""


class BadSignature(Exception):
    """A callback without the signature or token that the channel or carrier would have sent."""
