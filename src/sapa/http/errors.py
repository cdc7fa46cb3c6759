"""What can go wrong at the edge. An error is a class: status, code, and its docstring is the message."""

import re
from typing import Annotated, Any, ClassVar

import asyncpg
import msgspec
import structlog

from sapa.db.connection import DatabaseAway
from sapa.db.long_reads import TooManyLongReads
from sapa.db.pool import BUSY, RETRYABLE
from sapa.http.metrics import UNAVAILABLE
from sapa.http.responses import AnyOf
from sapa.values.large_bodies import TooManyLargeBodies
from sapa.values.provider_refusals import ProviderRefusal
from sapa.values.sealing import SecretKeyMissing

DATABASE_UNAVAILABLE = (DatabaseAway, *BUSY, *RETRYABLE)
"""The caller may try again in a moment."""

log = structlog.get_logger()


class FieldError(msgspec.Struct, frozen=True, omit_defaults=True):
    """One field of the request that cannot be used, and how to fix it."""

    field: str
    message: str
    id: Annotated[str | None, msgspec.Meta(description="The resource that has the same value.")] = None


class ErrorBody(msgspec.Struct, frozen=True, omit_defaults=True):
    """What went wrong: a code for programs, a message for people."""

    code: str
    message: str
    details: list[Annotated[Any, AnyOf(FieldError, ProviderRefusal)]] | None = None


class ErrorEnvelope(msgspec.Struct, frozen=True):
    """The body of every error response."""

    error: ErrorBody


