"""The parameters in a template's text: {{1}}, {{2}} …, or {{name}}. Pure: no database."""

import re
from collections.abc import Callable, Sequence

_PLACEHOLDER = re.compile(r"\{\{\s*([^{}]*?)\s*\}\}")


def list_variables(text: str) -> Sequence[str]:
    """Without duplicates: numbers by their value, names in the order of the text."""
    found = list(dict.fromkeys(_PLACEHOLDER.findall(text)))
    return sorted(found, key=int) if all(_is_number(name) for name in found) else found


def replace_variables(text: str, find: Callable[[str], str]) -> str:
    """A value that contains a placeholder is not filled in again."""
    return _PLACEHOLDER.sub(lambda match: find(match[1]), text)


def split_at_variables(text: str) -> Sequence[str]:
    """The parts of the text between its parameters, and those before the first and after the last."""
    parts = _PLACEHOLDER.split(text)
    return parts[::2]


def _is_number(name: str) -> bool:
    return name.isascii() and name.isdigit()
