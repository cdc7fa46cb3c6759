"""Reads rates from CSV files, and writes reports as CSV. Pure: no database."""

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from io import StringIO

from sapa.http.errors import Invalid
from sapa.http.query_string import BadValue, parse_date
from sapa.messaging.costs.types import ELSEWHERE, CostReport, Grouping, MessageRate
from sapa.values.money import MAX_DIGITS, BadMoney, parse_currency, shorten
from sapa.values.phones import is_region
from sapa.values.spreadsheet_cells import escape_formula

COLUMNS = ("country", "category", "date_from", "currency", "price")
MAX_RATES = 100_000
MAX_DECIMALS = 8

_is_category = re.compile(r"[a-z][a-z0-9_]{0,59}", re.ASCII).fullmatch
_is_price = re.compile(rf"[0-9]{{1,{MAX_DIGITS}}}(?:\.[0-9]{{1,{MAX_DECIMALS}}})?", re.ASCII).fullmatch

_KEYS: Mapping[Grouping, tuple[str, str]] = {
    "day": ("day", "day"),
    "template": ("template_id", "template"),
    "channel": ("source", "channel"),
}
"""The field of a line, and its column."""


def parse_rates(content: bytes, company_id: int | None) -> list[MessageRate]:
    """Raises Invalid with the line that cannot be used: nothing of such a file is imported."""
    rates: dict[tuple[object, ...], MessageRate] = {}
    for number, cells in _read_lines(_decode(content)):
        rate = _parse_rate(number, cells, company_id)
        key = (rate.country, rate.category, rate.starts_on, rate.currency)
        if rates.setdefault(key, rate) is not rate:
            raise Invalid(f"Line {number}: {', '.join(map(str, key))} is in the file twice. Remove one of the lines.")
        if len(rates) > MAX_RATES:
            raise Invalid(f"The file has more than {MAX_RATES:,} rates. Split it.")
    if not rates:
        raise Invalid("The file has no rates.")
    return list(rates.values())


def _decode(content: bytes) -> str:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Invalid("The file is not UTF-8. Save it as CSV in UTF-8.") from None
    if "\0" in text:
        raise Invalid("The file is not text. Save it as CSV in UTF-8.")
    return text


def _read_lines(text: str) -> Iterator[tuple[int, dict[str, str]]]:
    first = text.partition("\n")[0]
    reader = csv.reader(StringIO(text, newline=""), delimiter=max(",;\t", key=first.count), strict=True)
    header: list[str] | None = None
    try:
        for row in reader:
            cells = [cell.strip() for cell in row]
            if not any(cells):
                continue
            if header is None:
                header = _check_header(cells)
            elif len(cells) != len(header):
                raise Invalid(f"Line {reader.line_num} has {len(cells)} cells, the header {len(header)}.")
            else:
                yield reader.line_num, dict(zip(header, cells, strict=True))
    except csv.Error as error:
        raise Invalid(f"Line {reader.line_num} is not CSV: {error}.") from None


def _check_header(cells: list[str]) -> list[str]:
    names = [cell.lower().replace(" ", "_") for cell in cells]
    if sorted(names) != sorted(COLUMNS):
        raise Invalid(f"The columns of the file must be {', '.join(COLUMNS)}, in any order, with a header.")
    return names


def _parse_rate(number: int, cells: Mapping[str, str], company_id: int | None) -> MessageRate:
    country, category = cells["country"].upper(), cells["category"].lower()
    if country != ELSEWHERE and not is_region(country):
        raise _refuse(number, "country", cells, f"an ISO 3166 code, such as ID, or {ELSEWHERE} for all other countries")
    if not _is_category(category):
        raise _refuse(number, "category", cells, "a category as the channel reports it, such as utility")
    if not _is_price(cells["price"]):
        advice = f"a number, 0 or more, with a point and at most {MAX_DECIMALS} decimal places, such as 356.65"
        raise _refuse(number, "price", cells, advice)
    price = shorten(Decimal(cells["price"]))
    if len(price.as_tuple().digits) > MAX_DIGITS:
        raise _refuse(number, "price", cells, f"a number of at most {MAX_DIGITS} digits")
    try:
        currency = parse_currency(cells["currency"].upper())
    except BadMoney:
        raise _refuse(number, "currency", cells, "an ISO 4217 code, such as IDR") from None
    try:
        starts_on = parse_date(cells["date_from"])
    except BadValue:
        raise _refuse(number, "date_from", cells, "a date, such as 2026-10-01") from None
    return MessageRate(company_id, country, category, starts_on, currency, price)


def _refuse(number: int, name: str, cells: Mapping[str, str], advice: str) -> Invalid:
    return Invalid(f"Line {number}: {name} must be {advice}, not {cells[name][:50] or 'empty'}.")


def list_cost_rows(report: CostReport, grouping: Grouping) -> list[Sequence[object]]:
    """With a header."""
    field, column = _KEYS[grouping]
    figures = ("currency", "messages", "billable_messages", "unpriced_messages", "amount")
    return [(column, *figures), *([getattr(line, name) for name in (field, *figures)] for line in report.lines)]


def write_costs(report: CostReport, grouping: Grouping) -> bytes:
    written = StringIO()
    rows = list_cost_rows(report, grouping)
    csv.writer(written).writerows([["" if cell is None else escape_formula(str(cell)) for cell in row] for row in rows])
    return written.getvalue().encode()
