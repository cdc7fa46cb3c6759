"""Every kind of message that a channel can bring, from its simulator to the API, the webhook and the conversation."""

from typing import Any

import httpx
import pytest

from sapa.db.pool import Database
from sapa.messaging.channels.interface import Source
from sapa.sandbox.channels.simulators import SIMULATORS
from sapa.sandbox.inbound_contents import ALONE, BESIDE
from tests.factories import Environments
from tests.http.wire import eventually
from tests.messaging.conversation_steps import (
    get_message,
    list_events,
    list_inbound,
    send,
    settled,
    simulate_inbound,
    wait_for_inbound,
)
from tests.messaging.inbound.test_actions import SENDERS

Json = dict[str, Any]

CART = {"items": [{"productId": "GAYO", "quantity": 2, "price": 75000.5}], "text": "Cepat ya"}
CONTENTS: Json = {
    "order": CART,
    "flow": {"data": {"city": "Bandung", "rating": 4.5}, "token": "t-1"},
    "location": {"latitude": -6.175, "longitude": 106.827, "name": "Monas"},
    "contactCards": [{"name": "Budi", "phone": "+62 811", "email": "budi@example.com"}],
    "share": {"type": "reel", "url": "https://cdn.example/r", "id": "99", "title": "Kopi"},
    "referral": {"sourceId": "1202", "headline": "Kopi baru", "imageUrl": "https://cdn.example/ad.jpg"},
    "product": {"productId": "GAYO", "catalogId": "1948"},
    "story": {"id": "88", "url": "https://cdn.example/s"},
    "forwarded": True,
    "unknown": {"type": "hologram", "content": {"depth": 3}},
}
EXPECTED: Json = {
    "order": ("order", "order", {
        "catalogId": "194836987003835", "text": "Cepat ya", "orderId": None, "error": None,
        "items": [{"productId": "GAYO", "quantity": 2, "price": 75000.5, "currency": "IDR"}]}),
    "flow": ("flow", "flow", {
        "name": "flow", "token": "t-1", "text": None, "data": {"city": "Bandung", "rating": 4.5, "flow_token": "t-1"}}),
    "location": ("location", "location", {
        "latitude": -6.175, "longitude": 106.827, "name": "Monas", "address": None, "url": None}),
    "contactCards": ("contacts", "contactCards", [{
        "name": "Budi", "phones": [{"phone": "+62 811", "type": "CELL", "waId": None}],
        "emails": [{"email": "budi@example.com", "type": "HOME"}], "addresses": [], "urls": [], "organization": None,
        "birthday": None}]),
    "share": (None, "shares", [{"type": "reel", "id": "99", "url": "https://cdn.example/r", "title": "Kopi"}]),
    "referral": ("text", "referral", {"sourceType": "ad", "sourceId": "1202", "headline": "Kopi baru"}),
    "product": ("text", "context", {"product": {"catalogId": "1948", "productId": "GAYO"}}),
    "story": ("text", "context", {"story": {"id": "88", "url": "https://cdn.example/s"}}),
    "forwarded": ("text", "context", {"isForwarded": True, "isFrequentlyForwarded": False}),
    "unknown": ("unsupported", "unsupported", {"type": "hologram", "errors": []}),
}  # fmt: skip
"""The message's type, the field, and what it holds at least."""
NOT_A_MESSAGE = {"edit", "revocation", "reaction", "preference", "error"}
WITHOUT_TEXT = {Source.SHORT_VIDEO: {"referral"}}
"""What comes without a message: tests of channel events."""
ADDED = (
    "context", "referral", "order", "flow", "location", "contactCards", "shares", "unsupported", "reactions",
    "editedAt", "revokedAt",
)  # fmt: skip


def show(name: str) -> str:
    return "contactCards" if name == "contact_cards" else name


CASES = [
    (source, show(name))
    for source in Source
    for name in sorted(SIMULATORS[source].contents - NOT_A_MESSAGE - WITHOUT_TEXT.get(source, set()))
]


def test_every_content_is_tested() -> None:
    assert {show(name) for name in (*ALONE, *BESIDE)} - NOT_A_MESSAGE == set(CONTENTS) == set(EXPECTED)


@pytest.mark.parametrize(("source", "name"), CASES)
async def test_a_kind_is_in_the_message_and_in_its_webhook(
    sandbox: httpx.AsyncClient, database: Database, company: Environments, source: Source, name: str
) -> None:
    beside = {"text": "Halo"} if name in BESIDE else {}
    await simulate_inbound(sandbox, source=source, **{"from": SENDERS[source], name: CONTENTS[name], **beside})
    (stored,) = await wait_for_inbound(database, company.test)
    shown = await get_message(sandbox, stored["id"])
    type, field, content = EXPECTED[name]
    assert shown["type"] == (type or ("share_post" if source is Source.SHORT_VIDEO else "share"))
    if source is Source.SHORT_VIDEO and name == "share":
        content = [{"type": "post", "id": "99", "url": "https://cdn.example/r", "title": None}]
    if isinstance(content, dict):
        assert shown[field].items() >= content.items()
    else:
        assert shown[field] == content
    assert [one for one in ADDED if shown[one] is not None] == [field]
    (received,) = await list_events(database, company.test, "message.received")
    assert {one: received[one] for one in ADDED} == {one: shown[one] for one in ADDED}


