"""Responses of channels: an id, a certain refusal, or an unknown outcome."""

import logging
from typing import Any

import pytest

from sapa.messaging.channels.interface import (
    BadAccount,
    Media,
    OutgoingMessage,
    SendRefusal,
    Source,
)
from sapa.messaging.channels.registry import CHANNELS
from sapa.outbound.client import Client, NotSent, Unclear
from sapa.outbound.http_client import HttpClient
from sapa.settings import WebhookSettings
from tests.messaging.channels.accounts import RECIPIENTS, REFERENCE, SECRETS, WITHOUT_API, build_connection
from tests.messaging.channels.contents import CONTENTS
from tests.messaging.channels.peer import Peer

HTTP = [source for source in Source if source not in WITHOUT_API]
WHATSAPP = {
    "auth": [0, 190, 3, 10, 200, 250, 299, 131005],
    "rate": [4, 80007, 80008, 130429, 131056],
    "quality": [131048, 131064, 131049],
    "policy": [368, 131031, 130497],
    "recipient": [131026, 130472, 131062, 137000],
    "window": [131047],
    "consent": [131050],
    "validation": [33, 100, 131021, 131008, 131009, 131051, 999999],
    "config": [131030, 131037, 131045, 131063, 133010],
    "media": [131052, 131053],
    "template": [132000, 132001, 132005, 132007, 132008, 132012, 132015, 132016, 132018, 132068, 132069],
    "billing": [131042, 131044],
    "temporary": [1, 2, 131000, 131016, 131057, 135000],
}
WAITS = {4: 60, 80007: 60, 80008: 60, 130429: 1, 131056: 6, 131049: 86_400}


async def send(source: Source, peer: Peer, client: Client, *answers: Any, kind: str = "text") -> object:
    peer.answers = list(answers)
    connection = build_connection(source, peer.address, client)
    return await CHANNELS[source].send(connection, OutgoingMessage(REFERENCE, RECIPIENTS[source], CONTENTS[kind]))


def graph_error(code: int, message: str = "no", **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, "type": "OAuthException", "code": code, "fbtrace_id": "A", **more}}


@pytest.mark.parametrize(("category", "code"), [(word, code) for word, codes in WHATSAPP.items() for code in codes])
async def test_whatsapps_codes_mean_what_the_table_says(category: str, code: int, peer: Peer, client: Client) -> None:
    body = graph_error(code, error_data={"messaging_product": "whatsapp", "details": "in detail"})
    refused = await send(Source.MSGAPP_CLOUD, peer, client, (400, body))
    wait = WAITS.get(code, 10 if category == "temporary" else None)
    assert refused == SendRefusal(str(code), "in detail", category, wait)  # type: ignore[arg-type]


@pytest.mark.parametrize("source", [Source.SOCIAL_NETWORK, Source.PHOTO_SOCIAL])
@pytest.mark.parametrize(
    ("code", "message", "category"),
    [
        (190, "Error validating access token", "auth"),
        (10, "This message is sent outside of allowed window.", "window"),
        (10, "Application does not have permission", "auth"),
        (551, "This person isn't available right now", "recipient"),
        (100, "No matching user found", "recipient"),
        (100, "Param message is wrong", "validation"),
        (613, "Calls to this api have exceeded the rate limit", "rate"),
        (4, "Application request limit reached", "rate"),
        (2, "Service temporarily unavailable", "temporary"),
        (230, "Permission pages_messaging missing", "auth"),
    ],
)
async def test_the_codes_of_messenger_and_instagram(
    source: Source, code: int, message: str, category: str, peer: Peer, client: Client
) -> None:
    refused = await send(source, peer, client, (400, graph_error(code, message)))
    assert isinstance(refused, SendRefusal)
    assert (refused.code, refused.reason, refused.category) == (str(code), message, category)
    assert (refused.retry_after is not None) == (category in {"rate", "temporary"})


@pytest.mark.parametrize("source", HTTP)
@pytest.mark.parametrize(("asked", "pause"), [("7200", 7200), ("0", 60), ("soon", 60), ("9" * 400, 86_400)])
async def test_a_channel_that_asks_for_a_longer_pause_gets_it(
    source: Source, asked: str, pause: int, peer: Peer, client: Client
) -> None:
    body = {**graph_error(4), "code": 40064, "message": "Sending too fast"}
    refused = await send(source, peer, client, (429, body, {"retry-after": asked}))
    assert isinstance(refused, SendRefusal)
    assert refused.retry_after == pause


