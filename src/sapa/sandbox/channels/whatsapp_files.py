"""Simulates the files of the WhatsApp Cloud API: uploads, and messages that name uploaded files."""

from collections.abc import Mapping
from typing import Any

from sapa.context import AppContext
from sapa.sandbox.channels import media, refusals
from sapa.sandbox.channels.accounts import SandboxAccount
from sapa.sandbox.channels.graph_errors import GraphRefusal, build_refusal
from sapa.sandbox.channels.media import UploadForm
from sapa.sandbox.channels.message_checks import get_type
from sapa.sandbox.channels.simulator import build_answer
from sapa.values.hook_calls import HookAnswer, HookCall

_UPLOADS = (
    "audio/aac, audio/mp4, audio/mpeg, audio/amr, audio/ogg, audio/opus, application/vnd.ms-powerpoint, "
    "application/msword, application/vnd.openxmlformats-officedocument.wordprocessingml.document, "
    "application/vnd.openxmlformats-officedocument.presentationml.presentation, "
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet, application/pdf, text/plain, "
    "application/vnd.ms-excel, image/jpeg, image/png, image/webp, video/mp4, video/3gpp"
)
_MB = 1_048_576
_MAX_BYTES = {"image": 5 * _MB, "video": 16 * _MB, "audio": 16 * _MB}
_SENT_AS = {"image": "image/", "video": "video/", "audio": "audio/", "sticker": "image/webp"}


async def accept_file(context: AppContext, account: SandboxAccount, call: HookCall) -> HookAnswer:
    """POST /{phone_number_id}/media"""
    form = media.parse_form(call)
    answer = await _store_file(context, account, form)
    return await media.record(context, account, call, form, answer)


async def _store_file(context: AppContext, account: SandboxAccount, form: UploadForm) -> HookAnswer:
    if form.fields.get("messaging_product") != "whatsapp":
        return build_refusal(refusals.require("messaging_product"))
    file = form.files.get("file")
    if file is None:
        return build_refusal(refusals.require("file"))
    media_type = file.media_type.partition(";")[0].strip() or form.fields.get("type", "")
    if media_type not in _UPLOADS.split(", "):
        words = f"Param file must be a file with one of the following types: {_UPLOADS}. "
        return build_refusal(GraphRefusal(code=100, message=f"{words}Received file of type '{media_type}'."))
    if not 0 < len(file.content) <= _MAX_BYTES.get(media_type.partition("/")[0], 100 * _MB):
        return build_refusal(refusals.build_error(131053))
    return build_answer({"id": await media.store(context, account, media_type, file.content)})


async def find_wrong_file(context: AppContext, account: SandboxAccount, body: Mapping[str, Any]) -> GraphRefusal | None:
    """A file that is sent by its id has to be one that was uploaded, and of the message's type."""
    for type, content in _list_media(body):
        if "id" not in content:
            continue
        found = await media.find(context, account, str(content["id"]))
        if found is None:
            return refusals.build_error(131009)
        if not found.media_type.startswith(_SENT_AS.get(type, "")):
            return refusals.build_error(131053)
    return None


def _list_media(body: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """The media of a message, or of the headers of a template and of its cards."""
    type = get_type(body)
    if type in {*_SENT_AS, "document"} and isinstance(body.get(type), dict):
        return [(type, body[type])]
    components = list((body.get("template") or {}).get("components") or [])
    cards = [card for component in components for card in component.get("cards") or []]
    components += [component for card in cards for component in card.get("components") or []]
    parameters = [each for component in components for each in component.get("parameters") or []]
    return [
        (each["type"], each[each["type"]])
        for each in parameters
        if each.get("type") in {"image", "video", "document"} and isinstance(each.get(each["type"]), dict)
    ]
