"""What a call can raise, apart from the classes of single codes."""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec


class SapaError(Exception):
    """The base of everything that this package raises on purpose."""


class ConnectionFailed(SapaError):
    """No response arrived: the server cannot be reached, or the connection broke. `__cause__` has the details."""


class TimedOut(ConnectionFailed):
    """No response arrived in time."""


class UnexpectedResponse(SapaError):
    """The response is not one of Sapa's. Often a proxy answered, or the base URL is wrong."""

    def __init__(self, message: str, *, status: int, body: bytes, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.body = body
        self.retry_after = retry_after
        """Seconds to wait before the next try, if the proxy says so."""

    def __reduce__(self) -> tuple[Any, ...]:
        build = partial(type(self), status=self.status, body=self.body, retry_after=self.retry_after)
        return partial(build, str(self)), ()


class ErrorDetail(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One reason of an error. A validation error names fields, a provider's refusal says what kind it is."""

    field: str | None = None
    message: str | None = None
    id: str | None = None
    """The resource that has the same value."""
    category: str | None = None
    provider_code: str | None = None
    """The provider's own code."""
    retryable: bool | None = None
    """Whether the same request may succeed later."""


class ApiError(SapaError):
    """The server refused the call. Subclasses say why: one for each status, and one for each code."""

    def __init__(
        self,
        message: str,
        *,
        status: int,
        code: str,
        details: list[ErrorDetail] | None = None,
        request_id: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.code = code
        self.details = details or []
        self.request_id = request_id
        """Names the call in the server's logs."""
        self.retry_after = retry_after
        """Seconds to wait before the next try, if the server says so."""

    def __reduce__(self) -> tuple[Any, ...]:
        """For pickle, which would call the class with the message alone: errors travel between processes."""
        names = ("message", "status", "code", "details", "request_id", "retry_after")
        return partial(type(self), **{name: getattr(self, name) for name in names}), ()

    def __str__(self) -> str:
        call = f" (request {self.request_id})" if self.request_id else ""
        return f"{self.status} {self.code}: {self.message}{call}"
