"""Templates: created, changed, previewed, approved."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from sapa.access.actions import get_company
from sapa.db.pool import Database
from sapa.messaging.channels.abilities import ChannelTemplate
from sapa.messaging.templates import actions, queries
from sapa.messaging.templates.sync import list_companies, synchronise_company
from sapa.messaging.templates.text import parse_content
from tests.conftest import Installation
from tests.factories import Environments
from tests.http.wire import eventually
from tests.messaging.provider import NUMBER_SENT, Live, open_live
from tests.messaging.send_steps import NUMBER, make_code_template, make_template

Json = dict[str, Any]
FULL: Json = {
    "header": {"type": "text", "text": "Pesanan Anda"},
    "footer": "Toko Kopi",
    "buttons": [
        {"type": "quick_reply", "text": "Terima kasih"},
        {"type": "url", "text": "Lihat", "url": "https://shop.example/orders"},
    ],
}


async def test_a_template_is_approved_at_once_in_the_test_environment(sandbox: httpx.AsyncClient) -> None:
    created = await make_template(sandbox, **FULL)
    assert (created["status"], created["source"], created["reason"]) == ("APPROVED", "CRM", None)
    assert (created["header"], created["footer"]) == (FULL["header"], FULL["footer"])
    assert [button["text"] for button in created["buttons"]] == ["Terima kasih", "Lihat"]
    assert (await sandbox.get(f"/templates/{created['id']}")).json()["data"] == created
    (submitted,) = (await sandbox.get("/sandbox/outbox")).json()["data"]
    assert (submitted["method"], submitted["path"].rpartition("/")[2]) == ("POST", "message_templates")


async def test_a_header_may_be_given_as_its_text_and_the_source_follows_the_category(
    sandbox: httpx.AsyncClient,
) -> None:
    created = await make_template(sandbox, header="Pesanan")
    assert (created["header"], created["source"]) == ({"type": "text", "text": "Pesanan"}, "CRM")
    assert (await make_code_template(sandbox))["source"] == "AUTH"


async def test_name_and_language_are_taken_together(sandbox: httpx.AsyncClient) -> None:
    await make_template(sandbox)
    await make_template(sandbox, language="en_US")
    again = {"name": "order_update", "language": "id", "category": "UTILITY", "body": "x"}
    answer = await sandbox.post("/templates", json=again)
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "TEMPLATE_EXISTS")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"name": "Order Update"}, "name: "),
        ({"name": "order_update\n"}, "name: "),
        ({"language": "id\n"}, "language: "),
        ({"body": " \n"}, "blank"),
        ({"body": "Halo {{1"}, "braces"),
        ({"body": "Halo {{1}} }}"}, "braces"),
        ({"language": "bahasa indonesia"}, "language: "),
        ({"category": "NEWS"}, "category: "),
        ({"body": ""}, "body: "),
        ({"body": "x" * 1025}, "body: "),
        ({"body": "Halo {{2}}"}, "without gaps"),
        ({"body": "Halo {{name}}"}, "must number"),
        ({"body": "Halo {{0}}"}, "must number"),
        ({"header": {"type": "text"}}, "header.text: "),
        ({"header": {"type": "image", "text": "x"}}, "header.text: "),
        ({"header": "Halo {{1}} dan {{2}}"}, "at most one parameter"),
        ({"footer": "x" * 61}, "footer: "),
        ({"buttons": [{"type": "url", "text": "x"}]}, "buttons[0].url: "),
        ({"buttons": [{"type": "quick_reply", "text": "x", "url": "https://a.example"}]}, "buttons[0].url: "),
        ({"buttons": [{"type": "phone_number", "text": "x"}]}, "buttons[0].phoneNumber: "),
        ({"colour": "red"}, "colour: "),
    ],
)
async def test_an_invalid_template_is_refused(sandbox: httpx.AsyncClient, fields: Json, words: str) -> None:
    body = {"name": "order_update", "language": "id", "category": "UTILITY", "body": "Halo", **fields}
    answer = await sandbox.post("/templates", json=body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "VALIDATION_ERROR"), answer.text
    assert words in answer.json()["error"]["message"]


async def test_changes_keep_what_is_absent_and_clear_what_is_null(sandbox: httpx.AsyncClient) -> None:
    created = await make_template(sandbox, **FULL)
    changed = await sandbox.put(f"/templates/{created['id']}", json={"body": "Hai {{1}}, halo.", "footer": None})
    data = changed.json()["data"]
    assert (data["body"], data["footer"], data["header"]) == ("Hai {{1}}, halo.", None, created["header"])
    assert data["buttons"] == created["buttons"]

    async def approved() -> bool | None:
        found = (await sandbox.get(f"/templates/{created['id']}")).json()["data"]
        return found["status"] == "APPROVED" or None

    await eventually(approved)
    assert (await sandbox.put(f"/templates/{created['id']}", json={"body": "Hai {{3}}"})).status_code == 400
    assert (await sandbox.put(f"/templates/{created['id']}", json={"name": "other"})).status_code == 400


async def test_a_preview_fills_the_parameters_in(sandbox: httpx.AsyncClient) -> None:
    created = await make_template(sandbox, **FULL)
    answer = await sandbox.post(f"/templates/{created['id']}/preview", json={"params": ["{{2}}", "INV-1"]})
    assert answer.json()["data"] == {
        "header": "Pesanan Anda",
        "body": "Halo {{2}}, pesanan INV-1 dikirim.",
        "footer": "Toko Kopi",
        "buttons": ["Terima kasih", "Lihat"],
        "text": "Pesanan Anda\n\nHalo {{2}}, pesanan INV-1 dikirim.\n\nToko Kopi\n\nLihat: https://shop.example/orders",
    }
    refused = await sandbox.post(f"/templates/{created['id']}/preview", json={"params": []})
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "TEMPLATE_PARAMS_MISMATCH")


async def test_a_deleted_template_is_gone(sandbox: httpx.AsyncClient) -> None:
    created = await make_template(sandbox)
    assert (await sandbox.delete(f"/templates/{created['id']}")).status_code == 204
    assert (await sandbox.get(f"/templates/{created['id']}")).status_code == 404
    assert (await sandbox.delete(f"/templates/{created['id']}")).status_code == 404
    assert (await sandbox.get("/templates")).json()["meta"]["total"] == 0


async def test_the_list_and_its_filters(sandbox: httpx.AsyncClient) -> None:
    for name, language, category in (
        ("order_update", "id", "UTILITY"),
        ("order_update", "en", "UTILITY"),
    ):
        await make_template(sandbox, name=name, language=language, category=category)
    await make_code_template(sandbox)
    for params, names in (
        ({}, ["login_code", "order_update", "order_update"]),
        ({"search": "login"}, ["login_code"]),
        ({"search": "r_u"}, ["order_update", "order_update"]),
        ({"search": "%"}, []),
        ({"language": "id"}, ["login_code", "order_update"]),
        ({"source": "AUTH"}, ["login_code"]),
        ({"status": "PENDING"}, []),
        ({"limit": 1, "page": 3}, ["order_update"]),
    ):
        found = (await sandbox.get("/templates", params=params)).json()
        assert [template["name"] for template in found["data"]] == names, params


async def test_of_several_languages_the_requested_one_is_sent(sandbox: httpx.AsyncClient) -> None:
    await make_template(sandbox, body="Halo")
    await make_template(sandbox, body="Hello", language="en")
    body = {"to": NUMBER, "sources": "MAIL", "template_name": "order_update"}
    for language, text in ((None, "Halo"), ("en", "Hello"), ("id", "Halo")):
        request = {**body, "to": "ayu@example.com", **({"language": language} if language else {})}
        answer = await sandbox.post("/messages/send-template", json=request)
        assert answer.json()["data"]["body"] == text


async def test_a_media_header_needs_a_file_with_each_send(sandbox: httpx.AsyncClient) -> None:
    url = "https://shop.example/kopi.png"
    await make_template(sandbox, body="Halo", header={"type": "image"}, examples={"header": url})
    body = {"to": NUMBER, "sources": "MSGAPP_CLOUD", "template_name": "order_update"}
    refused = await sandbox.post("/messages/send-template", json=body)
    assert refused.json()["error"]["message"].startswith("mediaUrl: is required")
    sent = await sandbox.post("/messages/send-template", json={**body, "mediaUrl": url})
    assert sent.json()["data"]["mediaUrl"] == url
    assert url in (await sandbox.get("/sandbox/outbox")).json()["data"][0]["body"]


@pytest.fixture
async def live_company(installation: Installation, database: Database, company: Environments) -> AsyncIterator[Live]:
    async with open_live(installation, database, company.live) as opened:
        yield opened


LIVE: Json = {"name": "order_update", "language": "id", "category": "UTILITY", "body": "Halo {{1}}, apa kabar?"}


async def test_a_live_template_waits_for_the_channel_s_decision(live_company: Live) -> None:
    live_company.peer.answers = [(200, {"id": "88", "status": "PENDING", "category": "UTILITY"}), (200, NUMBER_SENT)]
    created = (await live_company.post("/templates", **LIVE, footer="Toko")).json()["data"]
    assert created["status"] == "PENDING"
    (request,) = live_company.peer.requests
    assert request.path.endswith("/message_templates")
    assert (request.json["name"], request.json["components"][0]["text"]) == ("order_update", "Halo {{1}}, apa kabar?")
    send = {"to": NUMBER, "template_name": "order_update", "params": ["Ayu"]}
    refused = await live_company.post("/messages/send-template", **send)
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "TEMPLATE_NOT_APPROVED")
    changed = await live_company.client.put(
        f"http://probe/messaging/v1/templates/{created['id']}", json={"body": "Hai {{1}}, halo."}
    )
    assert changed.json()["error"]["code"] == "TEMPLATE_ON_CHANNEL"
    verdict = {"event": "APPROVED", "message_template_name": "order_update", "message_template_language": "id"}
    await live_company.hook.send_change(verdict, field="message_template_status_update")

    async def approved() -> bool | None:
        return (await live_company.get(f"/templates/{created['id']}"))["status"] == "APPROVED" or None

    await eventually(approved)
    sent = await live_company.post("/messages/send-template", **send)
    assert sent.status_code == 200, sent.text


async def test_a_template_that_the_channel_refuses_says_why(live_company: Live) -> None:
    live_company.peer.answers = [(400, {"error": {"code": 100, "message": "Too many variables"}})]
    created = (await live_company.post("/templates", **LIVE)).json()["data"]
    assert created["status"] == "REJECTED"
    assert "Too many variables" in created["reason"]


async def test_a_live_template_is_deleted_at_the_channel_language_by_language(live_company: Live) -> None:
    live_company.peer.answers = [(200, {"id": "88", "status": "APPROVED"}), (200, {"id": "89", "status": "APPROVED"})]
    created = [
        (await live_company.post("/templates", **{**LIVE, "language": language})).json()["data"]
        for language in ("id", "en")
    ]
    live_company.peer.answers = [(500, {}), (200, {"success": True})]
    address = "http://probe/messaging/v1/templates/"
    refused = await live_company.client.delete(address + created[0]["id"])
    assert refused.json()["error"]["code"] == "TEMPLATE_NOT_DELETED"
    for template in created:
        assert (await live_company.client.delete(address + template["id"])).status_code == 204
    deletions = [request.query for request in live_company.peer.requests if request.method == "DELETE"]
    assert deletions == [{"name": "order_update", "hsm_id": id} for id in ("88", "88", "89")]


LISTED: list[Json] = [
    {"name": "order_update", "language": "id", "category": "UTILITY", "status": "APPROVED", "id": "1",
     "components": [{"type": "BODY", "text": "Halo {{1}}, apa kabar?"}], "quality_score": {"score": "GREEN"}},
    {"name": "broken", "language": "id", "category": "UTILITY", "status": "APPROVED", "id": "6",
     "components": [{"type": "BODY", "text": "Halo \0"}]},
    {"name": "promo", "language": "id", "category": "MARKETING", "status": "PAUSED", "id": "2",
     "components": [{"type": "HEADER", "format": "IMAGE", "example": {"header_handle": ["https://cdn.example/1"]}},
                    {"type": "BODY", "text": "Diskon"}]},
    {"name": "named", "language": "id", "category": "UTILITY", "status": "APPROVED", "id": "3",
     "parameter_format": "NAMED", "components": [{"type": "BODY", "text": "Halo {{name}}, hai."}]},
    {"name": "titled", "language": "id", "category": "UTILITY", "status": "APPROVED", "id": "4",
     "components": [{"type": "HEADER", "format": "TEXT", "text": "Nota {{1}}"}, {"type": "BODY", "text": "Halo"}]},
    {"name": "code", "language": "en", "category": "AUTHENTICATION", "status": "APPROVED", "id": "7",
     "components": [
         {"type": "BODY", "text": "*{{1}}* is your verification code.", "add_security_recommendation": True},
         {"type": "FOOTER", "text": "This code expires in 5 minutes.", "code_expiration_minutes": 5},
         {"type": "BUTTONS", "buttons": [{"type": "URL", "text": "Copy code", "example": ["x"], "url":
          "https://www.whatsapp.com/otp/code/?otp_type=COPY_CODE&code_expiration_minutes=5&code=otp{{1}}"}]}]},
    {"name": "thinking", "language": "id", "category": "UTILITY", "status": "THINKING", "id": "5",
     "components": [{"type": "BODY", "text": "Halo"}]},
    {"name": "animated", "language": "id", "category": "MARKETING", "status": "APPROVED", "id": "8",
     "components": [{"type": "HEADER", "format": "GIF"}, {"type": "BODY", "text": "Halo"}]},
    {"name": "newer", "language": "id", "category": "MARKETING", "status": "APPROVED", "id": "9",
     "components": [{"type": "BODY", "text": "Halo"}, {"type": "HOLOGRAM"}]},
    {"name": "pressed", "language": "id", "category": "MARKETING", "status": "APPROVED", "id": "10",
     "components": [{"type": "BODY", "text": "Halo"},
                    {"type": "BUTTONS", "buttons": [{"type": "PAY", "text": "Bayar"}]}]},
]  # fmt: skip


async def test_everything_at_the_channel_is_listed(live_company: Live, company: Environments) -> None:
    live_company.peer.answers = [None]  # unknown outcome
    created = (await live_company.post("/templates", **LIVE)).json()["data"]
    assert created["status"] == "PENDING"
    live_company.peer.answers = [(200, {"data": LISTED})]
    for _ in range(2):
        await synchronise_company(live_company.context, company.live)
        found = {template["name"]: template for template in await live_company.get("/templates")}
        assert set(found) == {each["name"] for each in LISTED}
        assert (found["order_update"]["id"], found["order_update"]["status"]) == (created["id"], "APPROVED")
        assert found["order_update"]["quality"] == "GREEN"
        assert (found["promo"]["status"], found["promo"]["header"]) == ("PAUSED", {"type": "image", "text": None})
        assert (found["code"]["source"], found["code"]["body"]) == ("AUTH", "{{1}} is your verification code.")
        assert found["code"]["buttons"][0]["otpType"] == "copy_code"
        assert found["code"]["authentication"] == {"securityRecommendation": True, "codeExpirationMinutes": 5}
        assert (found["thinking"]["status"], "THINKING" in found["thinking"]["reason"]) == ("PENDING", True)
        unsendable = {name: one["notSendableReason"] for name, one in found.items() if not one["sendable"]}
        assert set(unsendable) == {"animated", "newer", "pressed"}
        assert "HOLOGRAM" in unsendable["newer"]
    for name in unsendable:
        refused = await live_company.post("/messages/send-template", to=NUMBER, template_name=name)
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, "TEMPLATE_NOT_SENDABLE")
        assert name in refused.json()["error"]["message"]
        assert unsendable[name] in refused.json()["error"]["message"]


async def test_content_that_changes_at_the_channel_is_followed_and_what_is_deleted_there_goes(
    live_company: Live, company: Environments
) -> None:
    live_company.peer.answers = [(200, {"data": LISTED})]
    await synchronise_company(live_company.context, company.live)
    changed = {**LISTED[0], "category": "MARKETING", "status": "DISABLED",
               "components": [{"type": "BODY", "text": "Hai {{1}}, apa kabar?"}]}  # fmt: skip
    live_company.peer.answers = [(200, {"data": [changed, {**LISTED[2], "status": "DELETED"}]})]
    await synchronise_company(live_company.context, company.live)
    (left,) = await live_company.get("/templates")
    assert (left["body"], left["category"], left["status"]) == ("Hai {{1}}, apa kabar?", "MARKETING", "DISABLED")


async def test_a_list_that_cannot_be_read_deletes_nothing(live_company: Live, company: Environments) -> None:
    live_company.peer.answers = [(200, {"data": LISTED})]
    await synchronise_company(live_company.context, company.live)
    for answer in ((500, {}), (400, {"error": {"code": 190, "message": "expired"}})):
        live_company.peer.answers = [answer]
        refused = await live_company.post("/templates/sync")
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, "TEMPLATES_NOT_READ")
    assert len(await live_company.get("/templates")) == len(LISTED)


async def test_verdicts_on_status_quality_and_category_are_followed(live_company: Live, company: Environments) -> None:
    live_company.peer.answers = [(200, {"data": LISTED[:1]})]
    await synchronise_company(live_company.context, company.live)
    (template,) = await live_company.get("/templates")
    named = {"message_template_id": 1, "message_template_name": "order_update", "message_template_language": "id"}
    paused = {"event": "PAUSED", "reason": "NONE", "other_info": {"title": "FIRST_PAUSE", "description": "Low quality"}}
    for field, value in (
        ("message_template_status_update", paused),
        ("message_template_quality_update", {"previous_quality_score": "GREEN", "new_quality_score": "RED"}),
        ("template_category_update", {"new_category": "MARKETING", "previous_category": "UTILITY"}),
    ):
        await live_company.hook.send_change({**named, **value}, field=field)

    async def followed() -> Json | None:
        found: Json = await live_company.get(f"/templates/{template['id']}")
        return found if found["category"] == "MARKETING" else None

    found = await eventually(followed)
    assert (found["status"], found["reason"], found["quality"]) == ("PAUSED", "FIRST_PAUSE: Low quality", "RED")
    announced = {**named, "new_category": "MARKETING", "correct_category": "UTILITY"}
    await live_company.hook.send_change(announced, field="template_category_update")
    await live_company.hook.send_change({**named, "event": "DELETED"}, field="message_template_status_update")

    async def gone() -> bool | None:
        return (await live_company.get("/templates")) == [] or None

    await eventually(gone)


async def test_an_account_is_read_when_it_is_connected_reviews_a_template_or_reports_a_new_or_changed_one(
    live_company: Live, company: Environments
) -> None:
    context = live_company.context

    async def is_listed() -> bool:
        return company.live in [found async for found in list_companies(context)]

    assert await is_listed()  # it was connected just now
    live_company.peer.answers = [(200, {"data": []})]
    await synchronise_company(context, company.live)
    assert not await is_listed()
    verdict = {"message_template_name": "made_there", "message_template_language": "id", "event": "APPROVED"}
    await live_company.hook.send_change(verdict, field="message_template_status_update")
    await eventually(is_listed)
    live_company.peer.answers = [(200, {"data": [LISTED[0] | {"status": "PENDING", "id": "88"}]})]
    await synchronise_company(context, company.live)
    assert await is_listed()  # it has not decided
    live_company.peer.answers = [(200, {"data": LISTED[:1]})]
    await synchronise_company(context, company.live)
    assert not await is_listed()
    changed = {"message_template_name": "order_update", "message_template_language": "id"}
    element = {"message_template_element": "Hai {{1}}, apa kabar?"}
    await live_company.hook.send_change({**changed, **element}, field="message_template_components_update")
    await eventually(is_listed)


async def test_a_template_that_the_channel_has_is_changed_there_first(live_company: Live) -> None:
    live_company.peer.answers = [(200, {"id": "88", "status": "APPROVED"})]
    created = (await live_company.post("/templates", **LIVE)).json()["data"]
    address = f"http://probe/messaging/v1/templates/{created['id']}"
    live_company.peer.answers = [(400, {"error": {"code": 100, "message": "Too often", "error_subcode": 2388003}})]
    refused = await live_company.client.put(address, json={"body": "Hai {{1}}, halo."})
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "TEMPLATE_NOT_CHANGED")
    assert (await live_company.get(f"/templates/{created['id']}"))["body"] == LIVE["body"]
    live_company.peer.answers = [(200, {"success": True})]
    changed = (await live_company.client.put(address, json={"body": "Hai {{1}}, halo."})).json()["data"]
    assert (changed["body"], changed["status"]) == ("Hai {{1}}, halo.", "PENDING")
    request = live_company.peer.requests[-1]
    assert (request.path, request.json["components"][0]["text"]) == ("/88", "Hai {{1}}, halo.")
    again = await live_company.client.put(address, json={"body": "Hai {{1}}, sekali lagi."})
    assert again.json()["error"]["code"] == "TEMPLATE_ON_CHANNEL"


async def test_parameters_of_a_template_that_the_channel_has_get_names(sandbox: httpx.AsyncClient) -> None:
    created = await make_template(sandbox)
    named = {"parameterFormat": "NAMED", "body": "Halo {{name}}, pesanan {{order_number}} dikirim."}
    changed = await sandbox.put(f"/templates/{created['id']}", json=named)
    assert changed.status_code == 200, changed.text

    async def approved() -> bool | None:
        found = (await sandbox.get(f"/templates/{created['id']}")).json()["data"]
        return found["status"] == "APPROVED" or None

    await eventually(approved)
    values = {"body": {"name": "Ayu", "order_number": "INV-1"}}
    send = {"to": NUMBER, "sources": "MSGAPP_CLOUD", "template_name": "order_update", "components": values}
    sent = await sandbox.post("/messages/send-template", json=send)
    assert sent.status_code == 200, sent.text
    assert sent.json()["data"]["body"] == "Halo Ayu, pesanan INV-1 dikirim."


async def test_a_message_that_the_channel_holds_back_is_pending_until_it_reports(live_company: Live) -> None:
    held = {"messages": [{"id": "wamid.held", "message_status": "held_for_quality_assessment"}]}
    live_company.peer.answers = [(200, {"id": "88", "status": "APPROVED"}), (200, held)]
    await live_company.post("/templates", **LIVE)
    send = {"to": NUMBER, "template_name": "order_update", "params": ["Ayu"]}
    answer = await live_company.post("/messages/send-template", **send)
    message = answer.json()["data"]
    assert (answer.status_code, message["ack"], message["messageId"]) == (202, 0, "wamid.held")
    assert (message["error"]["code"], message["sentAt"]) == ("HELD", None)
    report = {"id": "wamid.held", "status": "delivered", "timestamp": "1700000000", "recipient_id": "628123456789"}
    await live_company.hook.send_change({"statuses": [report]})

    async def delivered() -> Json | None:
        found: Json = await live_company.get(f"/messages/{message['messageId2']}")
        return found if found["status"] == "delivered" else None

    found = await eventually(delivered)
    assert found["error"] is None
    assert "held" in [event["kind"] for event in found["events"]]


async def test_an_approved_template_keeps_its_category(live_company: Live) -> None:
    live_company.peer.answers = [(200, {"id": "88", "status": "APPROVED", "category": "MARKETING"})]
    created = (await live_company.post("/templates", **LIVE)).json()["data"]
    assert created["category"] == "MARKETING"  # as the channel decided
    address = f"http://probe/messaging/v1/templates/{created['id']}"
    refused = await live_company.client.put(address, json={"category": "UTILITY"})
    assert (refused.status_code, refused.json()["error"]["details"][0]["field"]) == (400, "category")


async def test_templates_of_another_account_cannot_be_sent(
    live_company: Live, database: Database, company: Environments
) -> None:
    live_company.peer.answers = [(200, {"data": LISTED[:1]})]
    await synchronise_company(live_company.context, company.live)
    async with database.connection() as db:
        await db.execute("UPDATE message_templates SET owner_id = '9999' WHERE company_id = $1", company.live)
    live_company.peer.answers = [(200, {"data": []})]
    await synchronise_company(live_company.context, company.live)
    (template,) = await live_company.get("/templates")
    assert (template["status"], "another account" in template["reason"]) == ("DISABLED", True)


@pytest.mark.parametrize("is_refused_first", [True, False])
async def test_of_two_submissions_at_once_the_first_counts(
    live_company: Live, database: Database, company: Environments, is_refused_first: bool
) -> None:
    """The channel has the template from one of them, and refuses the other because of it."""
    live_company.peer.answers = [None]  # unknown outcome: the worker submits it again
    created = (await live_company.post("/templates", **LIVE)).json()["data"]
    async with database.connection() as db:
        owner = await get_company(db, company.live)
        template = await queries.get_template(db, company.live, created["id"])
    accepted = ChannelTemplate(
        name="order_update", language="id", status="APPROVED", content=parse_content(template), id="88"
    )
    for is_refused in (is_refused_first, not is_refused_first):
        async with database.transaction() as tx:
            if is_refused:
                await actions.reject(tx, owner, template, "Content in this language already exists")
            else:
                await actions.settle(tx, owner, template, "3344", accepted)
    assert (await live_company.get(f"/templates/{created['id']}"))["status"] == "APPROVED"


async def test_a_missing_template_is_submitted_in_the_next_round(live_company: Live, company: Environments) -> None:
    live_company.peer.answers = [None]
    created = (await live_company.post("/templates", **LIVE)).json()["data"]
    live_company.peer.answers = [(200, {"data": []}), (200, {"id": "5", "status": "APPROVED"})]
    await synchronise_company(live_company.context, company.live)
    assert (await live_company.get(f"/templates/{created['id']}"))["status"] == "APPROVED"
    assert [request.method for request in live_company.peer.requests] == ["POST", "GET", "POST"]


@pytest.mark.parametrize(
    ("name", "status", "final"),
    [
        ("sim_pending_x", "PENDING", "PENDING"),
        ("sim_slow_x", "PENDING", "APPROVED"),
        ("sim_rejected_x", "REJECTED", "REJECTED"),
        ("sim_paused_x", "APPROVED", "PAUSED"),
        ("sim_disabled_x", "APPROVED", "DISABLED"),
    ],
)
async def test_the_simulator_decides_by_the_name(
    sandbox: httpx.AsyncClient, name: str, status: str, final: str
) -> None:
    created = await make_template(sandbox, name=name)
    assert created["status"] == status

    async def decided() -> Json | None:
        """The status and the rating are reported by callbacks of their own."""
        found: Json = (await sandbox.get(f"/templates/{created['id']}")).json()["data"]
        is_decided = found["status"] == final and (found["quality"] == "RED") == (final == "PAUSED")
        return found if is_decided else None

    await eventually(decided)
    assert (await sandbox.post("/templates/sync")).json()["data"] == {"found": 1}
    assert (await sandbox.get(f"/templates/{created['id']}")).json()["data"]["status"] == final


async def test_a_deleted_template_can_be_made_again(sandbox: httpx.AsyncClient) -> None:
    created = await make_template(sandbox)
    assert (await sandbox.delete(f"/templates/{created['id']}")).status_code == 204
    again = await make_template(sandbox)
    assert again["status"] == "APPROVED"
