"""The responses of an OpenAPI document: their headers, and the errors that a call can get."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import msgspec

from sapa.http.bodies import UNKNOWN_FIELD
from sapa.http.endpoints import Endpoint
from sapa.http.errors import (
    ApiError,
    ErrorEnvelope,
    IdempotencyInProgress,
    IdempotencyKeyReused,
    InsufficientScope,
    InternalError,
    Invalid,
    InvalidApiKey,
    IpNotAllowed,
    MissingApiKey,
    NotFound,
    PayloadTooLarge,
    RateLimitExceeded,
    RequestTimeout,
    ServiceUnavailable,
    Unauthorized,
    UnsupportedMediaType,
)
from sapa.http.schemas import Schema, SchemaRegistry

Errors = Sequence[type[ApiError]]

ANY_CALL: Errors = (
    Invalid,
    MissingApiKey,
    InvalidApiKey,
    InsufficientScope,
    IpNotAllowed,
    NotFound,
    RateLimitExceeded,
    InternalError,
    ServiceUnavailable,
)
WITH_BODY: Errors = (RequestTimeout, PayloadTooLarge, UnsupportedMediaType)

_count: Schema = {"type": "integer", "minimum": 0}
HEADERS: dict[str, tuple[str, Schema]] = {
    "X-Request-Id": ("Names this call in our logs.", {"type": "string", "pattern": "^req_[0-9a-f]{24}$"}),
    "RateLimit-Limit": ("Calls that the key may make in a minute.", _count),
    "RateLimit-Remaining": ("Calls left in the running minute.", _count),
    "RateLimit-Reset": ("Seconds until the running minute ends.", _count),
    "Retry-After": ("Seconds to wait before the next try.", _count),
    "ETag": ("The state of the resource, for If-None-Match.", {"type": "string", "pattern": '^"[0-9a-f]{32}"$'}),
    "Content-Disposition": ("The name of the file.", {"type": "string", "pattern": "^(inline|attachment); filename="}),
    "Idempotency-Replayed": (
        "Sent when this is the answer to an earlier call with the same Idempotency-Key.",
        {"type": "string", "const": "true"},
    ),
    "Deprecation": (
        "Sent when the key was rotated or the operation is deprecated: since when, in Unix time.",
        {"type": "string", "pattern": "^@"},
    ),
    "Sunset": ("Sent together with Deprecation: the time at which it stops working.", {"type": "string"}),
}
COUNTED = ("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")
OPTIONAL = ".optional"

# These may be returned before the call is counted, and so without rate limit headers.
UNCOUNTED_STATUSES = {401, 403, 429, 500, 503}


def header_components() -> Schema:
    """Each header twice: as required and as optional."""
    return {
        name + suffix: {"description": text, "required": not suffix, "schema": schema}
        for name, (text, schema) in HEADERS.items()
        for suffix in ("", OPTIONAL)
    }


def describe_headers(status: int, always: Sequence[str] = (), sometimes: Sequence[str] = ()) -> Schema:
    """The headers of a response: its own, and those of every response."""
    counted = status not in UNCOUNTED_STATUSES
    required = ["X-Request-Id", *(COUNTED if counted else ()), *always]
    optional = [*(() if counted else COUNTED), *sometimes, "Deprecation", "Sunset"]
    return {name: _header(name) for name in required} | {name: _header(name + OPTIONAL) for name in optional}


def _header(name: str) -> Schema:
    return {"$ref": f"#/components/headers/{name}"}


class ErrorResponses:
    """The error responses of one document. Those of the edge are written once and referenced."""

    def __init__(self, schemas: SchemaRegistry) -> None:
        self._schemas = schemas
        self.shared: dict[str, Schema] = {}

    def of(self, endpoint: Endpoint) -> Schema:
        """Status → response, for every error that a call of the endpoint can get."""
        by_edge = list_edge_errors(endpoint)
        own = [error for error in endpoint.raises if error not in by_edge]
        responses = {}
        for status, group in groupby(sorted([*own, *by_edge], key=_status), key=_status):
            errors = list(group)
            responses[str(status)] = self._build_response(errors) if set(errors) & set(own) else self._shared(errors)
        return responses

    def _shared(self, errors: Errors) -> Schema:
        name = "Or".join(error.__name__ for error in errors)
        if name not in self.shared:
            self.shared[name] = self._build_response(errors)
        return {"$ref": f"#/components/responses/{name}"}

    def _build_response(self, errors: Errors) -> Schema:
        codes = list(dict.fromkeys(error.code for error in errors))
        schema = self._schemas.describe_response(ErrorEnvelope)
        return {
            "description": " · ".join(codes),
            "x-sapa-status": errors[0].status,
            "x-sapa-codes": codes,
            "headers": _build_headers(errors),
            "content": {
                "application/json": {
                    "schema": schema,
                    "examples": {
                        error.__name__: {"summary": error.summary(), "value": _example(error)} for error in errors
                    },
                }
            },
        }


def list_edge_errors(endpoint: Endpoint) -> list[type[ApiError]]:
    errors = [*ANY_CALL]
    if not endpoint.path_ids:
        errors.remove(NotFound)
    if endpoint.routes.answers_unauthorized:
        errors = [error for error in errors if error not in {MissingApiKey, InvalidApiKey, InsufficientScope}]
        errors.append(Unauthorized)
    if endpoint.body is not None or endpoint.takes_file:
        errors += WITH_BODY
    if endpoint.writes and (endpoint.body or endpoint.query or endpoint.takes_file):
        errors.append(IdempotencyKeyReused)
    if endpoint.writes:
        errors.append(IdempotencyInProgress)
    return errors


def _status(error: type[ApiError]) -> int:
    return error.status


def _build_headers(errors: Errors) -> Schema:
    status = errors[0].status
    if status in {RateLimitExceeded.status, ServiceUnavailable.status}:
        return describe_headers(status, always=["Retry-After"])
    if IdempotencyInProgress in errors or any(error.may_have_retry_after for error in errors):
        return describe_headers(status, sometimes=["Retry-After"])
    return describe_headers(status)


def _example(error: type[ApiError]) -> Any:
    return INVALID if error is Invalid else msgspec.json.decode(error().encode())


INVALID: Any = msgspec.json.decode(Invalid.field("nickname", UNKNOWN_FIELD).encode())
ERROR_EXAMPLES = {
    "ErrorEnvelope": INVALID,
    "ErrorBody": INVALID["error"],
    "FieldError": INVALID["error"]["details"][0],
}
