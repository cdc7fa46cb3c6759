"""Calls to providers as the rooms see them. Without the library that makes them, which most commands do not need."""

import socket
from collections.abc import AsyncIterator, Mapping
from typing import Protocol

from msgspec import Struct

SECONDS = 10.0
CONNECT_SECONDS = 3.0
MAX_BYTES = 2 * 1_048_576


class ProviderResponse(Struct, frozen=True):
    """Header names are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


class NotSent(Exception):
    """The request did not reach the provider: it may be sent again."""


class Unclear(Exception):
    """The request may have reached the provider, but no response reached us: check before sending it again."""


class AttachedFile(Struct, frozen=True):
    """A file in a form."""

    filename: str
    media_type: str | None
    content: bytes | AsyncIterator[bytes]
    size: int
    """Known beforehand, so that the request has a Content-Length: not every server takes one without."""


Form = Mapping[str, str | AttachedFile]
"""The fields of a multipart form, in this order."""


class Client(Protocol):
    """Calls over HTTP.

    A provider's address comes from the operator and is trusted. An address that came with data is not: it is fetched
    through the guard.
    """

    async def call(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        params: Mapping[str, str] | None = None,
        content: bytes | None = None,
        form: Form | None = None,
        seconds: float = SECONDS,
        connect_seconds: float = CONNECT_SECONDS,
        max_bytes: int = MAX_BYTES,
    ) -> ProviderResponse:
        """One request to a provider; raises NotSent or Unclear when no complete response came back in time."""

    async def fetch(
        self, url: str, max_bytes: int, *, headers: Mapping[str, str] | None = None, seconds: float = SECONDS
    ) -> ProviderResponse:
        """Fetches an untrusted address, where the guard permits, up to `max_bytes`."""

    async def post_guarded(
        self, url: str, content: bytes, *, headers: Mapping[str, str] | None = None, seconds: float = SECONDS
    ) -> ProviderResponse:
        """Posts to an untrusted address, where the guard permits."""

    async def dial(
        self, host: str, port: int, *, is_trusted: bool = False, seconds: float = CONNECT_SECONDS
    ) -> socket.socket:
        """A connection for a protocol other than HTTP; the guard checks the address unless it is trusted."""

    async def close(self) -> None: ...
