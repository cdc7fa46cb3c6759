"""The two addresses of the API. Below everything that is declared for one of them: endpoints and events."""

from enum import StrEnum


class Base(StrEnum):
    """The two addresses of the API."""

    CUSTOMER = "/customer/v1"
    MESSAGING = "/messaging/v1"
