"""The time in an id: its first ten characters are the millisecond of its creation."""

from sapa.values.ids import ALPHABET

TIME_DIGITS = 10


def parse_time(id: str) -> float:
    """The Unix time in an id, to the millisecond."""
    return parse_digits(id.partition("_")[2][:TIME_DIGITS]) / 1000


def format_time(seconds: float) -> str:
    """The first characters of ids of this time, after their prefix."""
    return format_digits(round(seconds * 1000), TIME_DIGITS)


def parse_digits(digits: str) -> int:
    number = 0
    for digit in digits:
        number = number * 32 + ALPHABET.index(digit)
    return number


def format_digits(number: int, length: int) -> str:
    return "".join(ALPHABET[number >> 5 * position & 31] for position in reversed(range(length)))
