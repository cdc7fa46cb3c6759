"""Words that stand for a value: yes and no, lists of tags."""

import re

from sapa.imports.cells import BadCell

_YES = {"yes", "y", "ya", "true", "1", "benar", "iya", "on", "subscribed", "subscribe"}
_NO = {"no", "n", "tidak", "false", "0", "salah", "tdk", "off", "unsubscribed", "unsubscribe"}
LONGEST_TAG = 100


def find_flag(text: str) -> bool | None:
    """None for an empty cell; raises BadCell for a word that is neither."""
    word = text.strip().casefold()
    if not word:
        return None
    if word in _YES:
        return True
    if word in _NO:
        return False
    raise BadCell(f"must be yes or no (ya or tidak); it is {text[:40]!r}")


def split_tags(text: str, separators: str = ",;|") -> list[str]:
    """Each tag once, in their order."""
    parts = re.split(f"[{re.escape(separators)}]", text)
    return list(dict.fromkeys(tag for part in parts if (tag := part.strip()[:LONGEST_TAG])))


def split_escaped(text: str) -> list[str]:
    """A list whose commas are escaped inside its values, as WooCommerce writes it: `a, b\\, c`."""
    parts = re.split(r"(?<!\\),", text)
    return [value for part in parts if (value := part.replace("\\,", ",").strip())]
