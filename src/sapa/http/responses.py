"""What an endpoint returns: a resource, a page of resources, a file, or nothing."""

from functools import cache
from typing import Annotated, Any, ClassVar, Generic, Literal, TypeVar, get_origin, get_type_hints

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from sapa.values.json import encode

Item = TypeVar("Item")

PDF = "application/pdf"
CSV = "text/csv; charset=utf-8"

Timestamp = Annotated[str, Meta(extra_json_schema={"format": "date-time"}, examples=["2026-01-31T09:30:00.000Z"])]
"""A timestamp as the API writes it: RFC 3339 in UTC with three fractional digits."""


class StoredJson:
    """Marks a field that is stored as JSON and passed through: `Annotated[msgspec.Raw, StoredJson(list[Address])]`."""

    def __init__(self, shape: Any) -> None:
        self.shape = shape


class AnyOf:
    """Marks a field that holds one of several structs: `Annotated[Any, AnyOf(FieldError, ProviderRefusal)]`."""

    def __init__(self, *shapes: type[msgspec.Struct]) -> None:
        self.shapes = shapes


Paging = Literal["page", "after", "before"]
"""How clients read on: the next page's number, `meta.endCursor` as `after`, `pagination.nextBefore` as `before`."""


class ShownOnce:
    """Marks a secret that only the first response has: `key: Annotated[str | None, SHOWN_ONCE]`.

    A retry with the same Idempotency-Key gets null in its place, so that the stored response has no secret.
    """


SHOWN_ONCE = ShownOnce()


class Envelope(msgspec.Struct, frozen=True):
    """A result that is the whole body. All others are wrapped in `{data}`."""

    paging: ClassVar[Paging | None] = None
    """Set by the parts of a list."""


class PageMeta(msgspec.Struct, frozen=True, rename="camel"):
    """A page's position in its list."""

    page: Annotated[int, Meta(examples=[1])]
    limit: Annotated[int, Meta(examples=[20])]
    total: Annotated[int, Meta(examples=[1])]
    has_next_page: Annotated[bool, Meta(examples=[False])]


class Page(Envelope, Generic[Item], frozen=True):
    """One page of a list."""

    paging = "page"
    data: list[Item]
    meta: PageMeta


class CursorPagination(msgspec.Struct, frozen=True, rename="camel"):
    """Where the next page begins."""

    limit: Annotated[int, Meta(examples=[20])]
    has_more: Annotated[bool, Meta(examples=[False])]
    next_before: Annotated[str | None, Meta(examples=[None], description="Send it as `before` to read on.")]


class CursorPage(Envelope, Generic[Item], frozen=True):
    """One page of a list without a total, newest first."""

    paging = "before"

    data: list[Item]
    pagination: CursorPagination


class Created(Envelope, Generic[Item], frozen=True):
    """The result of an upsert that created a resource: 201 instead of 200."""

    data: Item


class Accepted(Envelope, Generic[Item], frozen=True):
    """The result of a request whose outcome is not known yet: 202."""

    data: Item


OWN_STATUSES: dict[type, int] = {Created: 201, Accepted: 202}


class PdfFile(msgspec.Struct, frozen=True):
    """A PDF file. It is the whole body, and the browser shows it."""

    filename: str
    content: bytes


class CsvFile(msgspec.Struct, frozen=True):
    """A CSV file. It is the whole body, and the browser stores it."""

    filename: str
    content: bytes


FILE_TYPES: dict[Any, str] = {PdfFile: PDF, CsvFile: CSV}


def is_envelope(result: Any) -> bool:
    kind = get_origin(result) or result
    return isinstance(kind, type) and issubclass(kind, Envelope)


def build_page(items: list[Item], page: int, limit: int, total: int) -> Page[Item]:
    return Page(items, PageMeta(page, limit, total, page * limit < total))


def build_cursor_page(items: list[Item], limit: int, next_before: str | None) -> CursorPage[Item]:
    """Without a cursor there are no more items."""
    return CursorPage(items, CursorPagination(limit, next_before is not None, next_before))


class HttpResponse:
    """Status, headers and body, ready to be sent."""

    __slots__ = ("body", "headers", "status")

    def __init__(self, status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
        self.status = status
        self.body = body
        self.headers = headers or {}


def encode_result(result: object, status: int) -> HttpResponse:
    """`{data}` for one resource, an envelope as it is (`{data, meta}` for a page), the bytes of a file, no body for
    nothing."""
    if result is None:
        return HttpResponse(204)
    if isinstance(result, PdfFile):
        return HttpResponse(status, result.content, build_pdf_headers(result))
    if isinstance(result, CsvFile):
        return HttpResponse(status, result.content, build_csv_headers(result))
    if isinstance(result, Envelope):
        return HttpResponse(OWN_STATUSES.get(type(result), status), encode(result))
    return HttpResponse(status, b'{"data":' + encode(result) + b"}")


def build_pdf_headers(file: PdfFile) -> dict[str, str]:
    return {"content-type": PDF, "content-disposition": f'inline; filename="{file.filename}"'}


def build_csv_headers(file: CsvFile) -> dict[str, str]:
    return {"content-type": CSV, "content-disposition": f'attachment; filename="{file.filename}"'}


def encode_for_retries(result: object, response: HttpResponse) -> HttpResponse:
    """What a retry with the same Idempotency-Key gets: the response without what is shown once."""
    if not isinstance(result, msgspec.Struct) or isinstance(result, Envelope):
        return response
    secrets = _list_shown_once(type(result))
    return encode_result(replace(result, **dict.fromkeys(secrets)), response.status) if secrets else response


@cache
def _list_shown_once(kind: type[msgspec.Struct]) -> tuple[str, ...]:
    hints = get_type_hints(kind, include_extras=True)
    return tuple(name for name, hint in hints.items() if SHOWN_ONCE in getattr(hint, "__metadata__", ()))
