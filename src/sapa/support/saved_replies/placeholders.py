"""Placeholders of saved replies, in both languages. Pure."""

import re
from collections.abc import Mapping

NAMES: Mapping[str, str] = {
    "nama": "name", "pesanan": "order", "resi": "tracking", "agen": "agent",
    "name": "name", "order": "order", "tracking": "tracking", "agent": "agent",
}  # fmt: skip
"""What each placeholder stands for."""

_PLACEHOLDER = re.compile(r"\{([A-Za-z_]{1,30})\}", re.ASCII)


def list_unknown(text: str) -> list[str]:
    """Words in braces that stand for nothing."""
    return [name for name in _PLACEHOLDER.findall(text) if name not in NAMES]


def list_known(text: str) -> list[str]:
    """The placeholders of a text that nothing has filled in."""
    return [name for name in _PLACEHOLDER.findall(text) if name in NAMES]


def fill(text: str, values: Mapping[str, str | None]) -> tuple[str, list[str]]:
    """The text with the values, and the placeholders without one, which stay as they are."""
    missing: list[str] = []

    def replace(match: re.Match[str]) -> str:
        value = values.get(NAMES.get(match[1], ""))
        if value is None:
            missing.append(match[1])
            return match[0]
        return value

    return _PLACEHOLDER.sub(replace, text), list(dict.fromkeys(missing))
