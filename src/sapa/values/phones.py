"""Phone numbers in E.164."""

import re

import phonenumbers

REGIONS: frozenset[str] = frozenset(phonenumbers.SUPPORTED_REGIONS)


LONGEST = len("+") + 15

# The parser is slow because it knows every country. Indonesian numbers need only these patterns: E.164 as it is,
# and mobile numbers as people write them there.
_is_plain = re.compile(r"\+62[1-9][0-9]{6,12}", re.ASCII).fullmatch
_find_mobile = re.compile(r"0?(8[1-9][0-9]{7,9})", re.ASCII).fullmatch


class BadPhone(ValueError):
    """A text that is not a phone number; the message says how to write one."""


def is_region(code: str) -> bool:
    return code in REGIONS


def parse_phone(text: str, region: str) -> str:
    """E.164. A number without a country code belongs to the region."""
    if _is_plain(text):
        return text
    if region == "ID" and (mobile := _find_mobile(text)):
        return f"+62{mobile[1]}"
    return _parse(text, region)


def find_region(e164: str) -> str | None:
    """The country of a number; for a number that is not assigned, the largest one with its country code."""
    try:
        number = phonenumbers.parse(e164)
    except phonenumbers.NumberParseException:
        return None
    region = phonenumbers.region_code_for_number(number) or phonenumbers.region_code_for_country_code(
        number.country_code or 0
    )
    return region if region in REGIONS else None


def find_main_region(region: str) -> str | None:
    """The largest country with the same country code: GB for Guernsey, US for Canada; None if it is not a country."""
    main = phonenumbers.region_code_for_country_code(phonenumbers.country_code_for_region(region))
    return main if main in REGIONS else None


def _parse(text: str, region: str) -> str:
    if text.startswith("00"):  # the international prefix in most countries
        text = "+" + text[2:]
    try:
        number = phonenumbers.parse(text, region)
    except phonenumbers.NumberParseException:
        raise BadPhone(_build_advice(region)) from None
    if number.extension or not phonenumbers.is_possible_number(number):
        raise BadPhone(_build_advice(region))
    e164 = phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)
    if len(e164) > LONGEST or (e164 != text and phonenumbers.parse(e164, region) != number):
        raise BadPhone(_build_advice(region))
    return e164


def _build_advice(region: str) -> str:
    example = phonenumbers.example_number_for_type(region, phonenumbers.PhoneNumberType.MOBILE)
    formatted = phonenumbers.format_number(example, phonenumbers.PhoneNumberFormat.E164) if example else "+628123456789"
    return f"must be a phone number with its country code, such as {formatted}"
