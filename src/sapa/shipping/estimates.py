"""How long carriers say that a delivery takes. Pure: no database."""

import re
from decimal import Decimal

from sapa.values.money import shorten

_LAST_NUMBER = re.compile(r"(?<![\d.,])(\d{1,3}(?:[.,]\d)?)\s*([a-z]*)\D*$")
_UNITS = {"h": 24, "hour": 24, "hours": 24, "jam": 24, "min": 1440, "minute": 1440, "minutes": 1440, "menit": 1440}
"""How many of a unit are a day; any other word counts as days."""


def parse_days(estimate: str) -> Decimal | None:
    """The most days of an estimate: 3 of `2-3 days`, and 0.25 of `4 - 6 hours`. None if it has no number."""
    found = _LAST_NUMBER.search(estimate.lower())
    if found is None:
        return None
    days = Decimal(found[1].replace(",", ".")) / _UNITS.get(found[2], 1)
    return shorten(days.quantize(Decimal("0.01")))
