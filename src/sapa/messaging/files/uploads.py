"""Takes an uploaded file within the limits of its company."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Literal, TypeVar

from msgspec import Struct

from sapa.context import AppContext
from sapa.db.pool import Tx
from sapa.http.errors import Invalid, UnsupportedMediaType
from sapa.http.uploads import FileStream
from sapa.messaging.files import actions, queries
from sapa.messaging.files.stores import PartStore, get_current_store
from sapa.messaging.files.types import FILE_ID, StoredFile, TooManyUnusedFiles, TooManyUploads
from sapa.values.company import Company

MAX_UNUSED_BYTES = 1_073_741_824
SECONDS = {"minute": 60, "day": 86_400}

Result = TypeVar("Result")


class UploadLimit(Struct, frozen=True):
    """How many files somebody may upload in a minute or in a day."""

    subject: str
    span: Literal["minute", "day"]
    most: int


COMPANY_LIMIT = UploadLimit("company", "minute", 20)


class UploadRules(Struct, frozen=True):
    """Who uploads, and what they may upload."""

    limits: Sequence[UploadLimit] = (COMPANY_LIMIT,)
    accepted: Collection[str] | None = None
    """The media types; None for all."""
    advice: str = ""
    """What to send instead of a file of another type."""
    visitor_id: str | None = None


async def upload(
    context: AppContext,
    company: Company,
    incoming: FileStream,
    conclude: Callable[[Callable[[Tx], Awaitable[StoredFile]]], Awaitable[Result]],
    rules: UploadRules = UploadRules(),
    filename: str | None = None,
) -> Result:
    """Two transactions: the file is announced before its first byte is stored, and can be used after its last one.
    `conclude` runs the second. `filename` replaces the name in a form."""
    store, id = get_current_store(context), FILE_ID.new()
    await context.database.transact(lambda tx: _begin(tx, company, store, rules, id, incoming.max_bytes))
    try:
        written = await actions.write(store, company.id, id, incoming.read())
        if not written.scan.size:
            raise Invalid("The file is empty. Send its content.")
        name = filename or incoming.filename
        media_type = written.scan.get_type(name)
        if rules.accepted is not None and media_type not in rules.accepted:
            raise UnsupportedMediaType(f"A file of the type {media_type} is not accepted. {rules.advice}")
        return await conclude(lambda tx: actions.finish(tx, company.id, id, name, written))
    except BaseException:
        await actions.discard(context, company.id, id)
        raise


async def _begin(tx: Tx, company: Company, store: PartStore, rules: UploadRules, id: str, max_bytes: int) -> None:
    """The first limit's row is locked until the commit, so that uploads at the same time do not exceed the sum."""
    for limit in rules.limits:
        used = await queries.count_upload(tx, company.id, f"{limit.subject}/{limit.span}", limit.span)
        if used > limit.most:
            raise TooManyUploads(
                f"At most {limit.most} files can be uploaded in a {limit.span}.",
                headers={"retry-after": str(SECONDS[limit.span])},
            )
    unused = await queries.sum_unused(tx, company.id, of_visitors=rules.visitor_id is not None)
    if unused + max_bytes > MAX_UNUSED_BYTES:
        raise TooManyUnusedFiles
    await actions.begin(tx, company.id, store, id, max_bytes, rules.visitor_id)
