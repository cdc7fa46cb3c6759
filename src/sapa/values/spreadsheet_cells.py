"""Cells that a spreadsheet would run as a formula, escaped in a way that can be undone.

A text that begins with a formula character gets an apostrophe before it, and so does one that looks escaped already.
Numbers and phone numbers may begin with such a character, too, and stay unchanged. In many countries spreadsheets split
lines at semicolons, and some at tabs, whatever the file means: what follows one of them, or a line break, in a text
then begins a cell, and is escaped, too.
"""

import re

_FORMULA = r"['\"]*[=@+\-\t\r]"
_SPLIT = r"[;\t\r\n]"
_is_number = re.compile(r"[+-]?[0-9][0-9.]*").fullmatch
_is_text_formula = re.compile(r'="(?P<text>(?:[^"]|"")*)"').fullmatch
_replace_risky = re.compile(rf"(\A|{_SPLIT})(?={_FORMULA})").sub
_replace_escaped = re.compile(rf"(\A|{_SPLIT})'(?={_FORMULA})").sub


def escape_formula(cell: str) -> str:
    return cell if _is_number(cell) else _replace_risky(r"\1'", cell)


def unescape_formula(cell: str) -> str:
    """Undoes `escape_formula`."""
    return _replace_escaped(r"\1", cell)


def unwrap_text(cell: str) -> str:
    """The text of a formula such as `="0812"`, with which other programs make a spreadsheet leave a text as it is."""
    formula = _is_text_formula(cell) if cell.startswith('="') else None
    return formula["text"].replace('""', '"') if formula else cell
