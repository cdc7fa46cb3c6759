"""Public ids: a prefix that names the kind, then 26 lower-case Crockford characters of a UUIDv7."""

import os
import re
import time
from collections import deque
from functools import lru_cache
from typing import Annotated
from uuid import UUID

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_PAIRS = [a + b for a in ALPHABET for b in ALPHABET]
_CHARACTERS = bytes(ord(ALPHABET[byte & 31]) for byte in range(256))
_VERSION_7 = [ALPHABET[0b01110 | random] for random in range(2)]
_VARIANT = [ALPHABET[first << 4 | 0b01000 | rest] for first in range(2) for rest in range(4)]
"""Of RFC 9562: a random bit, the bits 10, two random bits."""


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
        """Whether a text has the form of such an id; checked before SQL runs."""
        return self._matches(text) is not None


def new_id(prefix: str) -> str:
    """Sortable by the millisecond of its creation; the rest is random."""
    # Ten characters are the milliseconds, the other sixteen are random but for the bits that name the version and the
    # variant. Each random byte becomes a character at once, because an imported order has ten ids.
    random = _take_random()
    text = random.translate(_CHARACTERS).decode()
    milliseconds = _format_milliseconds(time.time_ns() // 1_000_000)
    return f"{prefix}{milliseconds}{_VERSION_7[random[0] & 1]}{text[1:3]}{_VARIANT[random[3] & 7]}{text[4:]}"


_random: deque[bytes] = deque()
"""Read ahead, because a system call takes as long as the rest of an id. Two processes never share it."""
os.register_at_fork(after_in_child=_random.clear)


def _take_random() -> bytes:
    try:
        return _random.pop()
    except IndexError:
        read = os.urandom(16 * 256)
        _random.extend(read[start : start + 16] for start in range(16, len(read), 16))
        return read[:16]


@lru_cache(maxsize=1)
def _format_milliseconds(value: int) -> str:
    return "".join(_PAIRS[value >> shift & 1023] for shift in (40, 30, 20, 10, 0))


def new_bits() -> int:
    """A UUIDv7."""
    bits = (time.time_ns() // 1_000_000) << 80 | int.from_bytes(os.urandom(10))
    bits = bits & ~(0xF << 76) | 0x7 << 76  # version 7
    return bits & ~(0x3 << 62) | 0x2 << 62  # variant of RFC 9562


class UuidKind(IdKind):
    """Marks a string as a UUID in its usual form; the name distinguishes kinds that are both UUIDs."""

    def __init__(self, name: str) -> None:
        self.prefix = name
        self.pattern = "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"
        self.example = "0199a1f0-7c3e-7d52-9b1a-4e6f2c8d0a35"
        self._matches = re.compile(self.pattern[:-1]).fullmatch

    def new(self) -> str:
        return str(UUID(int=new_bits()))


class NumberKind(IdKind):
    """Marks a string as an id that is a whole number; the name distinguishes kinds that are both numbers."""

    def __init__(self, name: str) -> None:
        self.prefix = name
        self.pattern = "^[1-9][0-9]{0,14}$"
        self.example = "104217"
        self._matches = re.compile(self.pattern[:-1]).fullmatch

    def new(self) -> str:
        """Far above the numbers that the database assigns."""
        return str(10**14 + int.from_bytes(os.urandom(5)))


CUSTOMER_ID = IdKind("cust_")
CustomerId = Annotated[str, CUSTOMER_ID]
"""Here, because rooms below `customers` use it, too."""
