"""The time in an id: its first ten characters are the millisecond of its making."""

from sapa.values.ids import ALPHABET

TIME_DIGITS = 10


def made_at(id: str) -> float:
    """The Unix time in an id, to the millisecond."""
    return read_digits(id.partition("_")[2][:TIME_DIGITS]) / 1000


def write_time(seconds: float) -> str:
    """How ids of this time begin, after their prefix."""
    return write_digits(round(seconds * 1000), TIME_DIGITS)


def read_digits(digits: str) -> int:
    number = 0
    for digit in digits:
        number = number * 32 + ALPHABET.index(digit)
    return number


def write_digits(number: int, length: int) -> str:
    return "".join(ALPHABET[number >> 5 * place & 31] for place in reversed(range(length)))
