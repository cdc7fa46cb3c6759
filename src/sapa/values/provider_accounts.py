"""What accounts at channels and carriers have in common."""

from collections.abc import Sequence

from msgspec import Struct


class AccountField(Struct, frozen=True):
    """One field of an account, as commands and pages ask for it."""

    name: str
    label: str
    is_secret: bool = True
    is_required: bool = True
    is_generated: bool = False
    """Generated when it is left out, and shown once."""
    pattern: str = r".*"
    """What its value looks like."""
    destination: Sequence[str] = ()
    """Of a secret: the fields that say where it is sent. When one of them changes, it has to be entered again."""


class BadSignature(Exception):
    """A callback without the signature or token that the channel or carrier would have sent."""
