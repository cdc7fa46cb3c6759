"""Templates at the channel that reviews them."""

from typing import Any

import pytest

from sapa.context import AppContext
from sapa.db.pool import Database
from sapa.messaging.channels.abilities import ChannelTemplate, NewTemplate, TemplateStore
from sapa.messaging.channels.interface import SendRefusal, Source
from sapa.messaging.channels.registry import CHANNELS
from sapa.messaging.channels.template_content import (
    Header,
    TemplateButton,
    TemplateContent,
    TemplateExamples,
)
from sapa.messaging.templates.sync import list_companies
from sapa.outbound.client import Client, Unclear
from tests.factories import make_company
from tests.messaging.channels.accounts import TOKEN, build_connection
from tests.messaging.channels.peer import Peer

BODY = "Halo {{1}}, pesanan {{2}} dikirim."
NEW = NewTemplate(
    "order_update",
    "id",
    TemplateContent(
        category="UTILITY",
        header=Header("text", "Pesanan"),
        body=BODY,
        footer="Toko Kopi",
        buttons=[TemplateButton(type="quick_reply", text="Ya")],
        examples=TemplateExamples(body=["Budi", "INV-1"]),
    ),
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
    content = TemplateContent(category="UTILITY", body="x")
    assert await account().list_templates(connection) == [
        ChannelTemplate(name="a", language="id", status="APPROVED", content=content, id="1"),
        ChannelTemplate(name="b", language="id", status="REJECTED", content=content, id="1", reason="INVALID_FORMAT"),
    ]
    assert [(request.path, request.query.get("after")) for request in peer.requests] == [
        ("/3344/message_templates", None),
        ("/3344/message_templates", "mark"),
    ]
    assert all(request.headers["authorization"] == f"Bearer {TOKEN}" for request in peer.requests)


@pytest.mark.parametrize(
    "page", [{}, {"success": True}, {"data": None}, {"data": [], "paging": {"next": "https://graph.example/more"}}]
)
async def test_a_list_that_may_not_be_complete_is_not_used(peer: Peer, client: Client, page: dict[str, Any]) -> None:
    """All templates that it lacks would be deleted."""
    peer.answers = [(200, page)]
    with pytest.raises(Unclear):
        await account().list_templates(build_connection(Source.MSGAPP_CLOUD, peer.address, client))


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
    assert (created.id, created.status, created.content.category) == ("7", "PENDING", "MARKETING")


async def test_a_template_that_the_channel_rejects_is_refused(peer: Peer, client: Client) -> None:
    peer.answers = [(400, {"error": {"message": "Invalid parameter", "code": 100, "error_user_msg": "Name is taken"}})]
    connection = build_connection(Source.MSGAPP_CLOUD, peer.address, client)
    assert await account().submit_template(connection, NEW) == SendRefusal("100", "Name is taken", "validation")


async def test_a_change_is_submitted_to_the_template_itself(peer: Peer, client: Client) -> None:
    peer.answers = [(200, {"success": True})]
    connection = build_connection(Source.MSGAPP_CLOUD, peer.address, client)
    changed = await account().edit_template(connection, "77", NEW)
    [request] = peer.requests
    assert (request.method, request.path) == ("POST", "/77")
    assert set(request.json) == {"category", "parameter_format", "components"}
    assert isinstance(changed, ChannelTemplate)
    assert (changed.id, changed.status) == ("77", "PENDING")


async def test_a_sample_is_fetched_and_uploaded_first(peer: Peer, client: Client) -> None:
    picture = b"\xff\xd8\xff" + b"p" * 1000
    peer.answers = [
        (200, picture, {"content-type": "image/jpeg"}),
        (200, {"id": "upload:abc"}),
        (200, {"h": "4::aW"}),
        (200, {"id": "7", "status": "PENDING"}),
    ]
    connection = build_connection(Source.MSGAPP_CLOUD, peer.address, client)
    url = f"{peer.address}/kopi.jpg"
    content = TemplateContent(
        category="UTILITY", header=Header("image"), body="Halo", examples=TemplateExamples(header=url)
    )
    await account().submit_template(connection, NewTemplate("promo", "id", content))
    fetched, opened, sent, created = peer.requests
    assert (fetched.path, TOKEN in str(fetched.headers)) == ("/kopi.jpg", False)
    assert (opened.path, opened.query["file_length"], opened.query["file_type"]) == (
        "/app/uploads",
        "1003",
        "image/jpeg",
    )
    assert (sent.path, sent.headers["file_offset"], sent.body) == ("/upload:abc", "0", picture)
    assert sent.headers["authorization"] == f"OAuth {TOKEN}"
    assert created.json["components"][0]["example"] == {"header_handle": ["4::aW"]}


async def test_a_sample_that_is_missing_is_named(peer: Peer, client: Client) -> None:
    peer.answers = [(404, b"")]
    connection = build_connection(Source.MSGAPP_CLOUD, peer.address, client)
    url = f"{peer.address}/kopi.jpg"
    content = TemplateContent(
        category="UTILITY", header=Header("image"), body="Halo", examples=TemplateExamples(header=url)
    )
    refused = await account().submit_template(connection, NewTemplate("promo", "id", content))
    assert refused == SendRefusal("media", f"There is no sample at {url} (status 404).", "media")


async def test_a_template_is_deleted_by_its_name_and_id(peer: Peer, client: Client) -> None:
    connection = build_connection(Source.MSGAPP_CLOUD, peer.address, client)
    peer.answers = [
        (200, {"success": True}),
        (404, {"error": {"message": "does not exist", "code": 100}}),
        (400, {"error": {"message": "Invalid parameter", "code": 100, "error_subcode": 2593002}}),
        (403, {"error": {"message": "not yours", "code": 200}}),
    ]
    assert await account().delete_template(connection, "order_update", "77") is None
    assert (peer.requests[0].method, peer.requests[0].query) == ("DELETE", {"name": "order_update", "hsm_id": "77"})
    assert await account().delete_template(connection, "order_update", None) is None
    assert peer.requests[1].query == {"name": "order_update"}
    assert await account().delete_template(connection, "order_update", "77") is None
    assert await account().delete_template(connection, "order_update", "77") == SendRefusal("200", "not yours", "auth")


async def test_templates_of_all_companies_are_synchronised_however_many_there_are(
    context: AppContext, database: Database
) -> None:
    companies = {(await make_company(database)).test for _ in range(5)}
    async with database.transaction() as tx:
        for company_id in companies:
            await tx.execute(
                "INSERT INTO message_templates (company_id, id, name, language, source, category, body, buttons,"
                " status) VALUES ($1, 'tpl_new', 'new', 'id', 'CRM', 'UTILITY', 'Halo', '[]', 'PENDING')",
                company_id,
            )
    found = [company_id async for company_id in list_companies(context, page_size=2)]
    assert companies <= set(found)
    assert found == sorted(set(found))
