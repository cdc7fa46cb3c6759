"""A file as another system exports it, and what an import should make of it."""

import csv
import io
from collections.abc import Sequence
from datetime import timedelta, timezone
from typing import Any

import xlsxwriter  # type: ignore[import-untyped]
from msgspec import Struct

from sapa.imports.types import Resource

WIB = timezone(timedelta(hours=7))
WITA = timezone(timedelta(hours=8))
Rows = list[list[str]]


class ForeignFile(Struct, frozen=True):
    """A file, how it is imported, and what should come of it."""

    name: str
    source: str
    resource: Resource
    content: bytes
    expected: list[dict[str, Any]]
    """For each record the fields that are compared, by their path."""
    options: Sequence[str] = ()


def write_csv(rows: Rows, separator: str = ",", encoding: str = "utf-8", ending: str = "\r\n") -> bytes:
    text = io.StringIO()
    csv.writer(text, delimiter=separator, lineterminator=ending).writerows(rows)
    return text.getvalue().encode(encoding)


def write_xlsx(rows: Sequence[Sequence[Any]], titles: Sequence[str] = ()) -> bytes:
    file = io.BytesIO()
    with xlsxwriter.Workbook(file, {"in_memory": True, "strings_to_numbers": False}) as workbook:
        worksheet = workbook.add_worksheet("Data")
        for number, title in enumerate(titles):
            worksheet.write_string(number, 0, title)
        for number, row in enumerate(rows, len(titles)):
            for column, cell in enumerate(row):
                worksheet.write(number, column, cell)
    return file.getvalue()


def pick(row: dict[str, str], columns: Sequence[str]) -> list[str]:
    assert set(row) <= set(columns), set(row) - set(columns)
    return [row.get(column, "") for column in columns]


def comma(amount: int) -> str:
    return f"{amount},00"
