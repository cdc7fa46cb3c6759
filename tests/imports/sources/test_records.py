from collections.abc import Sequence

import pytest

from sapa.imports.sources.interface import Converted, ConvertedRow
from sapa.imports.sources.records import convert_groups
from sapa.imports.tables.files import TableRecord
from sapa.imports.types import Problem


def convert(names: Sequence[str | None]) -> list[Converted]:
    """Rows of orders by name; None for a row that cannot be read."""
    rows = [
        Problem(line, "", "has 4 cells, but the header has 2") if name is None else TableRecord(line, {"name": name})
        for line, name in enumerate(names, 2)
    ]
    return list(convert_groups(rows, lambda row: row.get("name"), lambda group: {"lines": len(group)}))


def test_a_row_without_a_name_belongs_to_the_one_above() -> None:
    assert convert(["#1", "", "#1", "#2"]) == [ConvertedRow(2, {"lines": 3}), ConvertedRow(5, {"lines": 1})]


@pytest.mark.parametrize(
    ("names", "converted", "refused"),
    [
        (["#1", None, "#1", "#2"], [5], [2]),
        (["#1", "#2", "#2", None, "#3", "#4"], [2, 7], [3, 6]),
        ([None, "#1", "#2"], [4], [3]),
        (["#1", "#2", None], [2], [3]),
    ],
)
def test_an_order_is_not_imported_without_a_line_that_may_be_its_own(
    names: list[str | None], converted: list[int], refused: list[int]
) -> None:
    found = convert(names)
    unread = names.index(None) + 2
    problems = {one.line: one.message for one in found if isinstance(one, Problem)}
    assert [one.line for one in found if isinstance(one, ConvertedRow)] == converted
    assert sorted(problems) == sorted([unread, *refused])
    assert all(f"line {unread}," in problems[line] for line in refused)
