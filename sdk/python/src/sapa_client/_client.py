"""The clients."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import TracebackType
from typing import Self

import httpx2
from msgspec.structs import replace

from ._async_resources import AsyncResources
from ._resources import Resources
from ._transport import AsyncTransport, Options, Transport
from ._values import NOT_GIVEN, NotGiven

DEFAULT_TIMEOUT = 30.0
DEFAULT_RETRIES = 2


class Sapa(Resources):
    """Calls the API of a Sapa server. It keeps connections open: make one and share it, also between threads.

    `timeout` is how many seconds a connection, a write or a read may take, for each try; None is without end.
    `max_retries` is how often a call is tried again when no response arrives, when the server is busy or fails, or when
    the rate limit is used up. A write is never done twice by that: all tries have the same Idempotency-Key.
    """

    def __init__(
        self,
        api_key: str | None = None,
        *,
        base_url: str | None = None,
        timeout: float | None = DEFAULT_TIMEOUT,
        max_retries: int = DEFAULT_RETRIES,
        headers: Mapping[str, str] | None = None,
        http_client: httpx2.Client | None = None,
    ) -> None:
        """`api_key` and `base_url` are read from SAPA_API_KEY and SAPA_BASE_URL if they are not passed."""
        options = build_options(api_key, base_url, timeout, max_retries, headers)
        self._transport = Transport(options, http_client or httpx2.Client())
        super().__init__(self._transport)

    def with_options(
        self,
        *,
        timeout: float | None | NotGiven = NOT_GIVEN,
        max_retries: int | NotGiven = NOT_GIVEN,
        headers: Mapping[str, str] | NotGiven = NOT_GIVEN,
    ) -> Self:
        """A client with other options, which uses the same connections."""
        options = change_options(self._transport.options, timeout, max_retries, headers)
        changed = type(self).__new__(type(self))
        changed._transport = Transport(options, self._transport.http)
        Resources.__init__(changed, changed._transport)
        return changed

    def close(self) -> None:
        """Closes the connections."""
        self._transport.http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class AsyncSapa(AsyncResources):
    """Calls the API of a Sapa server in asyncio. It keeps connections open: make one and share it.

    `timeout` is how many seconds a connection, a write or a read may take, for each try; None is without end.
    `max_retries` is how often a call is tried again when no response arrives, when the server is busy or fails, or when
    the rate limit is used up. A write is never done twice by that: all tries have the same Idempotency-Key.
    """

    def __init__(
        self,
        api_key: str | None = None,
        *,
        base_url: str | None = None,
        timeout: float | None = DEFAULT_TIMEOUT,
        max_retries: int = DEFAULT_RETRIES,
        headers: Mapping[str, str] | None = None,
        http_client: httpx2.AsyncClient | None = None,
    ) -> None:
        """`api_key` and `base_url` are read from SAPA_API_KEY and SAPA_BASE_URL if they are not passed."""
        options = build_options(api_key, base_url, timeout, max_retries, headers)
        self._transport = AsyncTransport(options, http_client or httpx2.AsyncClient())
        super().__init__(self._transport)

    def with_options(
        self,
        *,
        timeout: float | None | NotGiven = NOT_GIVEN,
        max_retries: int | NotGiven = NOT_GIVEN,
        headers: Mapping[str, str] | NotGiven = NOT_GIVEN,
    ) -> Self:
        """A client with other options, which uses the same connections."""
        options = change_options(self._transport.options, timeout, max_retries, headers)
        changed = type(self).__new__(type(self))
        changed._transport = AsyncTransport(options, self._transport.http)
        AsyncResources.__init__(changed, changed._transport)
        return changed

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._transport.http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()


def build_options(
    api_key: str | None,
    base_url: str | None,
    timeout: float | None,
    max_retries: int,
    headers: Mapping[str, str] | None,
) -> Options:
    key = (api_key or os.environ.get("SAPA_API_KEY", "")).strip()
    if not key:
        raise ValueError("Pass an API key, or set SAPA_API_KEY.")
    if not (key.isascii() and key.isprintable()):
        raise ValueError("The API key is not whole: pass it as it was shown, svc_live_… or svc_test_….")
    address = (base_url or os.environ.get("SAPA_BASE_URL", "")).strip().rstrip("/")
    if not address.startswith(("https://", "http://")):
        raise ValueError("Pass base_url, such as https://sapa.example.com, or set SAPA_BASE_URL.")
    if address.endswith(("/customer/v1", "/messaging/v1")):
        raise ValueError("base_url is the address of the server, without /customer/v1 or /messaging/v1.")
    return Options(key, address, timeout, max_retries, dict(headers or {}))


def change_options(
    options: Options,
    timeout: float | None | NotGiven,
    max_retries: int | NotGiven,
    headers: Mapping[str, str] | NotGiven,
) -> Options:
    return replace(
        options,
        timeout=options.timeout if timeout is NOT_GIVEN else timeout,
        max_retries=options.max_retries if max_retries is NOT_GIVEN else max_retries,
        headers=options.headers if headers is NOT_GIVEN else {**options.headers, **headers},
    )
