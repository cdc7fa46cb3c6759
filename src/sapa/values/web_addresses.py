"""Addresses that people open: of pictures and pages."""

WEB_ADDRESS = "^[Hh][Tt][Tt][Pp][Ss]?://[^ ]"
"""The pattern of a field. A browser would run a `javascript:` address as a program."""


def is_web_address(text: str) -> bool:
    return text[:8].lower().startswith(("https://", "http://"))
