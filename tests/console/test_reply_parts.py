"""A reply with files becomes as many messages as the channel needs, and loses nothing."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapa.console.reply_parts import split_reply
from sapa.console.ticket_pages import can_resend
from sapa.messaging.channels.interface import Source
from sapa.messaging.channels.registry import CHANNELS

PHOTO, SOUND = {"id": "a", "mediaType": "image/jpeg"}, {"id": "b", "mediaType": "audio/ogg"}


@pytest.mark.parametrize(
    ("source", "text", "files", "expected"),
    [
        ("MSGAPP_CLOUD", "Halo", [], [{"body": "Halo"}]),
        ("MSGAPP_CLOUD", "", [PHOTO], [{"attachmentIds": ["a"]}]),
        ("MSGAPP_CLOUD", "Halo", [PHOTO], [{"attachmentIds": ["a"], "body": "Halo"}]),
        ("MSGAPP_CLOUD", "Halo", [SOUND], [{"body": "Halo"}, {"attachmentIds": ["b"]}]),
        ("MSGAPP_CLOUD", "a" * 1025, [PHOTO], [{"body": "a" * 1025}, {"attachmentIds": ["a"]}]),
        ("SHORT_VIDEO", "Halo", [PHOTO], [{"body": "Halo"}, {"attachmentIds": ["a"]}]),
        ("MAIL", "Halo", [PHOTO, SOUND], [{"attachmentIds": ["a", "b"], "body": "Halo"}]),
    ],
)
def test_a_reply_is_split_as_the_channel_needs_it(
    source: str, text: str, files: list[dict[str, str]], expected: list[dict[str, Any]]
) -> None:
    assert split_reply(source, text, files) == expected


def test_a_message_that_failed_is_offered_again_if_it_is_whole_and_once() -> None:
    failed: dict[str, Any] = {
        "messageId2": "1", "direction": "out", "status": "failed", "templateId": None, "body": "Halo", "mediaUrl": None,
        "attachments": [],
    }  # fmt: skip
    asked = {**failed, "messageId2": "0", "direction": "in"}
    assert can_resend(failed, [asked, failed])
    assert not can_resend(failed, [failed, {**failed, "messageId2": "2", "status": "sent"}])
    assert can_resend(failed, [failed, {**failed, "messageId2": "2", "body": "Halo kak"}])
    assert not can_resend({**failed, "mediaUrl": "https://toko.example/kopi.jpg"}, [])
    assert can_resend({**failed, "mediaUrl": "https://toko.example/kopi.jpg", "attachments": [{"id": "a"}]}, [])


@given(source=st.sampled_from(Source), text=st.text(), types=st.lists(st.sampled_from(["image/png", "audio/ogg"])))
def test_every_part_is_sent_once_and_in_order(source: Source, text: str, types: list[str]) -> None:
    files = [{"id": str(number), "mediaType": type} for number, type in enumerate(types)]
    parts = split_reply(source, text, files)
    assert [id for part in parts for id in part.get("attachmentIds", [])] == [file["id"] for file in files]
    assert [part["body"] for part in parts if "body" in part] == ([text] if text else [])
    most = CHANNELS[source].capabilities.max_files
    assert all(len(part.get("attachmentIds", [])) <= most for part in parts)
