"""Finds what a person wrote above the mail that they answer, which mail programs quote. Pure."""

import re

MAX_LENGTH = 4_000
"""How much of a text is looked at. It is for short answers."""

_ATTRIBUTIONS = ("wrote:", "menulis:")
# A quoted line, a line that separates (by name or not), a signature, or the head of the quoted mail.
_begins_rest = re.compile(
    r">|_{10}|-{2,}\s*[^-\s][^-]*-{2,}\Z|--\Z|(?:sent from|dikirim dari|get outlook for)\b|\*?(?:from|dari):\*?\s.*@",
    re.IGNORECASE,
).match


def find_own_text(text: str) -> str | None:
    """The text above a signature or a quoted mail; None if there is no such thing, or nothing above it."""
    lines = [line.strip() for line in text[:MAX_LENGTH].split("\n")]
    end = next((number for number, line in enumerate(lines) if _is_attribution(line) or _begins_rest(line)), None)
    if end is None:
        return None
    above = "\n".join(lines[: end + _is_attribution(lines[end])]).rstrip()
    earlier, _, last = above.rpartition("\n\n")
    return (earlier if last.endswith(":") else above).strip() or None


def _is_attribution(line: str) -> bool:
    """The end of the line that says who wrote the quoted mail; mail programs break it."""
    return line.endswith(":") and (line.lower().endswith(_ATTRIBUTIONS) or "@" in line)
