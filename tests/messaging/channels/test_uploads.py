"""Files are uploaded in the form that each channel documents."""

from collections.abc import AsyncIterator
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

import pytest

from sapa.messaging.channels.abilities import FileUploads
from sapa.messaging.channels.files import OutgoingFile
from sapa.messaging.channels.interface import SendRefusal, Source
from sapa.messaging.channels.registry import CHANNELS
from sapa.outbound.client import Client, NotSent
from tests.messaging.channels.accounts import build_connection
from tests.messaging.channels.peer import Peer, RecordedRequest

CONTENT = bytes(range(256)) * 1000
GRAPH = [
    (Source.MSGAPP_CLOUD, "media", "file", {"messaging_product": "whatsapp", "type": "image/png"}, {"id": "123"}),
    (
        Source.SOCIAL_NETWORK, "message_attachments", "filedata",
        {"message": '{"attachment":{"type":"image","payload":{"is_reusable":true}}}'}, {"attachment_id": "123"},
    ),
    (
        Source.PHOTO_SOCIAL, "message_attachments", "filedata",
        {
            "platform": "instagram",
            "message": '{"attachment":{"type":"image","payload":{"is_reusable":true}}}',
        },
        {"attachment_id": "123"},
    ),
]  # fmt: skip


async def read() -> AsyncIterator[bytes]:
    for start in range(0, len(CONTENT), 100_000):
        yield CONTENT[start : start + 100_000]


def get_uploads(source: Source) -> FileUploads:
    channel = CHANNELS[source]
    assert isinstance(channel, FileUploads)
    return channel


def parse_form(request: RecordedRequest) -> tuple[dict[str, str], EmailMessage]:
    """The fields and the file, by a parser that we did not write."""
    head = f"content-type: {request.headers['content-type']}\r\n\r\n".encode()
    parts: list[Any] = list(message_from_bytes(head + request.body, policy=policy.HTTP).iter_parts())
    (file,) = [part for part in parts if part.get_filename()]
    return {get_name(part): part.get_payload() for part in parts if part is not file}, file


def get_name(part: EmailMessage) -> str:
    return str(part.get_param("name", header="content-disposition"))


@pytest.mark.parametrize(("source", "edge", "field", "fields", "answer"), GRAPH)
async def test_a_file_is_uploaded_as_the_channel_documents(
    source: Source, edge: str, field: str, fields: dict[str, str], answer: dict[str, Any], peer: Peer, client: Client
) -> None:
    peer.answers = [(200, answer)]
    connection = build_connection(source, f"{peer.address}/v25.0", client)
    file = OutgoingFile("foto.png", "image/png", len(CONTENT), read)
    assert await get_uploads(source).upload_file(connection, "image", file) == "123"
    (request,) = peer.requests
    assert (request.method, request.path.rpartition("/")[2]) == ("POST", edge)
    assert request.headers["content-length"] == str(len(request.body))
    assert "transfer-encoding" not in request.headers
    sent, part = parse_form(request)
    assert sent == fields
    assert (part.get_content_type(), part.get_filename()) == ("image/png", "foto.png")
    assert get_name(part) == field
    assert part.get_payload(decode=True) == CONTENT


@pytest.mark.parametrize("source", [source for source, *_ in GRAPH])
async def test_an_upload_that_fails_can_be_repeated(source: Source, peer: Peer, client: Client) -> None:
    connection = build_connection(source, f"{peer.address}/v25.0", client)
    file = OutgoingFile("foto.png", "image/png", len(CONTENT), read)
    peer.answers = [None]
    with pytest.raises(NotSent):
        await get_uploads(source).upload_file(connection, "image", file)
    peer.answers = [(500, {})]
    with pytest.raises(NotSent):
        await get_uploads(source).upload_file(connection, "image", file)
    peer.answers = [(400, {"error": {"message": "(#100) Param file must be a file", "code": 100}})]
    refused = await get_uploads(source).upload_file(connection, "image", file)
    assert isinstance(refused, SendRefusal)
    assert (refused.code, refused.reason) == ("100", "Param file must be a file")


async def test_an_account_without_uploads_sends_links(peer: Peer, client: Client) -> None:
    """Meta documents uploads for Instagram accounts with a page."""
    unknown = {
        "message": "Unsupported post request. Object with ID '1' does not exist",
        "code": 100,
        "error_subcode": 33,
    }
    peer.answers = [(400, {"error": unknown})]
    file = OutgoingFile("foto.png", "image/png", len(CONTENT), read)
    instagram = build_connection(Source.PHOTO_SOCIAL, f"{peer.address}/v22.0", client)
    assert await get_uploads(Source.PHOTO_SOCIAL).upload_file(instagram, "image", file) is None
    whatsapp = build_connection(Source.MSGAPP_CLOUD, f"{peer.address}/v25.0", client)
    assert isinstance(await get_uploads(Source.MSGAPP_CLOUD).upload_file(whatsapp, "image", file), SendRefusal)
