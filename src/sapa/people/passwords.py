"""Passwords: hashed with argon2id in a thread; the most common ones are refused."""

import asyncio
from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from sapa.people.types import WeakPassword

LEAST_CHARACTERS = 12
MOST_CHARACTERS = 256

_hasher = PasswordHasher()
_ROWS = ("0123456789", "qwertyuiop", "asdfghjkl", "zxcvbnm", "abcdefghijklmnopqrstuvwxyz")


@cache
def _dummy_hash() -> str:
    """A hash that takes as long to verify as a real one, so that timing does not reveal whether a user exists."""
    return _hasher.hash("nobody has this password")


def check_strength(password: str) -> None:
    if not LEAST_CHARACTERS <= len(password) <= MOST_CHARACTERS:
        raise WeakPassword.field("password", f"must have {LEAST_CHARACTERS} to {MOST_CHARACTERS} characters")
    plain = password.casefold()
    if len(set(plain)) < 5 or any(plain in row * 10 or plain in row[::-1] * 10 for row in _ROWS):
        raise WeakPassword.field("password", "is too easy to guess; use a few words of your own")


async def hash_password(password: str) -> str:
    return await asyncio.to_thread(_hasher.hash, password)


async def is_correct(password: str, stored: str | None) -> bool:
    """False for an account without a password, in the same time."""
    matches = await asyncio.to_thread(_verify, password, stored)
    return matches and stored is not None


def _verify(password: str, stored: str | None) -> bool:
    try:
        return _hasher.verify(stored or _dummy_hash(), password)
    except (VerificationError, InvalidHashError):
        return False
