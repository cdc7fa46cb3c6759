"""Endpoints for files: uploading them, and those of messages."""

from collections.abc import Awaitable, Callable
from typing import Annotated

from msgspec import Meta, Struct

from sapa.access.types import Scope
from sapa.db.pool import Tx
from sapa.http.endpoints import Base, Call, Routes, ToolTraits
from sapa.http.errors import NotFound
from sapa.http.uploads import UploadCall
from sapa.messaging.files.types import Attachment, StoredFile, TooManyUnusedFiles, TooManyUploads
from sapa.messaging.files.uploads import upload
from sapa.messaging.media import pages
from sapa.messaging.media.pages import MessageFiles
from sapa.messaging.messages.types import MessageId2

routes = Routes("/messages", base=Base.MESSAGING, tag="Messages")
attachment_routes = Routes(
    "/attachments", base=Base.MESSAGING, tag="Attachments", about="Files that you upload to send them with messages."
)


class UploadedFileQuery(Struct, frozen=True, kw_only=True):
    """The file's name."""

    filename: (
        Annotated[
            str,
            Meta(
                min_length=1,
                max_length=255,
                examples=["nota.pdf"],
                description="The name that the recipient sees. Default: the name in the form.",
            ),
        ]
        | None
    ) = None


@attachment_routes.post(
    "",
    scope=Scope.MESSAGES_WRITE,
    raises=[TooManyUploads, TooManyUnusedFiles],
    tool=ToolTraits(hidden="It takes a file, which a tool call cannot carry."),
)
async def upload_attachment(call: UploadCall, query: UploadedFileQuery) -> Attachment:
    """Upload a file.

    Send the file as the body, or as the only file of a multipart form. Its type is read from its bytes, whatever
    Content-Type says. Then send it with `send-media` (`attachmentId`), in the header of a template (`components`) or
    with a ticket's reply (`attachmentIds`), as often as you like. A file that no message has is deleted after 24 hours,
    the others with their last message.

    A file has at most 25 MiB (the operator may change that). A company can upload 20 files a minute and have 1 GiB of
    unused ones.
    """

    async def conclude(work: Callable[[Tx], Awaitable[StoredFile]]) -> StoredFile:
        return await call.conclude(work, lambda file: file.attachment)

    file = await upload(call.context, call.company, call.file, conclude, filename=query.filename)
    return file.attachment


@routes.get("/{messageId2}/media", scope=Scope.MESSAGES_READ, raises=[NotFound])
async def get_message_media(call: Call, message_id2: MessageId2) -> MessageFiles:
    """Get the files of a message.

    Each has a URL that needs no key and expires after 15 minutes. A new file is `waiting` until it is fetched from the
    channel.
    """
    return await pages.describe(call.context, call.db, call.company, message_id2)
