"""Phone numbers in their one international form."""

import phonenumbers

REGIONS: frozenset[str] = frozenset(phonenumbers.SUPPORTED_REGIONS)


LONGEST = len("+") + 15


class BadPhone(ValueError):
    """A text that is no phone number; the message says how to write one."""


def is_region(code: str) -> bool:
    return code in REGIONS


def parse_phone(text: str, region: str) -> str:
    """E.164. A number without a country code is one of the region's."""
    if text.startswith("00"):  # how most of the world dials a country code
        text = "+" + text[2:]
    try:
        number = phonenumbers.parse(text, region)
    except phonenumbers.NumberParseException:
        raise BadPhone(_advice(region)) from None
    if number.extension or not phonenumbers.is_possible_number(number):
        raise BadPhone(_advice(region))
    e164 = phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)
    if len(e164) > LONGEST or phonenumbers.parse(e164, region) != number:
        raise BadPhone(_advice(region))
    return e164


def _advice(region: str) -> str:
    example = phonenumbers.example_number_for_type(region, phonenumbers.PhoneNumberType.MOBILE)
    written = phonenumbers.format_number(example, phonenumbers.PhoneNumberFormat.E164) if example else "+628123456789"
    return f"must be a phone number with its country code, such as {written}"