class ApiError(Exception):
    """Something went wrong."""

    status: ClassVar[int]
    code: ClassVar[str]
    constraint: ClassVar[str | None] = None
    """The database constraint whose violation means this error."""
    may_have_retry_after: ClassVar[bool] = False
    """Whether some responses have a Retry-After header; the documents mention it then."""
    fix: ClassVar[str]
    """What to do about it, for the catalogue of errors: the message is about one request, the fix about all."""

    def __init__(
        self,
        message: str | None = None,
        *,
        details: list[FieldError] | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        self.message = message or self.summary()
        self.details = details
        self.headers = headers or {}
        super().__init__(self.message)

    def __init_subclass__(cls) -> None:
        if cls.__dict__.get("constraint"):
            BY_CONSTRAINT[str(cls.constraint)] = cls

    @classmethod
    def summary(cls) -> str:
        """In one line, however long."""
        return " ".join((cls.__doc__ or "").split())

    def build_body(self) -> ErrorBody:
        return ErrorBody(self.code, self.message, self.details)

    def encode(self) -> bytes:
        return msgspec.json.encode(ErrorEnvelope(self.build_body()))


BY_CONSTRAINT: dict[str, type[ApiError]] = {}
"""Constraint name → the error its violation means, registered by the classes themselves."""

_CONSTRAINT_OF_SHARD = re.compile(r'constraint "(\w+)_\d+"')


def translate(error: Exception) -> ApiError | None:
    """The ApiError for an exception: itself, or the error that stands for a violated constraint, a missing secret key,
    or too many long reads or large bodies. None for any other exception."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, SecretKeyMissing):
        return ServiceUnavailable(str(error))
    if isinstance(error, TooManyLargeBodies):
        return ServiceUnavailable(str(error), headers={"retry-after": "10"})
    if isinstance(error, TooManyLongReads):
        return RateLimitExceeded(str(error), headers={"retry-after": "5"})
    if isinstance(error, asyncpg.IntegrityConstraintViolationError):
        declared = BY_CONSTRAINT.get(error.constraint_name or _read_constraint_of_shard(error))
        return None if declared is None else declared()
    return None


def _read_constraint_of_shard(error: Exception) -> str:
    """A sharded database names the constraint in the message only, with the number of the shard."""
    found = _CONSTRAINT_OF_SHARD.search(str(error))
    return found[1] if found else ""


def explain(error: Exception, request_id: str | None, **request: str) -> ApiError:
    """The error to respond with, for the API, the hooks and the pages alike: an ApiError as it is, 503 while the
    database is away or busy, 500 for anything else. The last two are logged with what identifies the request."""
    if refusal := translate(error):
        return refusal
    if isinstance(error, DATABASE_UNAVAILABLE):
        UNAVAILABLE.inc()
        reason = f"{type(error).__name__}: {error}"
        log.warning("database unavailable", request_id=request_id, **request, reason=reason)
        return ServiceUnavailable(headers={"retry-after": "1"})
    log.error("internal error", request_id=request_id, **request, exc_info=error)
    return InternalError()


class Invalid(ApiError):
    """The request is not valid."""

    status = 400
    code = "VALIDATION_ERROR"
    fix = "Fix the fields that `details` names, then send the request again. An unknown field is a misspelled one."

    @classmethod
    def field(cls, field: str, message: str) -> "Invalid":
        """A field that cannot be used; the message says how to fix it."""
        return cls(f"{field}: {message}", details=[FieldError(field, message)])


class MissingApiKey(ApiError):
    """Send your API key in the header x-api-key."""

    status = 401
    code = "MISSING_API_KEY"
    fix = "Add the header `x-api-key` with a key from the console or `sapa key create`."


class InvalidApiKey(ApiError):
    """The API key is invalid, revoked or expired."""

    status = 401
    code = "INVALID_API_KEY"
    fix = (
        "Compare the key with the one you were shown. A rotated key stops after 24 hours: create or rotate a key in "
        "the console."
    )


class Unauthorized(ApiError):
    """The key may not use this endpoint."""

    status = 401
    code = "UNAUTHORIZED"
    fix = (
        "Check that the key is complete and active, and that it has the product and the scope that the operation needs."
    )


class InsufficientScope(ApiError):
    """The API key lacks the scope this call needs."""

    status = 403
    code = "INSUFFICIENT_SCOPE"
    fix = "The message names the missing scope or product. Create a key that has it; the scopes of a key do not change."


class IpNotAllowed(ApiError):
    """The caller's address is not in the key's allow-list."""

    status = 403
    code = "IP_NOT_ALLOWED"
    fix = (
        "Call from an address of the key's allow-list, or create a key with another list. Behind a proxy, check "
        "`SAPA_TRUSTED_PROXIES`."
    )


class NotFound(ApiError):
    """resource not found"""

    status = 404
    code = "NOT_FOUND"
    fix = (
        "Check the path and the id, and that the key belongs to the company and the environment (live or test) that "
        "has it."
    )


class MethodNotAllowed(ApiError):
    """This path does not support this method. The Allow header lists those it supports."""

    status = 405
    code = "METHOD_NOT_ALLOWED"
    fix = "Use one of the methods in the `Allow` header."


class RequestTimeout(ApiError):
    """The request's body did not arrive within 30 seconds."""

    status = 408
    code = "REQUEST_TIMEOUT"
    fix = "Send the request again, with the same `Idempotency-Key` if it is a write."


class Conflict(ApiError):
    """The request conflicts with the resource's current state."""

    status = 409
    code = "CONFLICT"
    fix = "Get the resource to see its current state, and decide whether the request still makes sense."


class IdempotencyKeyReused(Conflict):
    """This Idempotency-Key was used with another body. Send a new key for a new request."""

    code = "IDEMPOTENCY_KEY_REUSED"
    fix = "Use one key for one request: a new key for a new request, and the same body when you retry."


class IdempotencyInProgress(Conflict):
    """The first request with this Idempotency-Key is still running. Try again shortly."""

    code = "IDEMPOTENCY_IN_PROGRESS"
    fix = (
        "Wait as long as `Retry-After` says and send the same request with the same key. You get the first one's "
        "response."
    )


class PayloadTooLarge(ApiError):
    """The request's body is larger than 1 MiB."""

    status = 413
    code = "PAYLOAD_TOO_LARGE"
    fix = "Send less at once; import many records as a file."


class UnsupportedMediaType(ApiError):
    """Send the body as application/json in UTF-8."""

    status = 415
    code = "UNSUPPORTED_MEDIA_TYPE"
    fix = "Set `content-type: application/json`, and send the body uncompressed and in UTF-8."


class RateLimitExceeded(ApiError):
    """Too many requests; retry after the reset period."""

    status = 429
    code = "RATE_LIMIT_EXCEEDED"
    fix = "Wait as long as `Retry-After` says. Spread calls over the minute, or ask for a key with a higher limit."


class InternalError(ApiError):
    """Something failed on our side. Report the X-Request-Id header, which identifies this call in our logs."""

    status = 500
    code = "INTERNAL_ERROR"
    fix = (
        "Retry with the same `Idempotency-Key`. If it stays, give the `X-Request-Id` to the people who run the "
        "installation."
    )


class ServiceUnavailable(ApiError):
    """The database is unavailable. Try again in a moment."""

    status = 503
    code = "SERVICE_UNAVAILABLE"
    fix = "Wait as long as `Retry-After` says and send the same request again, with the same `Idempotency-Key`."
