"""Public ids: a prefix that names the kind, then 26 lower-case Crockford characters of a UUIDv7."""

import os
import re
import time

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_PAIRS = [a + b for a in ALPHABET for b in ALPHABET]


class IdKind:
    """Marks a string as an id of one kind: `CustomerId = Annotated[str, CUSTOMER_ID]`."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.pattern = f"^{prefix}[0-7][{ALPHABET}]{{25}}$"
        self.example = f"{prefix}01jc9y3q5me8w92v7x4t6r0n1k"
        self._matches = re.compile(self.pattern[:-1]).fullmatch

    def new(self) -> str:
        return new_id(self.prefix)

    def matches(self, text: str) -> bool:
        """Whether a text could be such an id at all; asked before SQL is."""
        return self._matches(text) is not None


def new_id(prefix: str) -> str:
    """Sortable by its millisecond of making, unguessable in its rest."""
    bits = (time.time_ns() // 1_000_000) << 80 | int.from_bytes(os.urandom(10))
    bits = bits & ~(0xF << 76) | 0x7 << 76  # version 7
    bits = bits & ~(0x3 << 62) | 0x2 << 62  # variant of RFC 9562
    return prefix + "".join(_PAIRS[bits >> shift & 0x3FF] for shift in range(120, -1, -10))
