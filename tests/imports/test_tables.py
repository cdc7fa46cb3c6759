"""Files of any usual encoding, separator and format become rows; what cannot be read is refused by name."""

import io
import zipfile
from collections.abc import Callable
from datetime import datetime
from functools import cache
from pathlib import Path

import pytest
import xlsxwriter  # type: ignore[import-untyped]

from sapa.imports.tables.files import TableRecord, TableRecords, guess_header, open_table, read_first_rows
from sapa.imports.tables.workbooks import MAX_UNPACKED
from sapa.imports.types import Problem, UnusableFile

TEXT = 'Nama;Kota\r\n"Ayu; ""A""\nLestari";Bandung\r\nJosé;Denpasar\r\n'


def read(path: Path, format: str = "csv") -> list[TableRecord | Problem]:
    table = open_table(path, "xlsx" if format == "xlsx" else "csv")
    return list(TableRecords(table, guess_header(read_first_rows(table))))


def write(folder: Path, content: bytes, name: str = "file.csv") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252"])
@pytest.mark.parametrize("separator", [";", ",", "\t", "|"])
@pytest.mark.parametrize("declared", [False, True])
def test_encodings_and_separators_are_recognised(tmp_path: Path, encoding: str, separator: str, declared: bool) -> None:
    text = TEXT.replace(";", separator).replace(f'"Ayu{separator}', '"Ayu;')
    path = write(tmp_path, ((f"sep={separator}\r\n" if declared else "") + text).encode(encoding))
    first = 3 if declared else 2
    assert read(path) == [
        TableRecord(first, {"nama": 'Ayu; "A"\nLestari', "kota": "Bandung"}),
        TableRecord(first + 2, {"nama": "José", "kota": "Denpasar"}),
    ]
    assert open_table(path, "csv").details.startswith(
        {"utf-8": "UTF-8", "utf-8-sig": "UTF-8", "cp1252": "Windows-1252"}.get(encoding, "UTF-16")
    )


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (b"", "empty"),
        (b"\r\n\r\n", "empty"),
        (b"\xff\xfe\x00\x00a\x00\x00\x00", "UTF-32"),
        (b"%PDF-1.7 a,b", "PDF"),
        (b"PK\x03\x04rest", "Excel workbook"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1rest", ".xls"),
        (b"<html><table>", "HTML"),
        (b"\x1f\x8b\x08rest", "gzip"),
        (b"a,b\n\x00\x01\x02\x00", "binary"),
        (b"a,b\n\x81\xff,x\n", "neither as UTF-8"),
        (b'a,b\n"' + b"x" * 1_100_000, "not be closed"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(tmp_path: Path, content: bytes, named: str) -> None:
    with pytest.raises(UnusableFile, match=named):
        read(write(tmp_path, content))


def test_empty_columns_rows_and_totals_are_left_out(tmp_path: Path) -> None:
    path = write(tmp_path, b"Laporan,,\nNama,Kota,,\nAyu,Bandung,,\n,,,\nBudi\nCitra,Bali,x,\nTotal,2,,\n")
    records = read(path)
    assert records == [
        TableRecord(3, {"nama": "Ayu", "kota": "Bandung"}),
        TableRecord(5, {"nama": "Budi"}),
        Problem(6, "", "has 4 cells, but the header has 2"),
    ]


def test_repeated_and_missing_names_get_a_number(tmp_path: Path) -> None:
    path = write(tmp_path, b"Telp,,Telp\n1,2,3\n")
    assert guess_header(read_first_rows(open_table(path, "csv"))).names == ["Telp", "Column 2", "Telp (2)"]


def build_workbook(fill: Callable[[xlsxwriter.Workbook], None]) -> bytes:
    file = io.BytesIO()
    with xlsxwriter.Workbook(file, {"in_memory": True}) as workbook:
        fill(workbook)
    return file.getvalue()


def test_a_workbook_is_read_as_people_see_it(tmp_path: Path) -> None:
    def fill(workbook: xlsxwriter.Workbook) -> None:
        workbook.add_worksheet("Kosong")
        worksheet = workbook.add_worksheet("Data")
        worksheet.write_string(1, 1, "Daftar")
        worksheet.write_row(3, 1, ["No", "Nama", "HP", "Tanggal", "Lunas", "Total"])
        worksheet.merge_range(4, 1, 5, 1, "A-1")
        worksheet.write_row(4, 2, ["Ayu", 8123456789])
        worksheet.write_datetime(4, 4, datetime(2026, 1, 2, 3, 4, 5),
                                 workbook.add_format({"num_format": "dd/mm/yyyy hh:mm"}))  # fmt: skip
        worksheet.write_boolean(4, 5, True)
        worksheet.write_formula(4, 6, "=1+1", None, 2.5)
        worksheet.write_string(5, 2, "Budi")

    assert read(write(tmp_path, build_workbook(fill), "a.xlsx"), "xlsx") == [
        TableRecord(
            5,
            {"no": "A-1", "nama": "Ayu", "hp": "8123456789", "tanggal": "2026-01-02 03:04:05", "lunas": "true",
             "total": "2.5"},
        ),
        TableRecord(6, {"no": "A-1", "nama": "Budi", "hp": "", "tanggal": "", "lunas": "", "total": ""}),
    ]  # fmt: skip


def test_a_header_of_two_rows_has_the_names_of_the_lower_one(tmp_path: Path) -> None:
    def fill(workbook: xlsxwriter.Workbook) -> None:
        worksheet = workbook.add_worksheet()
        worksheet.write_string(0, 0, "Daftar pelanggan")
        worksheet.merge_range(2, 0, 3, 0, "Nama")
        worksheet.merge_range(2, 1, 3, 1, "No HP")
        worksheet.merge_range(2, 2, 2, 3, "Alamat")
        worksheet.write_row(3, 2, ["Jalan", "Kota"])
        worksheet.write_row(4, 0, ["Ayu", "08123456789", "Jl. Merdeka 1", "Bandung"])

    assert read(write(tmp_path, build_workbook(fill), "a.xlsx"), "xlsx") == [
        TableRecord(5, {"nama": "Ayu", "no hp": "08123456789", "jalan": "Jl. Merdeka 1", "kota": "Bandung"})
    ]


def test_a_formula_that_keeps_a_text_as_it_is_is_that_text(tmp_path: Path) -> None:
    content = b'Kode,HP,Rumus\r\n"=""007""","=""0812""","=""a""&""b"""\r\n'
    assert read(write(tmp_path, content)) == [TableRecord(2, {"kode": "007", "hp": "0812", "rumus": '="a"&"b"'})]


@cache
def build_archive(size: int) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.xml", b"<workbook/>")
        with archive.open("xl/worksheets/sheet1.xml", "w", force_zip64=True) as part:
            for _ in range(size // 1_048_576):
                part.write(bytes(1_048_576))
    return file.getvalue()


def test_a_small_file_that_unpacks_to_much_is_refused(tmp_path: Path) -> None:
    bomb = build_archive(MAX_UNPACKED + 1_048_576)
    assert len(bomb) < 1_048_576
    with pytest.raises(UnusableFile, match="unpacks to more than 256 MiB"):
        read(write(tmp_path, bomb, "bomb.xlsx"), "xlsx")


def test_a_workbook_that_declares_a_smaller_size_is_refused_just_so(tmp_path: Path) -> None:
    bomb = bytearray(build_archive(MAX_UNPACKED + 1_048_576))
    directory = bomb.rindex(b"PK\x01\x02")
    bomb[directory + 24 : directory + 28] = (100).to_bytes(4, "little")
    with pytest.raises(UnusableFile, match=r"unpacks to more than|damaged"):
        read(write(tmp_path, bytes(bomb), "bomb.xlsx"), "xlsx")


@pytest.mark.parametrize("content", [b"Nama,Kota\nAyu,Bandung\n", b"PK\x03\x04 nothing", b""])
def test_a_file_that_is_not_a_workbook_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(UnusableFile):
        read(write(tmp_path, content, "a.xlsx"), "xlsx")


def test_an_archive_of_something_else_is_refused(tmp_path: Path) -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("word/document.xml", b"<x/>")
    with pytest.raises(UnusableFile, match="ZIP archive, not an Excel workbook"):
        read(write(tmp_path, file.getvalue(), "a.xlsx"), "xlsx")
