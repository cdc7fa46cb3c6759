"""What accounts at channels and carriers have in common."""

import binascii
import re
from base64 import urlsafe_b64decode
from collections.abc import Mapping, Sequence
from typing import Annotated
from urllib.parse import quote, quote_plus

from msgspec import Meta, Struct

MASK = "…"
SHORTEST_SECRET = 4
"""A shorter one is a part of too many words."""

_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{6,}={0,2}")
_USER_INFO = re.compile(r"(?<=://)[^/@\s]+(?=@)")


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
    hint: str = ""
    """The same in words, for people."""
    max_length: int = 4096
    destination: Sequence[str] = ()
    """Of a secret: the fields that say where it is sent. When one of them changes, it has to be entered again."""


class AccountFieldEntry(Struct, frozen=True, rename="camel"):
    """A field of an account, as the API lists it."""

    name: Annotated[str, Meta(examples=["access_token"])]
    label: Annotated[str, Meta(examples=["Access token"])]
    required: Annotated[bool, Meta(examples=[True])]
    secret: Annotated[bool, Meta(examples=[True], description="Whether its value is never shown again.")]
    generated: Annotated[bool, Meta(examples=[False], description="Whether it is generated when you leave it out.")]


def build_field_entries(fields: Sequence[AccountField]) -> list[AccountFieldEntry]:
    return [
        AccountFieldEntry(field.name, field.label, field.is_required, field.is_secret, field.is_generated)
        for field in fields
    ]


def mask_secrets(text: str, credentials: Mapping[str, str]) -> str:
    """A provider's or a library's message without the account's secrets.

    Such a message may repeat what was sent: a secret as it is, quoted in an address, or in base64, alone or with a user
    name.
    """
    secrets = sorted((secret for secret in credentials.values() if len(secret) >= SHORTEST_SECRET), key=len)
    for secret in reversed(secrets):
        for form in (secret, quote(secret), quote(secret, safe=""), quote_plus(secret)):
            text = text.replace(form, MASK)
    if secrets:
        text = _BASE64.sub(lambda found: MASK if _encodes_any(found[0], secrets) else found[0], text)
    return _USER_INFO.sub(MASK, text)


def _encodes_any(word: str, secrets: Sequence[str]) -> bool:
    """Whatever stands before the base64 in the same word moves its start."""
    word = word.rstrip("=").replace("+", "-").replace("/", "_")
    return any(secret.encode() in _decode(word[start:]) for start in range(4) for secret in secrets)


def _decode(base64: str) -> bytes:
    try:
        return urlsafe_b64decode(base64[: len(base64) - (len(base64) % 4 == 1)] + "==")
    except binascii.Error:
        return b""


class BadSignature(Exception):
    """A callback without the signature or token that the channel or carrier would have sent."""
