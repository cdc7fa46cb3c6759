"""Files from customers: fetched from the channel's address, through the guard, within the size limit."""

from typing import Any

import pytest

from sapa.messaging.channels.interface import BadAccount, InboundMedia, Source
from sapa.messaging.channels.registry import CHANNELS
from sapa.outbound.client import Client, NotSent, Unclear
from sapa.outbound.http_client import HttpClient
from sapa.settings import WebhookSettings
from tests.messaging.channels.accounts import TOKEN, build_connection
from tests.messaging.channels.peer import Peer, open_peer

FILE = b"\xff\xd8\xff" + b"x" * 3_000_000


@pytest.mark.parametrize("source", [Source.MSGAPP_CLOUD, Source.MSGAPP_COEX])
async def test_whatsapps_files_are_looked_up_by_their_id(source: Source, peer: Peer, client: Client) -> None:
    peer.answers = [(200, {"url": f"{peer.address}/file", "mime_type": "image/jpeg"}), (200, FILE)]
    media = InboundMedia("image", media_id="media-1")
    connection = build_connection(source, f"{peer.address}/v25.0", client)
    assert await CHANNELS[source].fetch_media(connection, media, 4_000_000) == ("image/jpeg", FILE)
    assert [(request.path, request.headers["authorization"]) for request in peer.requests] == [
        ("/v25.0/media-1", f"Bearer {TOKEN}"),
        ("/file", f"Bearer {TOKEN}"),
    ]
    peer.answers = [(200, {"url": f"{peer.address}/file"}), (200, FILE)]
    with pytest.raises(Unclear):
        await CHANNELS[source].fetch_media(connection, media, 2_000_000)
    peer.answers = [(404, {"error": {"message": "gone", "code": 100}})]
    with pytest.raises(BadAccount):
        await CHANNELS[source].fetch_media(connection, media, 2_000_000)


@pytest.mark.parametrize("source", [Source.SOCIAL_NETWORK, Source.PHOTO_SOCIAL])
async def test_files_with_an_address_are_fetched_without_our_token(source: Source, client: Client) -> None:
    async with open_peer() as elsewhere:
        elsewhere.answers = [(200, b"GIF89a")]
        media = InboundMedia("image", url=f"{elsewhere.address}/x")
        connection = build_connection(source, "http://127.0.0.1:9", client)
        mime_type, content = await CHANNELS[source].fetch_media(connection, media, 100)
        assert (mime_type, content) == ("application/octet-stream", b"GIF89a")
        assert TOKEN not in str(elsewhere.requests)


@pytest.mark.parametrize(
    ("source", "media", "answer"),
    [
        (Source.SOCIAL_NETWORK, {"url": "ELSEWHERE/x"}, None),
        (Source.MSGAPP_CLOUD, {"media_id": "1"}, {"url": "ELSEWHERE/x"}),
        (Source.SHORT_VIDEO, {"media_id": "c m 1"}, {"code": 0, "data": {"download_url": "ELSEWHERE/x"}}),
    ],
)
async def test_a_file_in_a_private_network_is_not_fetched(
    source: Source, media: dict[str, str], answer: dict[str, Any] | None, peer: Peer
) -> None:
    guarded = HttpClient(WebhookSettings(allow_insecure=False, allowed_networks=()))
    async with open_peer() as elsewhere:

        def place(value: Any) -> Any:
            if isinstance(value, dict):
                return {name: place(each) for name, each in value.items()}
            return value.replace("ELSEWHERE", elsewhere.address) if isinstance(value, str) else value

        peer.answers = [(200, place(answer))]
        connection = build_connection(source, peer.address, guarded)
        with pytest.raises((NotSent, Unclear)):
            await CHANNELS[source].fetch_media(connection, InboundMedia("image", **place(media)), 100)
        assert elsewhere.requests == []
    await guarded.close()


async def test_tiktoks_files_are_asked_for_by_message(peer: Peer, client: Client) -> None:
    peer.answers = [(200, {"code": 0, "data": {"download_url": f"{peer.address}/file"}}), (200, b"\xff\xd8\xff")]
    connection = build_connection(Source.SHORT_VIDEO, f"{peer.address}/v1.3", client)
    media = InboundMedia("image", media_id="conversation-1 t2 m1")
    _, content = await CHANNELS[Source.SHORT_VIDEO].fetch_media(connection, media, 100)
    assert content == b"\xff\xd8\xff"
    request, fetched = peer.requests
    assert request.path == "/v1.3/business/message/media/download/"
    assert request.json == {
        "business_id": "open-id-1",
        "conversation_id": "conversation-1",
        "message_id": "t2",
        "media_id": "m1",
        "media_type": "IMAGE",
    }
    assert fetched.headers["x-user"] == TOKEN
