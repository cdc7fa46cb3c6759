"""Voucher codes that people can read out: Crockford's base 32 with its check character."""

import secrets

from sapa.values.ids import ALPHABET

LENGTH = 10
CHECK_BASE = 37
SYMBOLS = ALPHABET.upper()


def new_voucher(prefix: str | None) -> str:
    """The prefix, ten random characters, and a check character that detects most reading and typing errors."""
    number = secrets.randbits(5 * LENGTH)
    # Five of the 37 check characters are symbols that a cash register may not have.
    while number % CHECK_BASE >= len(SYMBOLS):
        number = secrets.randbits(5 * LENGTH)
    digits = [SYMBOLS[number >> shift & 31] for shift in range(5 * (LENGTH - 1), -1, -5)]
    return (prefix or "") + "".join(digits) + SYMBOLS[number % CHECK_BASE]
