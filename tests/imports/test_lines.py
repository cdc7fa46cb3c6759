"""Splitting a file into records: each line is reported once, and the cost is linear in the file's length."""

import asyncio
import sys
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from sapa.imports.lines import Read
from sapa.imports.rows import Batch, RowReader, read_header
from sapa.imports.types import ImportJob, Problem


class Sheet(Struct, frozen=True):
    """Two columns."""

    a: str = ""
    b: str = ""


def read_from(content: bytes, piece: int = 1_048_576) -> Read:
    async def read(position: int) -> bytes:
        return content[position : position + piece]

    return read


def read_batches(content: bytes, piece: int = 1_048_576) -> list[Batch]:
    async def run() -> list[Batch]:
        read = read_from(content, piece)
        header = await read_header(read, "csv", Sheet)
        reader = RowReader(read, ImportJob("imp_1", "customers", "csv", False, len(content), 0, 0), header, Sheet)
        batches = [await reader.next_batch(50, 4 * 1_048_576)]
        while not batches[-1].is_last:
            batches.append(await reader.next_batch(50, 4 * 1_048_576))
        return batches

    return asyncio.run(run())


def line_numbers(batches: list[Batch]) -> list[int]:
    return [part.found.line for batch in batches for part in batch.parts]


def count_calls(content: bytes) -> int:
    calls = 0

    def count(frame: FrameType, event: str, _: Any) -> None:
        nonlocal calls
        calls += event == "call" and "sapa" in frame.f_code.co_filename

    sys.setprofile(count)
    try:
        read_batches(content)
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(b'x"y,"z\n', id="never closed", marks=pytest.mark.long),
        pytest.param(b'a",b,"c\n', id="closed at the end, too many cells", marks=pytest.mark.long),
        pytest.param(b'"x\n', id="text behind", marks=pytest.mark.long),
        pytest.param(b'x,"y\n', id="open", marks=pytest.mark.long),
        pytest.param(b'"a""\n', id="doubled", marks=pytest.mark.long),
        pytest.param(b'x,"y\n' + b"z\n" * 40, id="few open"),
    ],
)
def test_stray_quotes_cost_no_more_than_the_file_is_long(line: bytes) -> None:
    lines = 3_000 // line.count(b"\n")
    content = b"a,b\n" + (line * lines + b'"\n') * 2 + b"good,one\n"
    assert count_calls(content) < 200 * content.count(b"\n")
    batches = read_batches(content)
    last = batches[-1].parts[-1].found
    assert not isinstance(last, Problem)
    assert last.line == content.count(b"\n")
    assert (batches[-1].position, batches[-1].line) == (len(content), content.count(b"\n"))


def test_every_line_of_a_file_with_stray_quotes_is_reported_once() -> None:
    content = b"a,b\n" + b'a",b,"c\n' * 5_000 + b'"\n' + b"good,one\n"
    assert line_numbers(read_batches(content)) == list(range(2, 5_004))


@given(
    st.lists(st.sampled_from([b"x", b'"', b",", b"\n", b'""', b'",', b',"', b"\r\n"]), max_size=40), st.integers(1, 9)
)
def test_chunks_and_positions_fit_together_for_any_file(parts: list[bytes], piece: int) -> None:
    content = b"a,b\n" + b"".join(parts)
    batches = read_batches(content)
    assert batches == read_batches(content, piece)
    numbers = line_numbers(batches)
    assert numbers == sorted(set(numbers))
    for batch in batches:
        split = batch.split()
        assert [part for one in split for part in one.parts] == batch.parts
        assert (split[-1].position, split[-1].line, split[-1].is_last) == (batch.position, batch.line, batch.is_last)
    assert (batches[-1].position, batches[-1].line) == (len(content), len(content.splitlines()))


def test_a_record_of_several_lines_may_have_a_mebibyte_and_not_more() -> None:
    for size, is_good in ((1_048_570, True), (1_048_580, False)):
        content = b'a,b\nx,"' + b"y" * 100 + b"\n" + b"z" * (size - 105) + b'"\nx,y\n'
        is_bad = [isinstance(part.found, Problem) for part in read_batches(content)[0].parts]
        assert is_bad == ([False, False] if is_good else [True, True, False])


async def test_reading_yields_to_other_tasks() -> None:
    content = b"a,b\n" + b"x,y\n" * 20_000
    read = read_from(content)
    header = await read_header(read, "csv", Sheet)
    reader = RowReader(read, ImportJob("imp_1", "customers", "csv", False, len(content), 0, 0), header, Sheet)
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    await reader.next_batch(20_000, 4 * 1_048_576)
    task.cancel()
    assert turns >= len(content) // 32_768
