"""Passwords: hashed with argon2id in threads of their own; common and personal ones are refused."""

import asyncio
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any, TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from sapa.people.types import SignInBusy, WeakPassword

MIN_CHARACTERS = 12
MAX_CHARACTERS = 256
MAX_HASHED_AT_ONCE = 20
"""One is hashed, the others wait: about two seconds for the last of them."""
NICENESS = 10
MAX_ESTIMATED = 72
"""The estimator's time grows with the cube of the length."""
LEET = "@({[<!|$+%"
MAX_LEET = 2
"""Different symbols that may stand for letters. The estimator's time grows exponentially with their number: two, beside
all digits, take a third of a second."""
MIN_SCORE = 3
"""Of 0 to 4: more than 10^8 guesses."""
MIN_UNPERSONAL = 8
MIN_PERSONAL_WORD = 3

Result = TypeVar("Result")

_hasher = PasswordHasher()
_split_words = re.compile(r"[\W_]+").split

_PERSONAL = "is made of your name, your e-mail address or your company's name; use a few words of your own"
_REASONS = {
    "dictionary": "is a common password; use a few words of your own",
    "spatial": "follows the keys of a keyboard; use a few words of your own",
    "repeat": "repeats itself; use a few words of your own",
    "sequence": "is a sequence of letters or digits; use a few words of your own",
    "date": "is little more than a date; use a few words of your own",
}
_GUESSABLE = "is too easy to guess; use a few words of your own"


def _lower_priority() -> None:
    if sys.platform != "linux":  # only there a thread has a priority of its own
        return
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), min(19, os.nice(0) + NICENESS))


class HashQueue:
    """Hashes one password after the other, at a lower priority than callers. So many guesses at once cost one core and
    64 MiB, and a limit of their own: nothing else waits for this thread."""

    def __init__(self, name: str) -> None:
        self._executor = ThreadPoolExecutor(1, name, initializer=_lower_priority)
        self._taken = 0

    def check_room(self) -> None:
        """Raises SignInBusy when too many wait already."""
        if self._taken >= MAX_HASHED_AT_ONCE:
            raise SignInBusy(headers={"retry-after": "5"})

    @contextmanager
    def place(self) -> Iterator["HashQueue"]:
        self.check_room()
        self._taken += 1
        try:
            yield self
        finally:
            self._taken -= 1

    async def hash(self, password: str) -> str:
        return await self._run(_hasher.hash, password)

    async def is_correct(self, password: str, stored: str | None) -> bool:
        """False for an account without a password, in the same time."""
        matches = await self._run(_verify, password, stored)
        return matches and stored is not None

    async def check_strength(self, password: str, personal: Sequence[str]) -> None:
        """`personal` are names and addresses of the person and the company."""
        if reason := await self._run(find_weakness, password, personal):
            raise WeakPassword.field("password", reason)

    async def _run(self, work: Callable[..., Result], *arguments: object) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._executor, work, *arguments)


STRANGERS = HashQueue("passwords")
KNOWN_BROWSERS = HashQueue("passwords of known browsers")
"""People who have signed in before do not wait behind strangers who guess."""


@cache
def _dummy_hash() -> str:
    """A hash that takes as long to verify as a real one, so that timing does not reveal whether a user exists."""
    return _hasher.hash("nobody has this password")


def _verify(password: str, stored: str | None) -> bool:
    try:
        return _hasher.verify(stored or _dummy_hash(), password)
    except (VerificationError, InvalidHashError):
        return False


def find_weakness(password: str, personal: Sequence[str]) -> str | None:
    """Why the password cannot be used, and what to do."""
    if not MIN_CHARACTERS <= len(password) <= MAX_CHARACTERS:
        return f"must have {MIN_CHARACTERS} to {MAX_CHARACTERS} characters"
    words = list_personal_words(personal)
    if _is_personal(password, words):
        return _PERSONAL
    # Spaces and punctuation between common words do not make a password better.
    for text in (password, "".join(_split_words(password)) or password):
        if reason := _estimate(text, words):
            return reason
    return None


def list_personal_words(personal: Sequence[str]) -> list[str]:
    """The longest first, in lower case."""
    words = {word for text in personal for word in _split_words(text.casefold()) if len(word) >= MIN_PERSONAL_WORD}
    return sorted(words, key=lambda word: (-len(word), word))


def _is_personal(password: str, words: Sequence[str]) -> bool:
    plain = rest = "".join(_split_words(password.casefold()))
    for word in words:
        rest = rest.replace(word, "")
    return rest != plain and len(rest) < MIN_UNPERSONAL


def _estimate(password: str, words: list[str]) -> str | None:
    # Imported here: its word lists take 14 MB, and few processes ever set a password.
    text = limit_leet(password[:MAX_ESTIMATED])
    found: dict[str, Any] = import_module("zxcvbn").zxcvbn(text, words, MAX_ESTIMATED)
    if found["score"] >= MIN_SCORE:
        return None
    longest = max(found["sequence"], key=lambda match: len(match["token"]))
    if longest.get("dictionary_name") == "user_inputs":
        return _PERSONAL
    return _REASONS.get(longest["pattern"], _GUESSABLE)


def limit_leet(text: str) -> str:
    """Further symbols become one that stands for itself only, so that the password seems weaker."""
    used = list(dict.fromkeys(char for char in text if char in LEET))
    return text.translate(dict.fromkeys(map(ord, used[MAX_LEET:]), "~"))
