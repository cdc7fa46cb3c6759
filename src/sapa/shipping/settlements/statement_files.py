"""Reads carriers' statements from files: CSV as their dashboards export it, or NDJSON. Pure: no database.

No carrier documents the columns of its export. `COLUMNS` is the one place to correct them.
"""

import csv
import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from io import StringIO

import msgspec

from sapa.http.bodies import build_decoder, decode_body, translate_validation_error
from sapa.http.endpoints import camel
from sapa.http.errors import Invalid
from sapa.shipping.settlements.types import MAX_LINES, SettlementLineIn
from sapa.values.spreadsheet_cells import unwrap_text
from sapa.values.text_folding import fold

COLUMNS: dict[str, tuple[str, ...]] = {
    "parcel": (
        "parcel", "awb", "waybill", "waybill id", "resi", "no resi", "nomor resi", "order id", "order no",
        "shipment id",
    ),
    "amount": (
        "amount", "remitted amount", "net", "net amount", "disbursed", "disbursement", "dana cair", "nominal cair",
        "pencairan", "total diterima", "total pencairan",
    ),
    "cod_amount": ("cod amount", "cod", "cod value", "nilai cod", "nominal cod", "total cod"),
    "cod_fee": ("cod fee", "fee cod", "biaya cod", "cash on delivery fee"),
    "carrier_fee": ("carrier fee", "shipping fee", "shipping cost", "ongkir", "ongkos kirim", "biaya kirim"),
    "insurance_fee": ("insurance fee", "insurance", "asuransi", "biaya asuransi"),
}  # fmt: skip
"""The fields of a line, each with the headers that mean it, in any case."""

NEEDED = ("parcel", "amount")
TOTALS = frozenset({"total", "grand total", "subtotal", "sub total", "jumlah"})
"""In place of a parcel: rows that repeat the others."""
_DELIMITERS = ",;\t|"
_NAME_BY_HEADER = {header: name for name, headers in COLUMNS.items() for header in headers}
_NOT_IN_HEADERS = re.compile(r"[^a-z0-9]+")
_AMOUNT = re.compile(r"(?P<sign>-?)(?P<whole>\d{1,3}(?:[.,]\d{3})+|\d+)(?:[.,](?P<cents>\d{1,2}))?")
_is_shortened = re.compile(r"\d(?:[.,]\d+)?E\+\d{2,3}").fullmatch
_DECODER = build_decoder(SettlementLineIn)


def parse_statement(media_type: str, content: bytes) -> list[SettlementLineIn]:
    """Raises Invalid with the line that cannot be used."""
    text = _decode_text(content)
    lines = _parse_csv(text) if media_type == "text/csv" else _parse_ndjson(text)
    found = []
    for line in lines:
        found.append(line)
        if len(found) > MAX_LINES:
            message = f"The file has more than {MAX_LINES} lines. Split it, and give each part a reference of its own."
            raise Invalid(message)
    if not found:
        raise Invalid("The file has no parcels.")
    return found


def _decode_text(content: bytes) -> str:
    for encoding in ("utf-16",) if content.startswith((b"\xff\xfe", b"\xfe\xff")) else ("utf-8-sig", "cp1252"):
        try:
            text = content.decode(encoding)
        except UnicodeDecodeError:
            continue
        if "\0" not in text:
            return text
    raise Invalid("The file is not text. Save it as CSV in UTF-8.")


def _parse_ndjson(text: str) -> Iterator[SettlementLineIn]:
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            try:
                yield decode_body(line.encode(), _DECODER)
            except Invalid as error:
                raise _name_line(number, error) from None


def _parse_csv(text: str) -> Iterator[SettlementLineIn]:
    reader = csv.reader(StringIO(text, newline=""), delimiter=_get_delimiter(text))
    columns: dict[str, int] | None = None
    try:
        for row in reader:
            if not any(cell.strip() for cell in row) or row[0].startswith("sep="):
                continue
            if columns is None:
                columns = _get_columns(row)
                continue
            texts = {name: unwrap_text(row[at].strip()).strip() for name, at in columns.items() if at < len(row)}
            cells = {name: text for name, text in texts.items() if text}
            if fold(cells.get("parcel", "")) not in TOTALS:
                yield _build_line(reader.line_num, cells)
    except csv.Error as error:
        raise Invalid(f"Line {reader.line_num} is not CSV: {error}.") from None


def _get_delimiter(text: str) -> str:
    """The most frequent one of the first line with columns."""
    first = next((line for line in text.splitlines() if line.strip() and not line.startswith("sep=")), "")
    return max(_DELIMITERS, key=first.count)


def _get_columns(header: Sequence[str]) -> dict[str, int]:
    columns: dict[str, int] = {}
    for at, cell in enumerate(header):
        name = _NAME_BY_HEADER.get(_NOT_IN_HEADERS.sub(" ", fold(cell)).strip())
        if name is not None:
            columns.setdefault(name, at)
    for name in NEEDED:
        if name not in columns:
            raise Invalid(f"The file has no column for the {name}. Name one of its columns {COLUMNS[name][0]}.")
    return columns


def _build_line(number: int, cells: dict[str, str]) -> SettlementLineIn:
    for name in NEEDED:
        if name not in cells:
            raise Invalid(f"Line {number} has no {name}.")
    if _is_shortened(cells["parcel"]):
        raise Invalid(
            f"Line {number}: a spreadsheet has shortened the parcel's number to {cells['parcel']}, so that digits are"
            " lost. Format the column as text and export it again."
        )
    amounts = {camel(name): _parse_amount(number, name, cell) for name, cell in cells.items() if name != "parcel"}
    try:
        return msgspec.convert({"parcel": cells["parcel"].removeprefix("'"), **amounts}, SettlementLineIn)
    except msgspec.ValidationError as error:
        raise _name_line(number, translate_validation_error(str(error), SettlementLineIn)) from None


def _parse_amount(number: int, name: str, cell: str) -> Decimal:
    """`Rp 150.000`, `150,000.50`, `-12000`, `(12.000)`: groups of three digits are thousands."""
    text = re.sub(r"(?i)rp\.?|idr|\s|'", "", cell)
    if text.startswith("(") and text.endswith(")"):
        text = "-" + text[1:-1]
    found = _AMOUNT.fullmatch(text)
    if found is None:
        raise Invalid(f"Line {number}: {name.replace('_', ' ')} must be an amount, such as 150000, not {cell[:50]}.")
    whole = re.sub(r"[.,]", "", found["whole"])
    return Decimal(f"{found['sign']}{whole}.{found['cents'] or 0}")


def _name_line(number: int, error: Invalid) -> Invalid:
    return Invalid(f"Line {number}: {error.message}", details=error.details)
