"""Reads .xlsx workbooks.

A workbook is a ZIP archive, and a small one can unpack to gigabytes: its real size is counted before it is parsed. What
passes is parsed in a process with a limit on memory (`sapa.imports.converter_process`).
"""

import re
import zipfile
import zlib
from collections.abc import Generator, Iterator
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import BinaryIO

import python_calamine
from python_calamine import CalamineError, CalamineSheet, CalamineWorkbook

from sapa.imports.tables.encodings import HEAD, WORKBOOK, detect_encoding
from sapa.imports.tables.types import Table, TableRow, is_blank
from sapa.imports.types import UnusableFile

MAX_UNPACKED = 256 * 1_048_576
MAX_ENTRIES = 10_000
MAX_COLUMNS = 1_000
PIECE = 1_048_576
MAX_EXACT = 2**53

_has_three_decimals = re.compile(r"-?\d+\.\d{3}").fullmatch

Cell = int | float | str | bool | time | date | datetime | timedelta


def open_workbook(path: Path) -> Table:
    """The first worksheet that has rows; formulas have the value that was saved with them."""
    refuse_unsafe_archive(path)
    try:
        workbook = CalamineWorkbook.from_path(str(path))
        worksheet = _choose_worksheet(workbook)
        cells = worksheet.iter_rows()
        first = next(cells, None)
    except (CalamineError, python_calamine.PasswordError, zipfile.BadZipFile, OSError) as error:
        raise UnusableFile(
            f"The workbook cannot be read: {error}. Open it in a spreadsheet and save it again."
        ) from None
    if first is not None and len(first) > MAX_COLUMNS:
        raise UnusableFile(f"The worksheet has {len(first):,} columns; at most {MAX_COLUMNS:,} are allowed.")

    merged = _list_merged(worksheet)

    def read_rows() -> Generator[TableRow]:
        above: dict[int, tuple[int, str]] = {}
        for number, row in enumerate(worksheet.iter_rows(), 1):
            texts = [_build_text(cell) for cell in row]
            for column, (last, text) in above.items():
                if number <= last and not texts[column]:
                    texts[column] = text
            above |= {column: (last, texts[column]) for column, last in merged.get(number, ())}
            if not is_blank(texts):
                yield TableRow(number, texts)

    return Table(read_rows, f"worksheet {worksheet.name}")


def _list_merged(worksheet: CalamineSheet) -> dict[int, list[tuple[int, int]]]:
    """By the first row of a merged range, from 1: its first column and its last row. Only ranges of several rows, whose
    value counts for each of them."""
    found: dict[int, list[tuple[int, int]]] = {}
    first = (worksheet.start or (0, 0))[1]
    for (top, left), (bottom, _) in worksheet.merged_cell_ranges or ():
        if bottom > top and first <= left < first + worksheet.width:
            found.setdefault(top + 1, []).append((left - first, bottom + 1))
    return found


def _choose_worksheet(workbook: CalamineWorkbook) -> CalamineSheet:
    for name in workbook.sheet_names:
        worksheet = workbook.get_sheet_by_name(name)
        if worksheet.height:
            return worksheet
    raise UnusableFile("The workbook has no worksheet with rows.")


def refuse_unsafe_archive(path: Path) -> None:
    """Raises UnusableFile unless it is a workbook that unpacks to a usual size."""
    with path.open("rb") as file:
        if not file.read(HEAD).startswith(WORKBOOK):
            detect_encoding(file)  # names what else cannot be read
            raise UnusableFile("The file is text, not an Excel workbook; its name must end in .csv.")
        try:
            with zipfile.ZipFile(file) as archive:
                entries = archive.infolist()
                _refuse_foreign_archive(entries)
                _refuse_large_archive(file, entries)
        except (zipfile.BadZipFile, zlib.error, ValueError, OSError):
            raise UnusableFile("The workbook is damaged. Open it in a spreadsheet and save it again.") from None


def _refuse_foreign_archive(entries: list[zipfile.ZipInfo]) -> None:
    if len(entries) > MAX_ENTRIES:
        raise UnusableFile(f"The workbook has more than {MAX_ENTRIES:,} parts.")
    if any(entry.flag_bits & 1 for entry in entries):
        raise UnusableFile("The workbook has a password. Save it without one.")
    if not any(entry.filename.lower() == "xl/workbook.xml" for entry in entries):
        raise UnusableFile("The file is a ZIP archive, not an Excel workbook.")


def _refuse_large_archive(file: BinaryIO, entries: list[zipfile.ZipInfo]) -> None:
    """Counts what unpacking yields: the sizes that the archive declares may be wrong."""
    unpacked = 0
    for entry in entries:
        if entry.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
            raise UnusableFile(
                "The workbook is compressed in an unusual way. Open it in a spreadsheet and save it again."
            )
        for size in _list_sizes(file, entry):
            unpacked += size
            if unpacked > MAX_UNPACKED:
                raise UnusableFile(f"The workbook unpacks to more than {MAX_UNPACKED // 1_048_576} MiB. Split it.")


def _list_sizes(file: BinaryIO, entry: zipfile.ZipInfo) -> Iterator[int]:
    file.seek(entry.header_offset)
    header = file.read(30)
    file.seek(int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little"), 1)
    remaining = entry.compress_size
    if entry.compress_type == zipfile.ZIP_STORED:
        yield remaining
        return
    stream = zlib.decompressobj(-zlib.MAX_WBITS)
    while remaining > 0 and (piece := file.read(min(PIECE, remaining))):
        remaining -= len(piece)
        while piece:
            yield len(stream.decompress(piece, PIECE))
            piece = stream.unconsumed_tail


def _build_text(cell: Cell) -> str:
    """As a person reads it: whole numbers without a fraction, dates as in ISO 8601."""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float):
        return _build_number(cell)
    if isinstance(cell, datetime):
        return cell.isoformat(" ", "seconds")
    if isinstance(cell, date | time):
        return cell.isoformat()
    return str(cell)


def _build_number(number: float) -> str:
    """With the 15 digits that a spreadsheet shows, so without the error of a computation such as 11099.999999999998. A
    fraction of three digits gets a zero: in a text, 12.125 could be twelve thousand."""
    shown = float(f"{number:.15g}")
    if shown.is_integer() and abs(shown) < MAX_EXACT:
        return str(int(number if number.is_integer() else shown))
    text = repr(shown)
    return f"{text}0" if _has_three_decimals(text) else text
