"""Batches are read ahead: complete, in order, of the size that is asked for, and not without bound."""

import asyncio

import pytest
from msgspec import Struct

from sapa.imports.lines import Read
from sapa.imports.read_ahead import ReadAhead, read_ahead
from sapa.imports.rows import FileRow, RowReader, read_header
from sapa.imports.types import ImportJob

ROWS = 1_000
CONTENT = b"a\n" + b"".join(b"%d\n" % number for number in range(ROWS))


class Cell(Struct, frozen=True):
    a: str


async def open_reader(read: Read) -> RowReader:
    header = await read_header(read, "csv", Cell)
    return RowReader(read, ImportJob("imp_1", "customers", "csv", False, len(CONTENT), 0, 0), header, Cell)


async def read_all(position: int) -> bytes:
    return CONTENT[position:]


def list_cells(rows: list[FileRow]) -> list[str]:
    return [row.value.a for row in rows if isinstance(row.value, Cell)]


async def list_batches(ahead: ReadAhead, sizes: list[int]) -> list[list[str]]:
    found = []
    for size in sizes:
        batch = await ahead.next_batch(size)
        assert batch.is_last or CONTENT[batch.position :].split(b"\n")[0].decode() == str(
            int(list_cells(batch.rows)[-1]) + 1
        )
        found.append(list_cells(batch.rows))
    return found


async def test_batches_have_the_size_that_is_asked_for_and_every_row_once() -> None:
    async with read_ahead(await open_reader(read_all), 100) as ahead:
        found = await list_batches(ahead, [25, 75, 400, 400, 400])
    assert [len(cells) for cells in found] == [25, 75, 400, 400, 100]
    assert [cell for cells in found for cell in cells] == [str(number) for number in range(ROWS)]


async def test_a_batch_can_grow_by_half_from_the_smallest_on() -> None:
    async with read_ahead(await open_reader(read_all), 400) as ahead:
        found = await list_batches(ahead, [25, 37, 52])
    assert [len(cells) for cells in found] == [25, 35, 50]


async def test_what_reading_raises_comes_after_the_rows_before() -> None:
    async def fail_later(position: int) -> bytes:
        if position >= 1_000:
            raise OSError("the disk is gone")
        return CONTENT[position:1_000]

    async with read_ahead(await open_reader(fail_later), 100) as ahead:
        (cells,) = await list_batches(ahead, [100])
        assert cells[-1] == "99"
        with pytest.raises(OSError, match="the disk is gone"):
            await ahead.next_batch(400)


async def test_it_waits_when_it_is_far_enough_ahead() -> None:
    read_to = 0

    async def watch(position: int) -> bytes:
        nonlocal read_to
        read_to = max(read_to, position)
        return CONTENT[position : position + 50]

    async with read_ahead(await open_reader(watch), 100) as ahead:
        await ahead.next_batch(25)
        await asyncio.sleep(0.2)
        assert read_to < len(CONTENT) // 4