async def test_an_ordinary_message_has_none_of_the_fields(sandbox: httpx.AsyncClient) -> None:
    sent = (await send(sandbox, "+628123456789")).json()["data"]
    assert [name for name in ADDED if sent[name] is not None] == []


async def test_a_quoted_message_is_named_by_both_ids(
    sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    sent = (await send(sandbox, "+628123456789")).json()["data"]
    answer = {"source": "MSGAPP_CLOUD", "from": "+628123456789", "quoted": sent["messageId"]}
    await simulate_inbound(sandbox, **answer, flow=CONTENTS["flow"])
    (stored,) = await wait_for_inbound(database, company.test)
    shown = await get_message(sandbox, stored["id"])
    assert (shown["context"]["messageId"], shown["context"]["messageId2"]) == (sent["messageId"], sent["messageId2"])
    assert (await settled(sandbox, sent["messageId2"], {"repliedAt"}))["repliedAt"]
    reply = await send(sandbox, "+628123456789", replyTo=stored["id"])
    context = reply.json()["data"]["context"]
    assert (context["messageId"], context["messageId2"]) == (stored["provider_id"], stored["id"])


@pytest.mark.parametrize("source", ["MSGAPP_CLOUD", "SOCIAL_NETWORK", "PHOTO_SOCIAL", "SHORT_VIDEO"])
async def test_edits_deletions_and_reactions_change_the_message_and_are_announced(
    sandbox: httpx.AsyncClient, database: Database, company: Environments, source: str
) -> None:
    able, sender = SIMULATORS[Source(source)].contents, {"source": source, "from": SENDERS[source]}
    await simulate_inbound(sandbox, **sender, text="Satu kopi")
    (stored,) = await wait_for_inbound(database, company.test)
    original = {"messageId": stored["provider_id"]}
    steps = {"reaction": {**original, "emoji": "👍"}, "edit": {**original, "text": "Dua kopi"}, "revocation": original}
    for name, content in steps.items():
        if name in able:
            await simulate_inbound(sandbox, **sender, **{name: content})
    kinds = [
        kind for kind, name in (("reacted", "reaction"), ("edited", "edit"), ("revoked", "revocation")) if name in able
    ]

    async def look() -> list[Json] | None:
        updates = await list_events(database, company.test, "message.updated")
        return updates if len(updates) == len(kinds) else None

    updates = await eventually(look)
    assert [update["change"]["kind"] for update in updates] == kinds
    assert {update["change"]["by"] for update in updates} == {"customer"}
    shown = await get_message(sandbox, stored["id"])
    assert shown["body"] == ("Dua kopi" if "edit" in able else "Satu kopi")
    assert (shown["editedAt"] is not None, shown["revokedAt"] is not None) == ("edit" in able, "revocation" in able)
    assert [(one["by"], one["emoji"]) for one in shown["reactions"]] == [("customer", "👍")]
    assert len(await list_inbound(database, company.test)) == 1


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"source": "WIDGET", "from": "sim_ayu", "order": CART}, "order"),
        ({"source": "MAIL", "from": "ayu@simulator.test", "text": "x", "forwarded": True}, "forwarded"),
        ({"source": "SHORT_VIDEO", "from": "sim_ayu", "text": "x", "referral": {"sourceId": "1"}}, "referral"),
        ({"source": "MSGAPP_CLOUD", "from": "+12015550100", "text": "x", "order": CART}, "order"),
        ({"source": "MSGAPP_CLOUD", "from": "+12015550100", "order": CART, "revocation": {"messageId": "x"}}, "order"),
        ({"source": "MSGAPP_CLOUD", "from": "+12015550100", "referral": {"sourceId": "1"}}, "text"),
        ({"source": "PHOTO_SOCIAL", "from": "17841400123", "contactCards": [{"name": "x"}]}, "contactCards"),
    ],
)
async def test_a_content_that_the_channel_cannot_bring_is_refused(
    sandbox: httpx.AsyncClient, body: Json, field: str
) -> None:
    answer = await sandbox.post("/sandbox/inbound", json=body)
    assert answer.status_code == 400, answer.text
    assert [detail["field"] for detail in answer.json()["error"]["details"]] == [field]
