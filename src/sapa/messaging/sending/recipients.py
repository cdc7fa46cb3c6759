"""Whom a message is to go to: what a caller wrote becomes an identity that a channel knows. Pure: no database."""

import re
from collections.abc import Sequence

import phonenumbers
from email_validator import EmailNotValidError, validate_email

from sapa.http.errors import Invalid
from sapa.messaging.channels.identities import find_usable
from sapa.messaging.channels.interface import Identity, IdentityKind, Source
from sapa.values.company import Company
from sapa.values.phones import BadPhone, is_region, parse_phone

_NAMES = {
    "msgapp": Source.MSGAPP_CLOUD,
    "msgapp_cloud_api": Source.MSGAPP_CLOUD,
    **{source.lower(): source for source in Source},
}
_BETWEEN = re.compile(r"[\s_-]+")
_NOISE = re.compile(r"[\s().\-‐‑–/]+")
_PHONE = re.compile(r"(?:\+|00)?[0-9]{4,20}", re.ASCII).fullmatch
_BSUID = re.compile(r"[A-Z]{2}\.(?:ENT\.)?[A-Za-z0-9]{1,128}", re.ASCII).fullmatch
_SCOPED = re.compile(r"[0-9]{5,25}", re.ASCII).fullmatch
_SIMULATED = re.compile(r"sim_[a-z0-9_]{1,60}", re.ASCII).fullmatch
_TOKEN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:=+/@|-]{0,254}", re.ASCII).fullmatch
_DIAL = re.compile(r"\+?([1-9][0-9]{0,2})", re.ASCII).fullmatch

NAMED_BY_FORM: frozenset[IdentityKind] = frozenset({"phone", "bsuid", "email"})
"""What a recipient is can be seen from how it is written; of other ids only the channel knows."""


def find_source(word: str) -> Source | None:
    """`msgapp cloud api`, `msgapp_cloud_api` and `MSGAPP_CLOUD` are the same."""
    return _NAMES.get(_BETWEEN.sub("_", word.strip().lower()))


def parse_sources(given: str | Sequence[str] | None) -> list[Source]:
    """The channels that are named, each once; raises Invalid for a name that none has."""
    words = [given] if isinstance(given, str) else list(given or ())
    found = []
    for word in words:
        source = find_source(word)
        if source is None:
            raise Invalid.field("sources", f"must be one of {', '.join(Source)}")
        found.append(source)
    return list(dict.fromkeys(found))


def parse_region(country_code: str | None, company: Company) -> str:
    """The country of a number without a country code: ID, 62 and +62 are the same."""
    if not country_code:
        return company.region
    text = country_code.strip().upper()
    if is_region(text):
        return text
    dialled = _DIAL(text.removeprefix("00"))
    region = phonenumbers.region_code_for_country_code(int(dialled[1])) if dialled else "ZZ"
    if not is_region(region):
        raise Invalid.field("countryCode", "must be a country's ISO code or its dialling code, such as ID, 62 or +62")
    return str(region)


def parse_recipient(to: str, country_code: str | None, company: Company, kinds: Sequence[IdentityKind]) -> Identity:
    """As the first of the kinds that it can be; raises Invalid with what the usual kind needs."""
    region = parse_region(country_code, company)
    text = to.strip()
    for kind in kinds:
        if (value := _find_value(kind, text, region, company)) is not None:
            return Identity(kind, value)
    raise Invalid.field("to", _advice(kinds[0], text, region))


def _find_value(kind: IdentityKind, text: str, region: str, company: Company) -> str | None:
    match kind:
        case "phone" | "wa_id":
            return _find_phone(text, region)
        case "bsuid":
            return text if _BSUID(text) else None
        case "email":
            return _find_email(text, company)
        case "psid" | "igsid":
            return text if _SCOPED(text) or _is_simulated(text, company) else None
        case "tt_conv" | "visitor":
            return text if _TOKEN(text) else None


def _find_phone(text: str, region: str) -> str | None:
    plain = _NOISE.sub("", text)
    if not _PHONE(plain):
        return None
    try:
        return parse_phone(plain, region)
    except BadPhone:
        return find_usable(plain, region) if plain.startswith("+") else None


def _find_email(text: str, company: Company) -> str | None:
    is_test = company.environment == "test"
    try:
        found = validate_email(text, check_deliverability=False, globally_deliverable=False, test_environment=is_test)
    except EmailNotValidError:
        return None
    return str(found.normalized)


def _is_simulated(text: str, company: Company) -> bool:
    return company.environment == "test" and _SIMULATED(text) is not None


def _advice(kind: IdentityKind, text: str, region: str) -> str:
    if kind in {"phone", "wa_id"}:
        try:
            parse_phone(_NOISE.sub("", text), region)
        except BadPhone as error:
            return str(error)
        return "must be a phone number with its country code, such as +628123456789"
    words = {
        "email": "must be an e-mail address, such as ayu@example.com",
        "psid": "must be the page-scoped id by which Messenger knows the customer",
        "igsid": "must be the id by which Instagram knows the customer",
        "tt_conv": "must be the id of a conversation that the customer began",
        "visitor": "must be the id of a visitor of the web chat",
    }
    return words.get(kind, "cannot be reached over this channel")
