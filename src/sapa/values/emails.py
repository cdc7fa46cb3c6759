"""Normalised e-mail addresses. Only this module uses the validator, so there is one rule."""

import re

import email_validator
from email_validator import EmailNotValidError, validate_email

# Addresses on private or test domains are valid here. The validator takes this only from its global list, so no other
# module may import it.
email_validator.SPECIAL_USE_DOMAIN_NAMES.clear()


class BadEmail(ValueError):
    """A text that is not an e-mail address; the message says why."""


# The validator is slow because it knows every alphabet. Most addresses need only this pattern: letters, digits and a
# few signs, no label that could be punycode, a top-level domain of letters.
_is_plain = re.compile(
    r"[A-Za-z0-9_+-]{1,32}(?:\.[A-Za-z0-9_+-]{1,15}){0,2}"
    r"@(?:[A-Za-z0-9](?:[A-Za-z0-9]|-(?!-)){0,40}(?<!-)\.){1,4}[A-Za-z]{2,20}",
    re.ASCII,
).fullmatch
LONGEST_PLAIN = 200


def parse_email(text: str) -> str:
    """The normalised address."""
    if len(text) <= LONGEST_PLAIN and _is_plain(text):
        name, _, domain = text.partition("@")
        return f"{name}@{domain.lower()}"
    return _validate(text)


def _validate(text: str) -> str:
    try:
        parsed = validate_email(text, check_deliverability=False, globally_deliverable=False, test_environment=True)
    except EmailNotValidError as error:
        raise BadEmail(str(error)) from None
    if "." not in parsed.domain:
        raise BadEmail("The part after the @-sign has no dot.")
    return parsed.normalized
