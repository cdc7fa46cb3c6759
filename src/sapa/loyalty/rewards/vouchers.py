"""Voucher codes that people can read out: Crockford's base 32, with his check character. Pure but for chance."""

import secrets

from sapa.values.ids import ALPHABET

LENGTH = 10
CHECK_BASE = 37
SYMBOLS = ALPHABET.upper()


def new_voucher(prefix: str | None) -> str:
    """The prefix, ten characters that nobody can guess, and one that tells most slips of reading or typing."""
    number = secrets.randbits(5 * LENGTH)
    # The last five of the 37 check characters are signs that a till may not have.
    while number % CHECK_BASE >= len(SYMBOLS):
        number = secrets.randbits(5 * LENGTH)
    digits = [SYMBOLS[number >> shift & 31] for shift in range(5 * (LENGTH - 1), -1, -5)]
    return (prefix or "") + "".join(digits) + SYMBOLS[number % CHECK_BASE]
