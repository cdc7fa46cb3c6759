"""Calls that others make by their own rules, and our answers to them: providers' callbacks, calls to simulators."""

import msgspec
from msgspec import Struct

JSON = {"content-type": "application/json"}


class HookCall(Struct, frozen=True):
    """A call as it came in, whatever server took it. Header names are in lower case."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes
    address: str
    request_id: str | None = None
    """None where one process calls itself."""


class HookAnswer(Struct, frozen=True):
    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = msgspec.field(default_factory=JSON.copy)
