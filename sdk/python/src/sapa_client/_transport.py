"""Sends requests: authentication, retries, time-outs and errors."""

from __future__ import annotations

import asyncio
import random
import time
from datetime import UTC, datetime
from email.message import Message
from email.utils import parsedate_to_datetime
from functools import cache
from typing import Any, Generic, NoReturn, TypeVar, cast
from uuid import uuid4

import httpx2
import msgspec

from . import errors
from ._errors import ApiError, ConnectionFailed, ErrorDetail, TimedOut, UnexpectedResponse
from ._values import File, Query, Upload, encode_json, encode_query
from ._version import VERSION

Result = TypeVar("Result")

FIRST_WAIT = 0.5
LONGEST_WAIT = 8.0
LONGEST_RETRY_AFTER = 60.0
"""The rate limit's window is a minute. What takes longer is for the caller to decide."""

LONGEST_KEY = 255

ACCEPTED = 202
"""The status of a file that the server is still making."""
_RETRIED_STATUSES = {408, 429, 500, 502, 503, 504}
_IN_PROGRESS = "IDEMPOTENCY_IN_PROGRESS"
_NO_RESPONSE = (
    httpx2.TimeoutException,
    httpx2.NetworkError,
    httpx2.RemoteProtocolError,
    httpx2.ProxyError,
    httpx2.DecodingError,
)


class Request(msgspec.Struct, frozen=True):
    method: str
    path: str
    query: Query = {}
    body: msgspec.Struct | Upload | None = None
    idempotency_key: str | None = None


class Options(msgspec.Struct, frozen=True):
    """What is the same for all calls of a client."""

    api_key: str
    base_url: str
    timeout: float | None
    max_retries: int
    headers: dict[str, str]

    def __repr__(self) -> str:
        return f"Options(base_url={self.base_url!r})"

    def build(self, request: Request) -> dict[str, Any]:
        """The arguments of the HTTP client. Called once for all tries, so that they share the Idempotency-Key."""
        query = encode_query(request.query)
        headers = {
            "accept": "application/json",
            "user-agent": f"sapa-client-python/{VERSION}",
            **{name.lower(): value for name, value in self.headers.items()},
            "x-api-key": self.api_key,
        }
        if request.method != "GET":
            passed = request.idempotency_key
            headers["idempotency-key"] = _choose_key(headers.get("idempotency-key") if passed is None else passed)
        content = None
        if isinstance(request.body, Upload):
            content, headers["content-type"] = request.body.content, request.body.content_type
        elif request.body is not None:
            content, headers["content-type"] = encode_json(request.body), "application/json"
        return {
            "method": request.method,
            "url": self.base_url + request.path + (f"?{query}" if query else ""),
            "headers": headers,
            "content": content,
            "timeout": self.timeout,
            "follow_redirects": False,
        }


def _choose_key(chosen: str | None) -> str:
    """The caller's Idempotency-Key, or one for this call alone."""
    if chosen is None:
        return str(uuid4())
    if not (chosen.isascii() and chosen.isprintable() and 0 < len(chosen) <= LONGEST_KEY):
        raise ValueError(f"idempotency_key has to be 1 to {LONGEST_KEY} printable ASCII characters.")
    return chosen


class Transport:
    """Sends requests and waits for their responses."""

    def __init__(self, options: Options, http: httpx2.Client) -> None:
        self.options = options
        self.http = http

    def send(self, request: Request) -> httpx2.Response:
        arguments = self.options.build(request)
        retries = Retries(self.options.max_retries)
        while True:
            try:
                response = self.http.request(**arguments)
            except _NO_RESPONSE as error:
                wait = retries.after_no_response(error)
            else:
                if response.is_success:
                    return response
                wait = retries.after_error(build_error(response))
            time.sleep(wait)


class AsyncTransport:
    """Sends requests and waits for their responses, in asyncio."""

    def __init__(self, options: Options, http: httpx2.AsyncClient) -> None:
        self.options = options
        self.http = http

    async def send(self, request: Request) -> httpx2.Response:
        arguments = self.options.build(request)
        retries = Retries(self.options.max_retries)
        while True:
            try:
                response = await self.http.request(**arguments)
            except _NO_RESPONSE as error:
                wait = retries.after_no_response(error)
            else:
                if response.is_success:
                    return response
                wait = retries.after_error(build_error(response))
            await asyncio.sleep(wait)


