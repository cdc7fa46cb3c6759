"""Each adapter and each kind of message: the request's JSON is exactly what the channel documents."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sapa.messaging.channels.interface import (
    Identity,
    Media,
    OutgoingMessage,
    SendReceipt,
    Source,
)
from sapa.messaging.channels.registry import CHANNELS
from sapa.outbound.client import Client
from tests.messaging.channels.accounts import RECIPIENTS, REFERENCE, TOKEN, WITHOUT_API, build_connection
from tests.messaging.channels.contents import CONTENTS
from tests.messaging.channels.peer import Peer

FIXTURES = Path(__file__).parent / "fixtures"
FOLDERS = {
    Source.MSGAPP_CLOUD: "whatsapp",
    Source.MSGAPP_COEX: "whatsapp",
    Source.SOCIAL_NETWORK: "messenger",
    Source.PHOTO_SOCIAL: "instagram",
    Source.SHORT_VIDEO: "tiktok",
}
PATHS = {
    "whatsapp": "/v25.0/1122/messages",
    "messenger": "/v25.0/5566/messages",
    "instagram": "/v25.0/17841400/messages",
    "tiktok": "/v25.0/business/message/send/",
}
ANSWERS: dict[str, Any] = {
    "whatsapp": {"contacts": [{"input": "628123456789", "wa_id": "628123456789"}], "messages": [{"id": "wamid.1"}]},
    "messenger": {"recipient_id": "2468", "message_id": "m_1"},
    "instagram": {"recipient_id": "1357", "message_id": "m_1"},
    "tiktok": {"code": 0, "message": "OK", "data": {"message": {"message_id": "tt_1"}, "media_id": "media-1"}},
}
IDS = {"whatsapp": "wamid.1", "messenger": "m_1", "instagram": "m_1", "tiktok": "tt_1"}
AUTHORIZATION = {
    "whatsapp": ("authorization", f"Bearer {TOKEN}"),
    "messenger": ("authorization", f"Bearer {TOKEN}"),
    "instagram": ("authorization", f"Bearer {TOKEN}"),
    "tiktok": ("access-token", TOKEN),
}
"""The header with the token."""
CASES = [
    (source, path.stem) for source, folder in FOLDERS.items() for path in sorted((FIXTURES / folder).glob("*.json"))
]


def test_every_channel_with_an_api_is_tested() -> None:
    untested = sorted(set(Source) - set(FOLDERS) - WITHOUT_API)
    assert untested == [], "add a row for these channels to FOLDERS in test_contract.py"
    tables: dict[str, dict[str, Any]] = {"PATHS": PATHS, "ANSWERS": ANSWERS, "IDS": IDS, "AUTHORIZATION": AUTHORIZATION}
    for name, table in tables.items():
        missing = sorted(set(FOLDERS.values()) - set(table))
        assert missing == [], f"add a row for these folders to {name} in test_contract.py"


def test_every_kind_that_a_channel_can_carry_has_a_fixture() -> None:
    kinds = {"message": {"text"}, "template": {"template"}, "interactive": {"buttons", "list", "link"}}
    for source, folder in FOLDERS.items():
        capabilities = CHANNELS[source].capabilities
        needed = {kind for send in capabilities.sends for kind in kinds.get(send, set())} | set(capabilities.files)
        missing = sorted(needed - {path.stem for path in (FIXTURES / folder).glob("*.json")})
        assert missing == [], f"add these requests, one for each kind of CONTENTS, to fixtures/{folder}"


@pytest.mark.parametrize(("source", "kind"), CASES)
async def test_a_request_is_what_the_channel_documents(source: Source, kind: str, peer: Peer, client: Client) -> None:
    folder = FOLDERS[source]
    peer.answers = [(200, ANSWERS[folder])]
    # Fetching TikTok's picture has its own test.
    company = msgspec.structs.replace(build_connection(source, "", client).company, environment="test")
    connection = build_connection(source, f"{peer.address}/v25.0", client, company)
    outcome = await CHANNELS[source].send(connection, OutgoingMessage(REFERENCE, RECIPIENTS[source], CONTENTS[kind]))
    assert outcome == SendReceipt(IDS[folder])
    request = next(request for request in peer.requests if request.path == PATHS[folder])
    assert request.json == json.loads((FIXTURES / folder / f"{kind}.json").read_text())
    assert (request.method, request.headers["content-type"]) == ("POST", "application/json")
    header, value = AUTHORIZATION[folder]
    assert request.headers[header] == value
    assert TOKEN not in str(request.query) + request.body.decode()


@pytest.mark.parametrize("source", [Source.SOCIAL_NETWORK, Source.PHOTO_SOCIAL])
async def test_a_caption_follows_a_file_that_cannot_have_one(source: Source, peer: Peer, client: Client) -> None:
    """A lost caption does not make the file unsent; the receipt says that it is missing."""
    folder = FOLDERS[source]
    company = msgspec.structs.replace(build_connection(source, "", client).company, environment="test")
    connection = build_connection(source, f"{peer.address}/v25.0", client, company)
    message = OutgoingMessage(REFERENCE, RECIPIENTS[source], CONTENTS["image"])
    refusal = {"error": {"message": "Too fast", "type": "OAuthException", "code": 613}}
    caption_answers: list[tuple[Any, str]] = [
        ((200, ANSWERS[folder]), ""),
        ((500, {}), "did not go out, as far as we know"),
        (None, "did not go out, as far as we know"),
        ((400, refusal), "refused the caption: Too fast (code 613)"),
    ]
    for caption_answer, missing in caption_answers:
        peer.requests.clear()
        peer.answers = [(200, ANSWERS[folder]), caption_answer]
        sent = await CHANNELS[source].send(connection, message)
        assert isinstance(sent, SendReceipt)
        assert (sent.message_id, bool(sent.missing)) == (IDS[folder], bool(missing))
        assert missing in (sent.missing or "")
        assert len(peer.requests) == 2
        assert "Kopi Gayo" in peer.requests[-1].body.decode()


async def test_whatsapp_quotes_and_reaches_people_without_a_number(peer: Peer, client: Client) -> None:
    peer.answers = [(200, {"contacts": [{"input": "x", "user_id": "ID.1349"}], "messages": [{"id": "wamid.2"}]})]
    connection = build_connection(Source.MSGAPP_CLOUD, peer.address, client)
    message = OutgoingMessage(REFERENCE, Identity("bsuid", "ID.1349"), CONTENTS["text"], quoted="wamid.0")
    assert await CHANNELS[Source.MSGAPP_CLOUD].send(connection, message) == SendReceipt("wamid.2")
    request = peer.requests[0].json
    assert (request["recipient"], request["context"]) == ("ID.1349", {"message_id": "wamid.0"})
    assert "to" not in request


async def test_whatsapp_says_what_it_holds_back(peer: Peer, client: Client) -> None:
    connection = build_connection(Source.MSGAPP_CLOUD, peer.address, client)
    peer.answers = [(200, {"messages": [{"id": "wamid.4", "message_status": "held_for_quality_assessment"}]})]
    message = OutgoingMessage(REFERENCE, RECIPIENTS[Source.MSGAPP_CLOUD], CONTENTS["template"])
    sent = await CHANNELS[Source.MSGAPP_CLOUD].send(connection, message)
    assert isinstance(sent, SendReceipt)
    assert (sent.message_id, bool(sent.held)) == ("wamid.4", True)


@pytest.mark.parametrize(
    ("contact", "alias"),
    [
        ({"wa_id": "628123456789"}, None),
        ({"wa_id": "5511987654321"}, Identity("wa_id", "5511987654321")),
        ({"user_id": "ID.77"}, Identity("bsuid", "ID.77")),
        ({}, None),
    ],
)
async def test_whatsapps_own_id_of_a_recipient_is_returned(
    contact: dict[str, str], alias: Identity | None, peer: Peer, client: Client
) -> None:
    peer.answers = [(200, {"contacts": [contact], "messages": [{"id": "wamid.3"}]})]
    connection = build_connection(Source.MSGAPP_CLOUD, peer.address, client)
    message = OutgoingMessage(REFERENCE, RECIPIENTS[Source.MSGAPP_CLOUD], CONTENTS["text"])
    assert await CHANNELS[Source.MSGAPP_CLOUD].send(connection, message) == SendReceipt("wamid.3", alias)


async def test_tiktok_quotes_and_hands_over_pictures(peer: Peer, client: Client) -> None:
    picture = b"\x89PNG\r\n\x1a\n" + b"p" * 1000
    peer.answers = [(200, picture), (200, ANSWERS["tiktok"])]
    connection = build_connection(Source.SHORT_VIDEO, peer.address, client)
    to = RECIPIENTS[Source.SHORT_VIDEO]
    send = CHANNELS[Source.SHORT_VIDEO].send
    assert await send(
        connection, OutgoingMessage(REFERENCE, to, Media("image", f"{peer.address}/kopi.png"))
    ) == SendReceipt("tt_1")
    fetched, uploaded, sent = peer.requests
    assert (fetched.method, fetched.path) == ("GET", "/kopi.png")
    assert TOKEN not in str(fetched.headers)
    assert uploaded.path == "/business/message/media/upload/"
    assert uploaded.headers["content-type"].startswith("multipart/form-data")
    for part in (b'name="business_id"\r\n\r\nopen-id-1', b'name="media_type"\r\n\r\nIMAGE', b"image/png", picture):
        assert part in uploaded.body
    assert sent.json["image"] == {"media_id": "media-1"}
    await send(connection, OutgoingMessage(REFERENCE, to, CONTENTS["text"], quoted="tt_0"))
    assert peer.requests[-1].json["referenced_message_info"] == {"referenced_message_id": "tt_0"}
