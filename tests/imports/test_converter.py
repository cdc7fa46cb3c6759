"""Files are converted in a process of their own: one that asks for too much ends that process and nothing else."""

import io
from pathlib import Path

import psutil
import pytest
import xlsxwriter  # type: ignore[import-untyped]

from sapa.imports.conversion import FileReading
from sapa.imports.converter import convert_file, preview_file
from sapa.imports.tables.types import TableFormat
from sapa.imports.types import UnusableFile

pytestmark = pytest.mark.processes


def build_reading(format: TableFormat, source: str) -> FileReading:
    return FileReading(resource="customers", format=format, source=source, region="ID", currency="IDR")


async def convert(path: Path, reading: FileReading) -> bytes:
    pieces: list[bytes] = []

    async def write(piece: bytes) -> None:
        pieces.append(piece)

    size = await convert_file(path, reading, write)
    assert size == sum(map(len, pieces))
    return b"".join(pieces)


async def test_a_file_is_converted_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("Nama,Email\n" + "".join(f"Ayu {n},a{n}@example.com\n" for n in range(20_000)))
    lines = (await convert(path, build_reading("csv", "spreadsheet"))).splitlines()
    assert len(lines) == 20_000
    assert lines[-1] == b'{"line":20001,"row":{"email":"a19999@example.com","firstName":"Ayu","lastName":"19999"}}'


async def test_a_workbook_that_needs_too_much_memory_is_refused(tmp_path: Path) -> None:
    """A cell in the last corner makes a table of 17 billion cells."""
    file = io.BytesIO()
    with xlsxwriter.Workbook(file, {"in_memory": True}) as workbook:
        worksheet = workbook.add_worksheet()
        worksheet.write_row(0, 0, ["Nama", "Email"])
        worksheet.write_string(1_048_575, 16_383, "x")
    path = tmp_path / "a.xlsx"
    path.write_bytes(file.getvalue())
    assert len(file.getvalue()) < 20_000
    reading = build_reading("xlsx", "spreadsheet")
    with pytest.raises(UnusableFile, match=r"too much|columns"):
        await preview_file(path, reading)
    with pytest.raises(UnusableFile, match=r"too much|columns"):
        await convert(path, reading)
    assert [child for child in psutil.Process().children() if "converter_process" in " ".join(child.cmdline())] == []


@pytest.mark.long
async def test_a_refusal_is_passed_on(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(UnusableFile, match="not an export of customers from Shopify"):
        await convert(path, build_reading("csv", "shopify"))
