"""Amounts and numbers as people and spreadsheets write them: `Rp 150.000,00`, `150rb`, `1,250.50`, `(20)`."""

import re
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from typing import Annotated, Literal

from sapa.imports.cells import BadCell
from sapa.values.enum_names import EnumName
from sapa.values.money import DIGITS

DecimalSign = Annotated[Literal[".", ","], EnumName("DecimalSign")]

_SIGNS: tuple[DecimalSign, DecimalSign] = (".", ",")
_BLANKS = re.compile(r"[' \u00a0]")
_CODE = re.compile(r"\b[A-Z]{3}\b", re.IGNORECASE)
_CURRENCY = re.compile(r"(?:\bRp\.?|\b[A-Z]{3}\b|[$€£¥₹₫฿])\s*", re.IGNORECASE)
_FACTORS = {"rb": 1_000, "ribu": 1_000, "k": 1_000, "jt": 1_000_000, "juta": 1_000_000}
_SHAPE = re.compile(
    r"(?P<minus>[-–(]?)\s*(?P<digits>\d[\d.,' \u00a0]*?)(?:,-|\.-)?\s*(?P<factor>rb|ribu|k|jt|juta)?\s*\)?",
    re.IGNORECASE,
)  # fmt: skip
_SCIENTIFIC = re.compile(r"[+-]?\d+(?:[.,]\d+)?E[+-]?\d+", re.IGNORECASE)

_is_whole = re.compile(r"\d+|\d{1,3}(?P<sign>[.,])(?:\d{2,3}(?P=sign))*\d{3}").fullmatch
"""With thousands separated, or not: 1234, 1.234.567, in India 12,34,567. Not 150.000.00."""

DASHES = {"-", "–", "—"}
"""What people write into a cell without a value; the accounting format of spreadsheets writes it for 0."""

LONGEST = 60
"""No amount is longer; the patterns take much longer for long texts."""

SCIENTIFIC_ADVICE = (
    "was shortened by a spreadsheet to {}, so that digits are lost. Format the column as text and export it again"
)


def refuse_scientific(text: str) -> None:
    """Raises BadCell for `6.28123E+11`: the digits that it lacks cannot be restored."""
    if len(text) <= LONGEST and _SCIENTIFIC.fullmatch(text.strip()):
        raise BadCell(SCIENTIFIC_ADVICE.format(text.strip()))


def parse_amount_cell(text: str, sign: DecimalSign | None = None) -> Decimal:
    """The amount; `sign` is the column's decimal sign where the cell alone does not show it. Raises BadCell."""
    if len(text) <= LONGEST and text.isascii() and text.isdigit():
        return Decimal(text)
    refuse_scientific(text)
    if _CURRENCY.sub("", text[:LONGEST]).strip() in DASHES:
        return Decimal(0)
    shape = _find_shape(text)
    if shape is None:
        raise BadCell(f"must be an amount, such as 150000 or 150.000,00; it is {text[:40]!r}")
    digits = _BLANKS.sub("", shape["digits"])
    own = find_decimal_sign(digits)
    if own is None and (_names_long_currency(text) if sign is None else digits.count(sign) == 1):
        own = _find_single_sign(digits)
    whole, _, fraction = digits.rpartition(own) if own else (digits, "", "")
    if not _is_whole(whole):
        raise BadCell(f"must be an amount, such as 150000 or 150.000,00; it is {text[:40]!r}")
    amount = Decimal(f"{whole.replace('.', '').replace(',', '')}.{fraction}")
    amount *= _FACTORS.get((shape["factor"] or "").lower(), 1)
    return -amount if shape["minus"] else amount


def _find_shape(text: str) -> re.Match[str] | None:
    return None if len(text) > LONGEST else _SHAPE.fullmatch(_CURRENCY.sub("", text).strip())


def _names_long_currency(text: str) -> bool:
    """Whether the cell has the code of a currency with three decimals: `KWD 3.250`."""
    code = _CODE.search(text)
    return code is not None and DIGITS.get(code[0].upper(), 0) >= 3


def _find_single_sign(digits: str) -> DecimalSign | None:
    return next((sign for sign in _SIGNS if digits.count(sign) == 1), None)


def find_decimal_sign(digits: str) -> DecimalSign | None:
    """The decimal sign that a number proves to have; None for a whole number or one that may be either.

    The last of two different signs is the decimal sign. A single sign is one unless exactly three digits follow it and
    one to three stand before it, which are more than a zero.
    """
    last_dot, last_comma = digits.rfind("."), digits.rfind(",")
    if last_dot >= 0 and last_comma >= 0:
        return "." if last_dot > last_comma else ","
    sign = _find_single_sign(digits)
    if sign is None:
        return None
    before, after = digits.index(sign), len(digits) - digits.index(sign) - 1
    return sign if after != 3 or before > 3 or digits.startswith(f"0{sign}") else None


def decide_decimal_sign(texts: Iterable[str], currency: str) -> DecimalSign | None:
    """The decimal sign of a column, by the cells that prove one; None if none does, and then `1.250` is 1250.

    A currency with three decimals makes it 1.25, unless another cell shows that the sign separates thousands.
    """
    proved: Counter[DecimalSign] = Counter()
    single: Counter[DecimalSign] = Counter()
    thousands: set[DecimalSign] = set()
    for text in texts:
        shape = _find_shape(text)
        if shape is None:
            continue
        digits = _BLANKS.sub("", shape["digits"])
        if sign := find_decimal_sign(digits):
            proved[sign] += 1
        elif sign := _find_single_sign(digits):
            single[sign] += 1
        else:
            thousands |= {sign for sign in _SIGNS if sign in digits}
    if not proved and DIGITS[currency] >= 3:
        proved.update({sign: count for sign, count in single.items() if sign not in thousands})
    return proved.most_common(1)[0][0] if proved else None


def parse_quantity_cell(text: str) -> int:
    """A whole number; `2.0` and `2,00` are 2."""
    amount = parse_amount_cell(text)
    if amount != amount.to_integral_value():
        raise BadCell(f"must be a whole number; it is {text[:40]!r}")
    return int(amount)
