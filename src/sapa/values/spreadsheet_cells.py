"""Cells that a spreadsheet would run as a formula, made harmless in a way that can be undone.

A text that begins with one of the signs gets an apostrophe before it, and so does one that looks as if it had got one
already. Numbers and phone numbers begin with a sign, too, and are left as they are.
"""

import re

_is_risky = re.compile(r"'*[=@+\-\t\r]").match
_is_number = re.compile(r"[+-]?[0-9][0-9.]*").fullmatch
_is_disarmed = re.compile(r"'+[=@+\-\t\r]").match


def disarm(cell: str) -> str:
    return "'" + cell if _is_risky(cell) and not _is_number(cell) else cell


def rearm(cell: str) -> str:
    """What was given to `disarm`."""
    return cell[1:] if cell[:1] == "'" and _is_disarmed(cell) else cell
