"""The two base paths of the API, for everything that is declared for one of them: endpoints and events."""

from enum import StrEnum


class Base(StrEnum):
    """The two base paths of the API."""

    CUSTOMER = "/customer/v1"
    MESSAGING = "/messaging/v1"