@pytest.mark.parametrize("message", ["(#131026) Message undeliverable", "(131026) Message undeliverable"])
async def test_a_code_in_front_of_the_reason_is_not_said_twice(message: str, peer: Peer, client: Client) -> None:
    refused = await send(Source.MSGAPP_CLOUD, peer, client, (400, graph_error(131026, message)))
    assert isinstance(refused, SendRefusal)
    assert (refused.code, refused.reason) == ("131026", "Message undeliverable")


@pytest.mark.parametrize("source", HTTP)
@pytest.mark.parametrize("status", [500, 503])
async def test_a_definite_error_is_a_refusal_whatever_the_status(
    source: Source, status: int, peer: Peer, client: Client
) -> None:
    body = {**graph_error(190, "token expired"), "code": 40105, "message": "token expired"}
    refused = await send(source, peer, client, (status, body))
    assert isinstance(refused, SendRefusal)
    assert refused.category == "auth"


@pytest.mark.parametrize("source", HTTP)
@pytest.mark.parametrize(
    ("graph", "tiktok"),
    [
        (graph_error(2, "Service temporarily unavailable"), 50002),
        (graph_error(987654, "Something else"), 41999),
        (graph_error(0, "An unknown error occurred"), 0),
        ({"error": {"message": "no code"}}, None),
    ],
)
async def test_an_error_that_is_not_definite_leaves_a_server_error_unclear(
    source: Source, graph: dict[str, Any], tiktok: int | None, peer: Peer, client: Client
) -> None:
    body = {"code": tiktok, "message": "no"} if source == Source.SHORT_VIDEO else graph
    with pytest.raises(Unclear):
        await send(source, peer, client, (500, body))


@pytest.mark.parametrize(
    ("code", "message", "category"),
    [
        (40064, "Sending too fast", "rate"),
        (40105, "Access token is incorrect or has been revoked", "auth"),
        (40002, "business_id: missing", "validation"),
        (40011, "Outside of the reply window", "window"),
    ],
)
async def test_tiktoks_errors_are_in_the_body(
    code: int, message: str, category: str, peer: Peer, client: Client
) -> None:
    refused = await send(Source.SHORT_VIDEO, peer, client, (200, {"code": code, "message": message, "data": {}}))
    assert isinstance(refused, SendRefusal)
    assert (refused.code, refused.reason, refused.category) == (str(code), message, category)


@pytest.mark.parametrize("source", HTTP)
@pytest.mark.parametrize(
    "answer",
    [None, (500, {}), (503, graph_error(131016)), (200, b"<html>"), (200, {}), (200, []), (404, b"nothing here")],
)
async def test_an_uncertain_response_raises_unclear(source: Source, answer: Any, peer: Peer, client: Client) -> None:
    with pytest.raises(Unclear):
        await send(source, peer, client, answer)
    assert len(peer.requests) == 1


@pytest.mark.parametrize("source", HTTP)
async def test_a_request_that_never_left_raises_not_sent(source: Source, client: Client) -> None:
    connection = build_connection(source, "http://127.0.0.1:9", client)
    with pytest.raises(NotSent):
        await CHANNELS[source].send(connection, OutgoingMessage(REFERENCE, RECIPIENTS[source], CONTENTS["text"]))


@pytest.mark.parametrize("answer", [(404, b""), (200, b"GIF89a"), None, (200, b"\x89PNG\r\n\x1a\n" + b"p" * 3_200_000)])
async def test_a_picture_that_tiktok_would_not_take_is_refused(answer: Any, peer: Peer, client: Client) -> None:
    connection = build_connection(Source.SHORT_VIDEO, peer.address, client)
    peer.answers = [answer]
    to = RECIPIENTS[Source.SHORT_VIDEO]
    message = OutgoingMessage(REFERENCE, to, Media("image", f"{peer.address}/x"))
    refused = await CHANNELS[Source.SHORT_VIDEO].send(connection, message)
    assert isinstance(refused, SendRefusal)
    assert refused.category == "media"
    assert {request.method for request in peer.requests} == {"GET"}


