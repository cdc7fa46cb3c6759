"""Normalised e-mail addresses. Only this module uses the validator, so there is one rule."""

import email_validator
from email_validator import EmailNotValidError, validate_email

# Addresses on private or test domains are valid here. The validator takes this only from its global list, so no other
# module may import it.
email_validator.SPECIAL_USE_DOMAIN_NAMES.clear()


class BadEmail(ValueError):
    """A text that is not an e-mail address; the message says why."""


def parse_email(text: str) -> str:
    """The normalised address."""
    try:
        parsed = validate_email(text, check_deliverability=False, globally_deliverable=False, test_environment=True)
    except EmailNotValidError as error:
        raise BadEmail(str(error)) from None
    if "." not in parsed.domain:
        raise BadEmail("The part after the @-sign has no dot.")
    return parsed.normalized
