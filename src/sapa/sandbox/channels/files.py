"""The files of simulated people: one minimal file of each type."""

import base64
from collections.abc import Mapping

from sapa.context import AppContext
from sapa.http.errors import NotFound
from sapa.messaging.channels.interface import Source
from sapa.sandbox.channels import media
from sapa.sandbox.channels.accounts import find_account
from sapa.sandbox.external_access import ExternalAccess, RefusedCall
from sapa.values.hook_calls import HookAnswer, HookCall

ADDRESS = "https://files.simulator.test/"
"""The base address in callbacks with URLs."""

PATH = "/sandbox/files/"
"""The path that really serves them, on the loopback address."""

MIME_TYPES: Mapping[str, str] = {
    "image": "image/png",
    "video": "video/mp4",
    "audio": "audio/ogg",
    "document": "application/pdf",
}

_PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
_PDF = (
    b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n"
    b"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 72 72]>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n"
)
_MP4 = b"\0\0\0\x18ftypmp42\0\0\0\0mp42isom"
_OGG = b"OggS\0\x02" + bytes(20)

FILES: Mapping[str, bytes] = {"image": _PNG, "video": _MP4, "audio": _OGG, "document": _PDF}


async def answer(context: AppContext, call: HookCall) -> HookAnswer:
    """By the last part of the address, such as media_image, or the id of an uploaded file."""
    name = call.path.removeprefix(PATH)
    kind = find_kind(name)
    if kind is not None:
        return HookAnswer(200, FILES[kind], {"content-type": MIME_TYPES[kind]})
    token = call.headers.get("authorization", "").removeprefix("Bearer ")
    account = find_account(context, token, "access_token", list(Source))
    uploaded = await media.find(context, account, name) if account else None
    if uploaded is None:
        raise NotFound
    return HookAnswer(200, uploaded.content, {"content-type": uploaded.media_type})


def _find_company_id(context: AppContext, call: HookCall) -> int | None:
    """The token of any channel."""
    token = call.headers.get("access-token") or call.headers.get("authorization", "").partition(" ")[2]
    account = find_account(context, token, "access_token", list(Source))
    return account.company_id if account else None


def _refuse(call: HookCall, reason: RefusedCall) -> HookAnswer:
    statuses = {"unauthorized": 401, "too_many": 429, "too_large": 413, "malformed": 400}
    return HookAnswer(statuses[reason], b"", {"content-type": "text/plain"})


ACCESS = ExternalAccess(prefix=PATH, serve=answer, find_company_id=_find_company_id, refuse=_refuse)


def find_kind(name: str) -> str | None:
    kind = name.removeprefix("media_")
    return kind if kind in FILES else None
