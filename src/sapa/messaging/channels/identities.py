"""The ways to write one phone number. Pure: no database."""

import re
from contextlib import suppress

from sapa.messaging.channels.interface import Identity
from sapa.values.phones import BadPhone, parse_phone

# Brazil put a 9 before its mobile numbers, Argentina has a 9 for calls from abroad, Mexico had a 1: channels and people
# still use both forms. Brazil's landlines begin with 2 to 5 and never had it.
_BRAZIL = re.compile(r"55([1-9][0-9])9?([6-9][0-9]{7})").fullmatch
_ARGENTINA = re.compile(r"549?([1-9][0-9]{9})").fullmatch
_MEXICO = re.compile(r"521?([1-9][0-9]{9})").fullmatch

PHONES = ("phone", "wa_id")


def canonical(identity: Identity) -> Identity:
    """A phone number in its international form; any other identity unchanged."""
    if identity.kind in PHONES:
        return Identity("phone", "+" + "".join(filter(str.isdigit, identity.value)))
    if identity.kind == "email":
        return Identity("email", identity.value.strip())
    return identity


def build_key(identity: Identity) -> str:
    """Equal for all spellings of one number or address."""
    if identity.kind in PHONES:
        return min(list_spellings(identity.value), key=len)
    return identity.value.casefold() if identity.kind == "email" else identity.value


def list_spellings(phone: str) -> list[str]:
    """All spellings of the number, the given one first."""
    plain = "+" + "".join(filter(str.isdigit, phone))
    return list(dict.fromkeys([plain, *_others(plain[1:])]))


def find_usable(phone: str, region: str) -> str | None:
    """The number in a form that can be dialled, as customers have it; None if there is none."""
    for spelling in list_spellings(phone):
        with suppress(BadPhone):
            return parse_phone(spelling, region)
    return None


def _others(digits: str) -> list[str]:
    if found := _BRAZIL(digits):
        return [f"+55{found[1]}{found[2]}", f"+55{found[1]}9{found[2]}"]
    if found := _ARGENTINA(digits):
        return [f"+54{found[1]}", f"+549{found[1]}"]
    if found := _MEXICO(digits):
        return [f"+52{found[1]}", f"+521{found[1]}"]
    return []