class Retries:
    """Decides after each failed try whether another one follows: returns how long to wait first, or raises."""

    def __init__(self, left: int) -> None:
        self._left = left
        self._pause = FIRST_WAIT

    def after_no_response(self, error: httpx2.RequestError) -> float:
        if self._left <= 0:
            raise_no_response(error)
        return self._next_wait()

    def after_error(self, error: ApiError | UnexpectedResponse) -> float:
        if self._left <= 0 or not _may_succeed_later(error) or (error.retry_after or 0) > LONGEST_RETRY_AFTER:
            raise error
        wait = self._next_wait()
        return wait if error.retry_after is None else error.retry_after

    def _next_wait(self) -> float:
        self._left -= 1
        wait = self._pause * random.uniform(0.5, 1)  # noqa: S311 - spreads the callers, keeps no secret
        self._pause = min(self._pause * 2, LONGEST_WAIT)
        return wait


def _may_succeed_later(error: ApiError | UnexpectedResponse) -> bool:
    """A provider's refusal says it by itself; otherwise the status does."""
    if isinstance(error, ApiError):
        stated = [detail.retryable for detail in error.details if detail.retryable is not None]
        if stated:
            return any(stated)
        if error.code == _IN_PROGRESS:
            return True
    return error.status in _RETRIED_STATUSES


def raise_no_response(error: httpx2.RequestError) -> NoReturn:
    kind = TimedOut if isinstance(error, httpx2.TimeoutException) else ConnectionFailed
    reason = str(error) or type(error).__name__
    raise kind(f"No response from {error.request.url.host}: {reason}.") from error


class _ErrorBody(msgspec.Struct):
    code: str
    message: str
    details: list[ErrorDetail] = []


class _ErrorEnvelope(msgspec.Struct):
    error: _ErrorBody


_decode_error = msgspec.json.Decoder(_ErrorEnvelope).decode


def build_error(response: httpx2.Response) -> ApiError | UnexpectedResponse:
    try:
        body = _decode_error(response.content).error
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _unexpected(response, "is not an error of Sapa. Check the base URL and the proxies before the server")
    kind = errors.BY_CODE.get(body.code) or errors.BY_STATUS.get(response.status_code)
    if kind is None:
        kind = errors.ServerError if response.is_server_error else ApiError
    return kind(
        body.message,
        status=response.status_code,
        code=body.code,
        details=body.details,
        request_id=response.headers.get("x-request-id"),
        retry_after=_read_retry_after(response.headers.get("retry-after", "").strip()),
    )


def _read_retry_after(text: str) -> float | None:
    """Seconds, or a time, as proxies may write it. None for anything else."""
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        until = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    now = datetime.now(UTC)
    return max(0.0, (until - now).total_seconds()) if until.tzinfo is not None else None


def _unexpected(response: httpx2.Response, reason: str) -> UnexpectedResponse:
    message = f"The response of {response.request.url.host} with status {response.status_code} {reason}."
    retry_after = _read_retry_after(response.headers.get("retry-after", "").strip())
    return UnexpectedResponse(message, status=response.status_code, body=response.content, retry_after=retry_after)


class _Data(msgspec.Struct, Generic[Result]):
    data: Result


@cache
def _get_decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


def read_data(response: httpx2.Response, kind: type[Result]) -> Result:
    """What the response has in `data`."""
    return read_page(response, cast("type[_Data[Result]]", _Data[kind])).data  # type: ignore[valid-type]


def read_page(response: httpx2.Response, kind: type[Result]) -> Result:
    """The whole response."""
    try:
        return cast("Result", _get_decoder(cast("Any", kind)).decode(response.content))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _unexpected(response, f"does not have the documented form: {error}") from error


def read_file(response: httpx2.Response) -> File:
    disposition = Message()
    disposition["content-disposition"] = response.headers.get("content-disposition", "")
    return File(response.content, response.headers.get("content-type", ""), disposition.get_filename())


def find_file(response: httpx2.Response) -> File | None:
    """None while the server makes the file."""
    return None if response.status_code == ACCEPTED else read_file(response)
