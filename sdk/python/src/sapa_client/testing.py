"""Helpers for the tests of programs that use this package: a server that is not there, and signed deliveries.

>>> server = FakeServer()
>>> server.answer("customers.get", {"id": "cust_1", "firstName": "Ayu", …})
>>> my_program(server.client())
>>> assert server.requests[0].path == "/customer/v1/customers/cust_1"
"""

from __future__ import annotations

import re
import time
from functools import cache
from importlib import resources
from typing import Any
from urllib.parse import parse_qs, unquote
from uuid import uuid4

import httpx2
import msgspec

from ._client import AsyncSapa, Sapa
from ._values import encode_json
from .webhooks import sign

BASE_URL = "https://sapa.example.com"
API_KEY = "svc_test_fake"


class RecordedRequest(msgspec.Struct, frozen=True):
    """A call that a client made."""

    method: str
    path: str
    query: dict[str, str]
    body: Any
    """The JSON as Python values, the bytes of a file, or None."""
    headers: dict[str, str]


class _Answer(msgspec.Struct, frozen=True):
    status: int
    body: bytes
    headers: dict[str, str] = {}


class FakeServer:
    """Answers a client's calls without a server: each with the example of its documentation, or as you say.

    Calls are named as the client names them: `customers.get`. Nothing is stored: what a test creates cannot be read
    back unless the test says so.
    """

    def __init__(self) -> None:
        self.requests: list[RecordedRequest] = []
        self._answers: dict[str, list[_Answer]] = {}

    def client(self) -> Sapa:
        """A client of this server, which does not try again after an error."""
        http = httpx2.Client(transport=httpx2.MockTransport(self._respond))
        return Sapa(API_KEY, base_url=BASE_URL, max_retries=0, http_client=http)

    def async_client(self) -> AsyncSapa:
        """A client of this server for asyncio, which does not try again after an error."""
        http = httpx2.AsyncClient(transport=httpx2.MockTransport(self._respond))
        return AsyncSapa(API_KEY, base_url=BASE_URL, max_retries=0, http_client=http)

    def answer(self, method: str, data: Any) -> None:
        """The next call of this method gets this `data`: a model, or JSON as it is on the wire.

        Called again, it adds an answer for the call after that one. The last answer is repeated. For a list, pass the
        items of its only page.
        """
        operation = _get_operation(method)
        body = operation["body"] or {}
        meta = {name: _end_of_list(value) for name, value in body.items() if name in {"meta", "pagination"}}
        self._add(method, _Answer(operation["status"], encode_json({**body, **meta, "data": data})))

    def fail(
        self, method: str, status: int, code: str, message: str = "It failed.", *, retry_after: int | None = None
    ) -> None:
        """The next call of this method gets this error."""
        _get_operation(method)
        body = encode_json({"error": {"code": code, "message": message}})
        headers = {} if retry_after is None else {"retry-after": str(retry_after)}
        self._add(method, _Answer(status, body, headers))

    def _add(self, method: str, answer: _Answer) -> None:
        self._answers.setdefault(method, []).append(answer)

    def _respond(self, request: httpx2.Request) -> httpx2.Response:
        method, operation = _find_operation(request.method, request.url.path)
        self.requests.append(_record(request))
        answers = self._answers.get(method, [])
        if answers:
            answer = answers.pop(0) if len(answers) > 1 else answers[0]
        else:
            body = operation["body"]
            answer = _Answer(operation["status"], b"" if body is None else encode_json(body))
        headers = {"x-request-id": f"req_{len(self.requests):024x}", **answer.headers}
        return httpx2.Response(answer.status, headers=headers, content=answer.body)


def _record(request: httpx2.Request) -> RecordedRequest:
    content = request.read()
    is_json = request.headers.get("content-type") == "application/json"
    query = parse_qs(request.url.query.decode(), keep_blank_values=True)
    return RecordedRequest(
        method=request.method,
        path=request.url.path,
        query={name: values[0] for name, values in query.items()},
        body=(msgspec.json.decode(content) if is_json else content) if content else None,
        headers=dict(request.headers),
    )


def _end_of_list(meta: dict[str, Any]) -> dict[str, Any]:
    return {name: False if name in {"hasNextPage", "hasMore"} else value for name, value in meta.items()}


@cache
def _read_examples() -> dict[str, Any]:
    text = resources.files(__package__).joinpath("_examples.json").read_bytes()
    examples: dict[str, Any] = msgspec.json.decode(text)
    return examples


def _get_operation(method: str) -> dict[str, Any]:
    try:
        operation: dict[str, Any] = _read_examples()["operations"][method]
    except KeyError:
        raise ValueError(f"The client has no method {method}.") from None
    return operation


def _find_operation(method: str, path: str) -> tuple[str, dict[str, Any]]:
    for name, operation, pattern in _list_patterns():
        if operation["method"] == method and pattern.fullmatch(path):
            return name, operation
    raise AssertionError(f"No method of the client calls {method} {unquote(path)}.")


@cache
def _list_patterns() -> list[tuple[str, dict[str, Any], re.Pattern[str]]]:
    """The operations, those with fewer parameters first: a fixed segment is preferred to a parameter."""
    operations = sorted(_read_examples()["operations"].items(), key=lambda item: item[1]["path"].count("{"))
    return [(name, one, re.compile(re.sub(r"\{\w+\}", "[^/]+", one["path"]))) for name, one in operations]


class SignedDelivery(msgspec.Struct, frozen=True):
    """A delivery as a webhook endpoint receives it."""

    body: bytes
    headers: dict[str, str]


def sign_delivery(
    kind: str, data: Any = None, *, secret: str, id: str | None = None, timestamp: int | None = None
) -> SignedDelivery:
    """A delivery that `webhooks.verify` accepts. Without `data` it has the documented example of its kind."""
    examples = _read_examples()["events"]
    if data is None and kind not in examples:
        raise ValueError(f"{kind} is not a kind of event that this package knows. Pass its data.")
    body = encode_json(examples[kind] if data is None else data)
    id = id or f"evt_{uuid4().hex[:26]}"
    sent_at = str(int(time.time()) if timestamp is None else timestamp)
    headers = {
        "content-type": "application/json",
        "x-service-webhook-event": kind,
        "webhook-id": id,
        "webhook-timestamp": sent_at,
        "webhook-signature": sign(body, id, sent_at, secret),
    }
    return SignedDelivery(body, headers)
