"""Amounts and measures as people type them: 10.000, 10,000, Rp 10.000,50, 1,5 jt. Pure."""

import re
from decimal import Decimal

from sapa.console.formats import WHOLE
from sapa.values.money import DIGITS

MAX_DIGITS = 15
GROUPS = {"en": ",", "id": "."}
"""What a language puts between thousands."""
UNITS = {"rb": 10**3, "ribu": 10**3, "k": 10**3, "jt": 10**6, "juta": 10**6}
_TYPED = re.compile(r"(?P<number>[0-9][0-9., ]*?)(?:,-|\.-)?\s*(?P<unit>rb|ribu|k|jt|juta)?", re.IGNORECASE)
_GROUPED = re.compile(r"[1-9][0-9]{0,2}(?P<mark>[.,])[0-9]{3}(?:(?P=mark)[0-9]{3})*").fullmatch


class NotAnAmount(ValueError):
    """What was typed cannot be read as one amount."""


def parse_typed_amount(text: str, language: str, currency: str) -> Decimal:
    """A mark before three digits is read as people of the language mean it; in rupiah it always groups thousands."""
    plain = re.sub(r"[\s\u00a0\u202f]+", " ", text).strip()
    for symbol in ("Rp.", "Rp", currency):
        if plain.casefold().startswith(symbol.casefold()):
            plain = plain[len(symbol) :].strip()
    typed = _TYPED.fullmatch(plain)
    if typed is None or len(re.sub(r"[^0-9]", "", plain)) > MAX_DIGITS:
        raise NotAnAmount
    unit = UNITS[typed["unit"].casefold()] if typed["unit"] else 1
    number = typed["number"].replace(" ", "")
    is_grouped = unit == 1 and (currency in WHOLE or DIGITS.get(currency) == 0)
    read = _read(number, language, is_grouped=is_grouped)
    if unit == 1 and len(read.partition(".")[2]) > max(DIGITS.get(currency, 0), 2):
        raise NotAnAmount  # 10.0000 is a mistake for 10.000 or 100.000, not ten
    return Decimal(read) * unit


def parse_typed_measure(text: str, language: str) -> Decimal:
    """A weight or a length."""
    plain = re.sub(r"[\s\u00a0\u202f]+", "", text)
    if not re.fullmatch(r"[0-9][0-9.,]*", plain) or len(plain) > MAX_DIGITS:
        raise NotAnAmount
    return Decimal(_read(plain, language, is_grouped=False))


def _read(number: str, language: str, *, is_grouped: bool) -> str:
    """With a decimal point, and nothing else but digits."""
    group = GROUPS["id" if language == "id" else "en"]
    marks = re.findall(r"[.,]", number)
    if not marks:
        return number
    if len(set(marks)) == 1 and _GROUPED(number) and (len(marks) > 1 or is_grouped or marks[0] == group):
        return number.replace(marks[0], "")
    whole, _, decimals = number.rpartition(marks[-1])
    if marks[-1] in whole or not decimals or not whole or (len(marks) > 1 and not _GROUPED(whole)):
        raise NotAnAmount
    return f"{re.sub('[.,]', '', whole)}.{decimals}"
