"""Files that the product holds: types and errors."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from sapa.http.errors import PayloadTooLarge, RateLimitExceeded, ServiceUnavailable
from sapa.values.ids import IdKind

FILE_ID = IdKind("att_")

FileId = Annotated[str, FILE_ID]
Storage = Literal["database", "bucket"]
FileStatus = Literal["writing", "stored", "deleting"]
ThumbnailStatus = Literal["none", "waiting", "stored", "failed"]

MIB = 1_048_576
UNKNOWN_TYPE = "application/octet-stream"
THUMBNAIL_TYPE = "image/webp"
RETRY_SECONDS = 10


class Attachment(Struct, frozen=True, rename="camel"):
    """A file of a message, or an uploaded file that can be sent.

    `GET /messages/{messageId2}/media` returns links to the files of a message.
    """

    id: FileId
    filename: Annotated[str | None, Meta(examples=["nota.pdf"])]
    media_type: Annotated[
        str | None,
        Meta(
            examples=["application/pdf"],
            description="Read from the file's bytes; of a file that is not fetched yet, what the channel says.",
        ),
    ]
    size: Annotated[
        int | None, Meta(examples=[20480], description="In bytes; null until it is fetched from the channel.")
    ]


class StoredFile(Struct, frozen=True):
    """A file; the fields are the columns."""

    id: str
    filename: str
    media_type: str
    size: int
    parts: int
    storage: Storage
    status: FileStatus
    visitor_id: str | None
    thumbnail: ThumbnailStatus

    @property
    def attachment(self) -> Attachment:
        return Attachment(self.id, self.filename, self.media_type, self.size)


class FileKey(Struct, frozen=True):
    """A file of some company, for the worker."""

    company_id: int
    id: str


class TooManyUploads(RateLimitExceeded):
    """Too many files were uploaded. Retry after the seconds in Retry-After."""


class TooManyUnusedFiles(PayloadTooLarge):
    """Your unused files would take more than 1 GiB. Send some of them, or wait: they are deleted after 24 hours."""

    fix = "Send some of the files, or wait: unused files are deleted after 24 hours."


class FileUnavailable(ServiceUnavailable):
    """The storage of this file does not respond. Try again later."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message, headers={"retry-after": str(RETRY_SECONDS)})
