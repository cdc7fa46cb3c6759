"""The file of lines that an import rejected."""

import csv
import os
import stat
from io import StringIO
from pathlib import Path
from typing import BinaryIO

from sapa.cli.files import build_name_beside, explain_os_errors, find_kind
from sapa.http.errors import Invalid
from sapa.imports.types import Problem
from sapa.values.spreadsheet_cells import escape_formula

HEADER = b"line,field,reason\r\n"


def check_error_file(path: Path, source: BinaryIO) -> None:
    """Before the first row: checks that it is writable and replaces nothing but an earlier error file."""
    kind = find_kind(path)
    if kind == stat.S_IFDIR:
        raise Invalid(f"The error file {path} cannot be written to: it is a folder.")
    with explain_os_errors(f"The error file {path} cannot be written to"):
        if kind is not None and os.path.samestat(path.stat(), os.fstat(source.fileno())):
            raise Invalid(f"{path} is the file to import; choose another file with --errors.")
        if kind in {None, stat.S_IFREG}:
            beside = build_name_beside(path.resolve())
            beside.touch()
            beside.unlink()
    if kind == stat.S_IFREG and not _is_ours(path):
        raise Invalid(f"{path} exists and is not an error file of an import; choose another file with --errors.")


def _is_ours(path: Path) -> bool:
    with explain_os_errors(f"The error file {path} cannot be read"), path.open("rb") as file:
        return file.readline(len(HEADER)).rstrip() == HEADER.rstrip()


def drop_error_file(path: Path) -> None:
    """Removes the file of an earlier run, so that it is not taken for this one's."""
    if find_kind(path) == stat.S_IFREG and _is_ours(path):
        with explain_os_errors(f"The error file {path} cannot be removed"):
            path.resolve().unlink(missing_ok=True)


def build_lines(problems: list[Problem]) -> bytes:
    text = StringIO()
    csv.writer(text).writerows(
        [problem.line, escape_formula(problem.field), escape_formula(problem.message)] for problem in problems
    )
    return text.getvalue().encode()
