"""Files that are uploaded to simulators: stored for 30 days, as channels do."""

from collections.abc import Mapping
from hashlib import sha256
from secrets import randbelow
from typing import Any

import msgspec
from msgspec import Struct
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import Field, File, create_form_parser

from sapa.context import AppContext
from sapa.sandbox.channels import outbox, queries
from sapa.sandbox.channels.accounts import SandboxAccount
from sapa.sandbox.channels.queries import SandboxMedia
from sapa.values.hook_calls import HookAnswer, HookCall

ID_START = 10**15
LONGEST_FIELD = 1_048_576


class UploadedPart(Struct, frozen=True):
    filename: str
    media_type: str
    content: bytes


class UploadForm(Struct, frozen=True):
    """A multipart form."""

    fields: Mapping[str, str]
    files: Mapping[str, UploadedPart]


def parse_form(call: HookCall) -> UploadForm:
    """An empty form for a body that is not one."""
    fields: dict[str, str] = {}
    files: dict[str, UploadedPart] = {}

    def take_field(field: Field) -> None:
        fields[(field.field_name or b"").decode()] = (field.value or b"")[:LONGEST_FIELD].decode("utf-8", "replace")

    def take_file(file: File) -> None:
        file.file_object.seek(0)
        name, media_type = (file.file_name or b"").decode("utf-8", "replace"), file.content_type or ""
        files[(file.field_name or b"").decode()] = UploadedPart(name, media_type, file.file_object.read())

    headers = {"Content-Type": call.headers.get("content-type", "").encode()}
    try:
        parser = create_form_parser(headers, take_field, take_file)
        parser.write(call.body)
        parser.finalize()
    except (FormParserError, ValueError):
        return UploadForm({}, {})
    return UploadForm(fields, files)


def describe_call(call: HookCall, form: UploadForm) -> HookCall:
    """The call for the outbox: a file's bytes are left out."""
    shown: dict[str, Any] = {
        **form.fields,
        **{
            name: {"filename": file.filename, "type": file.media_type, "size": len(file.content)}
            for name, file in form.files.items()
        },
    }
    return HookCall(call.method, call.path, call.query, call.headers, msgspec.json.encode(shown), call.address)


async def store(context: AppContext, account: SandboxAccount, media_type: str, content: bytes) -> str:
    """The id of the stored file: digits, as Meta's are."""
    id = str(ID_START + randbelow(9 * ID_START))
    async with context.database.connection() as db:
        await queries.insert_media(db, account.company_id, account.source, id, media_type, content)
    return id


async def find(context: AppContext, account: SandboxAccount, id: str) -> SandboxMedia | None:
    async with context.database.connection() as db:
        return await queries.find_media(db, account.company_id, account.source, id)


async def delete(context: AppContext, account: SandboxAccount, id: str) -> None:
    async with context.database.connection() as db:
        await queries.delete_media(db, account.company_id, account.source, id)


def describe(media: SandboxMedia, url: str) -> dict[str, Any]:
    """GET /{media id}"""
    return {
        "messaging_product": "whatsapp",
        "url": url,
        "mime_type": media.media_type,
        "sha256": sha256(media.content).hexdigest(),
        "file_size": len(media.content),
        "id": media.id,
    }


async def record(
    context: AppContext, account: SandboxAccount, call: HookCall, form: UploadForm, answer: HookAnswer
) -> HookAnswer:
    """Shows the upload in the outbox."""
    async with context.database.transaction() as tx:
        await outbox.record(tx, account.company_id, account.source, describe_call(call, form), answer)
    return answer
