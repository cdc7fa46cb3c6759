"""Calls to hooks and the responses: providers' callbacks, and calls to simulators."""

from typing import Any

import msgspec
from msgspec import Struct

JSON = {"content-type": "application/json"}
MAIL_PATH = "/sandbox/mail/"
"""Mail of the test environment is passed on as a call to this path."""


class HookCall(Struct, frozen=True):
    """A received call, over HTTP or mail. Header names are in lower case."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes
    address: str
    request_id: str | None = None
    """None when the process calls its own loopback address."""
    account: Any = None
    """Whose path it is, if that was looked up before the body was read."""

    @property
    def is_external(self) -> bool:
        """Whether it came over the installation's own address."""
        return self.request_id is not None


class HookAnswer(Struct, frozen=True):
    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = msgspec.field(default_factory=JSON.copy)
