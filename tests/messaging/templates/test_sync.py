"""Templates at the channel that reviews them."""

from sapa.messaging.channels.abilities import ChannelTemplate, NewTemplate, TemplateStore
from sapa.messaging.channels.interface import SendRefusal, Source
from sapa.messaging.channels.registry import CHANNELS
from sapa.outbound.client import Client
from tests.messaging.channels.accounts import TOKEN, build_connection
from tests.messaging.channels.peer import Peer

BODY = "Halo {{1}}, pesanan {{2}} dikirim."
NEW = NewTemplate(
    "order_update",
    "id",
    "UTILITY",
    BODY,
    ["Budi", "INV-1"],
    "Pesanan",
    "Toko Kopi",
    [{"type": "QUICK_REPLY", "text": "Ya"}],
)


def account(source: Source = Source.MSGAPP_CLOUD) -> TemplateStore:
    channel = CHANNELS[source]
    assert isinstance(channel, TemplateStore)
    return channel


def test_only_whatsapp_reviews_templates() -> None:
    keepers = {source for source, channel in CHANNELS.items() if isinstance(channel, TemplateStore)}
    assert keepers == {Source.MSGAPP_CLOUD, Source.MSGAPP_COEX}


async def test_all_pages_are_listed(peer: Peer, client: Client) -> None:
    one = {"id": "1", "name": "a", "language": "id", "category": "UTILITY", "status": "APPROVED",
           "components": [{"type": "BODY", "text": "x"}], "rejected_reason": "NONE"}  # fmt: skip
    two = {**one, "name": "b", "status": "REJECTED", "rejected_reason": "INVALID_FORMAT"}
    # A URL in a response is not followed: it would be called with our token.
    more = {"cursors": {"after": "mark"}, "next": "http://127.0.0.1:9/steal"}
    peer.answers = [(200, {"data": [one], "paging": more}), (200, {"data": [two, {"x": 1}], "paging": {"cursors": {}}})]
    connection = build_connection(Source.MSGAPP_CLOUD, peer.address, client)
    components = [{"type": "BODY", "text": "x"}]
    assert await account().list_templates(connection) == [
        ChannelTemplate("a", "id", "UTILITY", "APPROVED", components, "1"),
        ChannelTemplate("b", "id", "UTILITY", "REJECTED", components, "1", "INVALID_FORMAT"),
    ]
    assert [(request.path, request.query.get("after")) for request in peer.requests] == [
        ("/3344/message_templates", None),
        ("/3344/message_templates", "mark"),
    ]
    assert all(request.headers["authorization"] == f"Bearer {TOKEN}" for request in peer.requests)


async def test_a_template_is_submitted_to_the_channel(peer: Peer, client: Client) -> None:
    peer.answers = [(200, {"id": "7", "status": "PENDING", "category": "MARKETING"})]
    connection = build_connection(Source.MSGAPP_CLOUD, peer.address, client)
    created = await account().submit_template(connection, NEW)
    [request] = peer.requests
    assert (request.method, request.path) == ("POST", "/3344/message_templates")
    assert request.json == {
        "name": "order_update",
        "language": "id",
        "category": "UTILITY",
        "parameter_format": "POSITIONAL",
        "components": [
            {"type": "HEADER", "format": "TEXT", "text": "Pesanan"},
            {"type": "BODY", "text": BODY, "example": {"body_text": [["Budi", "INV-1"]]}},
            {"type": "FOOTER", "text": "Toko Kopi"},
            {"type": "BUTTONS", "buttons": [{"type": "QUICK_REPLY", "text": "Ya"}]},
        ],
    }
    assert isinstance(created, ChannelTemplate)
    assert (created.id, created.status, created.category) == ("7", "PENDING", "MARKETING")


async def test_a_template_that_the_channel_rejects_is_refused(peer: Peer, client: Client) -> None:
    peer.answers = [(400, {"error": {"message": "Invalid parameter", "code": 100, "error_user_msg": "Name is taken"}})]
    connection = build_connection(Source.MSGAPP_CLOUD, peer.address, client)
    assert await account().submit_template(connection, NEW) == SendRefusal("100", "Name is taken", "validation")


async def test_a_template_is_deleted_by_its_name(peer: Peer, client: Client) -> None:
    connection = build_connection(Source.MSGAPP_CLOUD, peer.address, client)
    peer.answers = [
        (200, {"success": True}),
        (404, {"error": {"message": "does not exist", "code": 100}}),
        (400, {"error": {"message": "Invalid parameter", "code": 100, "error_subcode": 2593002}}),
        (403, {"error": {"message": "not yours", "code": 200}}),
    ]
    assert await account().delete_template(connection, "order_update") is None
    assert (peer.requests[0].method, peer.requests[0].query) == ("DELETE", {"name": "order_update"})
    assert await account().delete_template(connection, "order_update") is None
    assert await account().delete_template(connection, "order_update") is None
    assert await account().delete_template(connection, "order_update") == SendRefusal("200", "not yours", "auth")
