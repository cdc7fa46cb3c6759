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
# Each translates random bytes to characters. The version is 7 and one random bit; the variant of RFC 9562 is a random
# bit, the bits 10, two random bits.
_CHARACTERS = bytes(ord(ALPHABET[byte & 31]) for byte in range(256))
_VERSION_7 = bytes(ord(ALPHABET[0b01110 | byte & 1]) for byte in range(256))
_VARIANT = bytes(ord(ALPHABET[(byte & 4) << 2 | 0b01000 | byte & 3]) for byte in range(256))


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
    return prefix + _format_milliseconds(time.time_ns() // 1_000_000) + _take_random()


_random: deque[str] = deque()
"""Made ahead, because an imported order has ten ids. Two processes never share it."""
os.register_at_fork(after_in_child=_random.clear)


def _take_random() -> str:
    """The last sixteen characters of an id: random but for the bits that name the version and the variant."""
    try:
        return _random.pop()
    except IndexError:
        read = os.urandom(16 * 256)
        characters = bytearray(read.translate(_CHARACTERS))
        characters[0::16] = read[0::16].translate(_VERSION_7)
        characters[3::16] = read[3::16].translate(_VARIANT)
        text = characters.decode()
        _random.extend(text[start : start + 16] for start in range(16, len(text), 16))
        return text[:16]


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