async def test_a_picture_is_fetched_through_the_guard(peer: Peer) -> None:
    guarded = HttpClient(WebhookSettings(allow_insecure=False, allowed_networks=()))
    connection = build_connection(Source.SHORT_VIDEO, peer.address, guarded)
    message = OutgoingMessage(REFERENCE, RECIPIENTS[Source.SHORT_VIDEO], Media("image", f"{peer.address}/x.png"))
    refused = await CHANNELS[Source.SHORT_VIDEO].send(connection, message)
    await guarded.close()
    assert isinstance(refused, SendRefusal)
    assert "could not be fetched" in refused.reason
    assert peer.requests == []


@pytest.mark.parametrize("answer", [(500, {}), None])
async def test_a_picture_whose_upload_is_unclear_was_not_sent(answer: Any, peer: Peer, client: Client) -> None:
    """An upload alone sends nothing."""
    connection = build_connection(Source.SHORT_VIDEO, peer.address, client)
    peer.answers = [(200, b"\xff\xd8\xff picture"), answer]
    message = OutgoingMessage(REFERENCE, RECIPIENTS[Source.SHORT_VIDEO], Media("image", f"{peer.address}/x.jpg"))
    with pytest.raises(NotSent):
        await CHANNELS[Source.SHORT_VIDEO].send(connection, message)


VERIFIED = {
    Source.MSGAPP_CLOUD: ("/1122", {"id": "1122", "display_phone_number": "+62 811-0000-1111"}),
    Source.MSGAPP_COEX: ("/1122", {"id": "1122", "display_phone_number": "+62 811-0000-1111"}),
    Source.SOCIAL_NETWORK: ("/5566", {"id": "5566", "name": "Toko Kopi"}),
    Source.PHOTO_SOCIAL: ("/me", {"user_id": "17841400", "username": "tokokopi"}),
    Source.SHORT_VIDEO: ("/business/get/", {"code": 0, "data": {"username": "tokokopi"}}),
}


def test_every_account_is_verified() -> None:
    missing = sorted(set(HTTP) - set(VERIFIED))
    assert missing == [], "add to VERIFIED in test_answers.py the path that verifies these accounts, and its response"


@pytest.mark.parametrize("source", VERIFIED)
async def test_an_account_is_verified_without_sending(source: Source, peer: Peer, client: Client) -> None:
    path, answer = VERIFIED[source]
    peer.answers = [(200, answer)]
    await CHANNELS[source].verify(build_connection(source, peer.address, client))
    assert [(request.method, request.path) for request in peer.requests] == [("GET", path)]


@pytest.mark.parametrize("source", VERIFIED)
async def test_an_account_that_is_refused_says_why(source: Source, peer: Peer, client: Client) -> None:
    body = {**graph_error(190, "token expired"), "code": 40105, "message": "token expired"}
    peer.answers = [(400, body)]
    with pytest.raises(BadAccount, match="token expired"):
        await CHANNELS[source].verify(build_connection(source, peer.address, client))


@pytest.mark.parametrize("source", sorted(set(VERIFIED) - {Source.SHORT_VIDEO}))
async def test_another_account_is_noticed(source: Source, peer: Peer, client: Client) -> None:
    peer.answers = [(200, {"id": "1", "user_id": "1", "display_phone_number": "+62 811-0000-2222"})]
    with pytest.raises(BadAccount, match="belongs to"):
        await CHANNELS[source].verify(build_connection(source, peer.address, client))


@pytest.mark.parametrize("source", HTTP)
async def test_no_secret_is_in_an_error(
    source: Source, peer: Peer, client: Client, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not in the account's repr either, which a log would print."""
    printed: list[object] = [build_connection(source, peer.address, client)]
    caplog.set_level(logging.DEBUG)
    error = {**graph_error(190, "no"), "code": 40105, "message": "no"}
    for answer in (None, (500, {}), (200, b"<html>"), (400, error)):
        try:
            printed.append(await send(source, peer, client, answer, kind="text"))
        except (NotSent, Unclear) as failure:
            printed += [failure, failure.__cause__]
    captured = capsys.readouterr()
    words = " ".join(map(repr, printed)) + caplog.text + captured.out + captured.err
    assert not [secret for secret in SECRETS.values() if secret in words]
