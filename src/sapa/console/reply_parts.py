"""Checks what an agent sends, and splits it into messages as the channel needs it. Pure."""

from collections.abc import Sequence
from typing import Any

from sapa.http.errors import Invalid
from sapa.messaging.channels.interface import Capabilities, Source
from sapa.messaging.channels.registry import CHANNELS
from sapa.support.saved_replies.placeholders import list_known

Json = dict[str, Any]


def check_placeholders(text: str) -> None:
    """Raises Invalid if nothing filled in one of the text's placeholders."""
    if left := list_known(text):
        raise Invalid.field("body", f"still has {{{left[0]}}}, which nothing filled in")


def split_reply(source: str, text: str, files: Sequence[Json]) -> list[Json]:
    """The bodies of the replies, in order. The text is the caption of the first files, or a message of its own."""
    capabilities = CHANNELS[Source(source)].capabilities
    size = capabilities.max_files
    groups = [[file["id"] for file in files[start : start + size]] for start in range(0, len(files), size)]
    replies: list[Json] = [{"attachmentIds": group} for group in groups]
    if not text:
        return replies
    if not files or not _is_caption(capabilities, text, files[0]["mediaType"]):
        return [{"body": text}, *replies]
    replies[0]["body"] = text
    return replies


def _is_caption(capabilities: Capabilities, text: str, media_type: str) -> bool:
    if media_type.startswith("audio/") and not capabilities.has_audio_captions:
        return False
    return capabilities.has_captions and len(text) <= (capabilities.longest_caption or capabilities.longest_text)
