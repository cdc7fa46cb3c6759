"""E-mail addresses in their one form. The only module that asks the validator, and so the only one with a rule."""

import email_validator
from email_validator import EmailNotValidError, validate_email

# A shop's own mail server, a test domain: an address is not refused because it cannot be reached from everywhere.
# The validator takes this from its global list and from no argument, so nothing else may import it.
email_validator.SPECIAL_USE_DOMAIN_NAMES.clear()


class BadEmail(ValueError):
    """A text that is not an e-mail address; the message says why."""


def parse_email(text: str, *, needs_public_domain: bool = False) -> str:
    """The normalised address. A public domain has a dot, or is `test`."""
    try:
        parsed = validate_email(
            text, check_deliverability=False, globally_deliverable=needs_public_domain, test_environment=True
        )
    except EmailNotValidError as error:
        raise BadEmail(str(error)) from None
    return parsed.normalized
