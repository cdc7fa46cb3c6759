"""Kinds of identities that channels share, and the ways to write one phone number. Pure: no database."""

import re
from collections.abc import Callable
from contextlib import suppress

from sapa.messaging.channels.interface import BadIdentity, Identity, IdentityKind
from sapa.values.emails import BadEmail, parse_email
from sapa.values.phones import BadPhone, parse_phone

OPAQUE_ID = r"[A-Za-z0-9][A-Za-z0-9_.:=+/@|-]{0,254}"

_NOISE = re.compile(r"[\s().\-‐‑–/]+")
_NUMBER = re.compile(r"(?:\+|00)?[0-9]{4,20}", re.ASCII).fullmatch
_INTERNATIONAL = re.compile(r"\+[0-9]+", re.ASCII).fullmatch
# Brazil put a 9 before its mobile numbers, Argentina has a 9 for calls from abroad, Mexico had a 1: channels and people
# still use both forms. Brazil's landlines begin with 2 to 5 and never had it.
_BRAZIL = re.compile(r"55([1-9][0-9])9?([6-9][0-9]{7})").fullmatch
_ARGENTINA = re.compile(r"549?([1-9][0-9]{9})").fullmatch
_MEXICO = re.compile(r"521?([1-9][0-9]{9})").fullmatch


def parse_number(text: str, region: str) -> str:
    """A phone number in its international form."""
    plain = _NOISE.sub("", text)
    try:
        number = parse_phone(plain, region)
    except BadPhone as error:
        usable = find_usable(plain, region) if _NUMBER(plain) and plain.startswith("+") else None
        if usable is None:
            raise BadIdentity(str(error)) from None
        return usable
    if not _NUMBER(plain):
        raise BadIdentity("must be a phone number with its country code, such as +628123456789")
    return number


def parse_mailbox(text: str, region: str) -> str:
    try:
        return parse_email(text)
    except BadEmail:
        raise BadIdentity("must be an e-mail address, such as ayu@example.com") from None


def build_parser(pattern: str, advice: str) -> Callable[[str, str], str]:
    """For ids that are used as they are; `advice` continues a sentence that begins with the field's name."""
    matches = re.compile(pattern, re.ASCII).fullmatch

    def parse(text: str, region: str) -> str:
        if not matches(text):
            raise BadIdentity(advice)
        return text

    return parse


PHONE = IdentityKind("phone", parse_number, has_distinct_format=True)
WA_ID = IdentityKind("wa_id", parse_number, has_distinct_format=True)
EMAIL = IdentityKind("email", parse_mailbox, has_distinct_format=True)

_PHONES = frozenset({PHONE.name, WA_ID.name})


def canonical_kind(kind: str) -> str:
    """The kind that contacts have: a number is a phone number, whatever a channel calls it."""
    return PHONE.name if kind in _PHONES else kind


def canonical(identity: Identity) -> Identity:
    """A phone number in its international form; any other identity unchanged."""
    if identity.kind in _PHONES:
        return Identity(PHONE.name, _plain(identity.value))
    if identity.kind == EMAIL.name:
        return Identity(EMAIL.name, identity.value.strip())
    return identity


def build_key(identity: Identity) -> str:
    """Equal for all spellings of one number or address."""
    if identity.kind in _PHONES:
        return min(list_spellings(identity.value), key=len)
    return identity.value.casefold() if identity.kind == EMAIL.name else identity.value


def list_spellings(phone: str) -> list[str]:
    """All spellings of the number, the given one first."""
    plain = _plain(phone)
    return list(dict.fromkeys([plain, *_others(plain[1:])]))


def list_customer_keys(identity: Identity) -> tuple[list[str], str | None]:
    """The phone numbers and the e-mail address with which a customer may be the person."""
    phones = list_spellings(identity.value) if identity.kind == PHONE.name else []
    return phones, identity.value if identity.kind == EMAIL.name else None


def find_usable(phone: str, region: str) -> str | None:
    """The number in a form that can be dialled, as customers have it; None if there is none."""
    for spelling in list_spellings(phone):
        with suppress(BadPhone):
            return parse_phone(spelling, region)
    return None


def _plain(phone: str) -> str:
    return phone if _INTERNATIONAL(phone) else "+" + "".join(filter(str.isdigit, phone))


def _others(digits: str) -> list[str]:
    if found := _BRAZIL(digits):
        return [f"+55{found[1]}{found[2]}", f"+55{found[1]}9{found[2]}"]
    if found := _ARGENTINA(digits):
        return [f"+54{found[1]}", f"+549{found[1]}"]
    if found := _MEXICO(digits):
        return [f"+52{found[1]}", f"+521{found[1]}"]
    return []
