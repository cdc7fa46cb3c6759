"""Cells that a spreadsheet would run as a formula, escaped in a way that can be undone.

A text that begins with a formula character gets an apostrophe before it, and so does one that looks escaped already.
Numbers and phone numbers may begin with such a character, too, and stay unchanged.
"""

import re

_is_risky = re.compile(r"'*[=@+\-\t\r]").match
_is_number = re.compile(r"[+-]?[0-9][0-9.]*").fullmatch
_is_escaped = re.compile(r"'+[=@+\-\t\r]").match


def escape_formula(cell: str) -> str:
    return "'" + cell if _is_risky(cell) and not _is_number(cell) else cell


def unescape_formula(cell: str) -> str:
    """Undoes `escape_formula`."""
    return cell[1:] if cell[:1] == "'" and _is_escaped(cell) else cell
