"""Names, ids, phone numbers and e-mail addresses as files from shops and spreadsheets have them."""

import re

from sapa.imports.cells import BadCell
from sapa.imports.values.amounts import SCIENTIFIC_ADVICE, refuse_scientific
from sapa.values.emails import BadEmail, parse_email
from sapa.values.phones import BadPhone, parse_phone

_SEVERAL = re.compile(r"\s*(?:[/;|\n]|,|\bdan\b|\batau\b|&)\s*")
_MASKED = re.compile(r"[*•]{2,}")
_MASKED_DIGITS = re.compile(r"[*•xX]{2,}")
_is_shortened = re.compile(r"\d(?:[.,]\d+)?E\+\d{2,3}").fullmatch
LONGEST_NAME = 255
LONGEST_PHONES = 200


def unquote_cell(text: str) -> str:
    """Without the apostrophe that marks a number or a formula as text: `'75008`."""
    return text[1:] if len(text) > 1 and text[0] == "'" and (text[1].isdigit() or text[1] in "=+-@") else text


def parse_id_cell(text: str) -> str:
    """Raises BadCell for `7.21045E+12`: other records have lost the same digits, and would be taken for this one."""
    if _is_shortened(text):
        raise BadCell(SCIENTIFIC_ADVICE.format(text))
    return unquote_cell(text)


def parse_phone_cell(text: str, region: str) -> str | None:
    """The first number of the cell in E.164; None for an empty or masked one, such as `0812****01`. Raises BadCell."""
    refuse_scientific(text)
    if not text or _MASKED_DIGITS.search(text):
        return None
    if len(text) > LONGEST_PHONES:
        raise BadCell("is too long for a phone number")
    first = _SEVERAL.split(unquote_cell(text))[0]
    first = re.sub(r"\.0+\Z", "", first)
    try:
        return parse_phone(first, region)
    except BadPhone as error:
        raise BadCell(str(error)) from None


def find_phone(text: str, region: str) -> str | None:
    """Like `parse_phone_cell`; None for a text that is not a phone number."""
    try:
        return parse_phone_cell(text, region)
    except BadCell:
        return None


def find_email(text: str) -> str | None:
    """None for a masked or wrong address. Names may have two x in a row, such as Maxx."""
    if not text or _MASKED.search(text):
        return None
    try:
        return parse_email(unquote_cell(text))
    except BadEmail:
        return None


def split_name(text: str) -> tuple[str | None, str | None]:
    """First name and the rest; either may be missing."""
    first, _, last = " ".join(text.split()).partition(" ")
    return first[:LONGEST_NAME] or None, last[:LONGEST_NAME] or None
