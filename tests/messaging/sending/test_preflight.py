"""Sends that are refused before the channel is called."""

from typing import Any

import httpx

from sapa.db.pool import Database
from tests.factories import Environments
from tests.http.wire import eventually
from tests.messaging.send_steps import (
    BUTTONS,
    NUMBER,
    list_records,
    magic,
    make_template,
    send,
)

Json = dict[str, Any]


def interactive(**fields: Any) -> Json:
    return {"to": NUMBER, "sources": "MSGAPP_CLOUD", "interactive": {**BUTTONS, **fields}}


def rows(count: int, sections: int = 1) -> list[Json]:
    created = [{"id": f"r{n}", "title": f"Row {n}"} for n in range(count)]
    size = -(-count // sections)
    return [{"title": f"S{n}", "rows": created[n * size : (n + 1) * size]} for n in range(sections)]


def choices(**fields: Any) -> Json:
    interactive = {"type": "list", "body": "Pilih", "button": "Buka", "sections": rows(1), **fields}
    return {"to": NUMBER, "sources": "MSGAPP_CLOUD", "interactive": interactive}


def media(**fields: Any) -> Json:
    return {"to": NUMBER, "sources": "MSGAPP_CLOUD", "mediaUrl": "https://shop.example/a.jpg", **fields}


def template(**fields: Any) -> Json:
    return {"to": NUMBER, "sources": "MSGAPP_CLOUD", "template_name": "order_update", "params": ["a", "b"], **fields}


def text(**fields: Any) -> Json:
    return {"to": NUMBER, "sources": "MSGAPP_CLOUD", "message": "Halo", **fields}


SHORT_VIDEO = {"to": "sim_happy", "sources": "SHORT_VIDEO"}
PHOTO_SOCIAL = {"to": "sim_happy", "sources": "PHOTO_SOCIAL"}
FOUR_BUTTONS = [{"id": str(n), "title": str(n)} for n in range(4)]
TWINS = [{"id": "a", "title": "A"}, {"id": "a", "title": "B"}]
LONG_ROWS = [{"id": str(n), "title": str(n), "description": "x" * 72} for n in range(10)]
ONE_ROW = [{"id": "one", "title": "One"}]
LONG_BODY = interactive(body="x" * 1001)
LONG_LIST = choices(body="x" * 400, sections=[{"title": "", "rows": LONG_ROWS}])
LONG_LINK = {
    "interactive": {"type": "cta_url", "body": "b", "displayText": "t", "url": "https://a.example/" + "x" * 990}
}
LONG_LINK_TEXT = {
    "to": "sim_happy", "sources": "SOCIAL_NETWORK",
    "interactive": {"type": "cta_url", "body": "x" * 641, "displayText": "Lihat", "url": "https://a.example/"},
}  # fmt: skip
BAD_LINK = {"type": "cta_url", "body": "b", "displayText": "t", "url": "javascript:x"}

REFUSALS: list[tuple[str, Json, int, str, str]] = [
    ("send", text(to="nobody"), 400, "VALIDATION_ERROR", "to: "),
    ("send", text(to="08123456789", countryCode="XX"), 400, "VALIDATION_ERROR", "countryCode: "),
    ("send", text(sources="fax"), 400, "VALIDATION_ERROR", "sources: "),
    ("send", text(sources=[]), 400, "VALIDATION_ERROR", "sources: "),
    ("send", text(message=" "), 400, "VALIDATION_ERROR", "message: "),
    ("send", text(message="x" * 4097), 400, "VALIDATION_ERROR", "message: "),
    ("send", text(nickname="x"), 400, "VALIDATION_ERROR", "nickname: "),
    ("send", text(imageUrl="ftp://shop.example/a.jpg"), 400, "VALIDATION_ERROR", "imageUrl: "),
    ("send", text(metadata={"a": "x" * 10_001}), 400, "VALIDATION_ERROR", "metadata: "),
    ("send", text(agentId=0), 400, "VALIDATION_ERROR", "agentId: "),
    ("send", {"to": "sim_happy", "message": "Halo"}, 400, "VALIDATION_ERROR", "to: "),
    ("send", text(to="+1 202-555-0140"), 400, "VALIDATION_ERROR", "to: must not be the company's own"),
    ("send", text(message="x" * 1025, imageUrl="https://a.example/a"), 400, "VALIDATION_ERROR", "message: must have"),
    ("send", text(to=magic(122)), 409, "WINDOW_CLOSED", "template"),
    ("send", text(to="sim_window_closed", sources="PHOTO_SOCIAL"), 409, "WINDOW_CLOSED", "template"),
    ("send", text(**SHORT_VIDEO, imageUrl="https://a.example/a.png"), 409, "CHANNEL_UNSUPPORTED", "two messages"),
    ("send-template", template(template_name="order_updat"), 409, "TEMPLATE_NOT_FOUND", "Did you mean order_update?"),
    ("send-template", template(template_source="AUTH"), 409, "TEMPLATE_NOT_FOUND", "only as CRM in id"),
    ("send-template", template(language="en"), 409, "TEMPLATE_NOT_FOUND", "only as CRM in id"),
    ("send-template", template(params=["a"]), 409, "TEMPLATE_PARAMS_MISMATCH", "expected 2 ({{1}}, {{2}}), got 1"),
    ("send-template", template(params=["a", "b", "c"]), 409, "TEMPLATE_PARAMS_MISMATCH", "got 3"),
    ("send-template", template(params=["a", " "]), 400, "VALIDATION_ERROR", "params[1]: "),
    ("send-template", template(mediaUrl="https://a.example/a.png"), 400, "VALIDATION_ERROR", "mediaUrl: "),
    ("send-template", template(**SHORT_VIDEO), 409, "CHANNEL_UNSUPPORTED", "template"),
    ("send-template", template(sources="SOCIAL_NETWORK", to="sim_window_closed"), 409, "WINDOW_CLOSED", "template"),
    ("send-media", media(mediaUrl="shop.example/a.jpg"), 400, "VALIDATION_ERROR", "mediaUrl: "),
    ("send-media", media(mediaUrl="https://127.0.0.1/a.jpg"), 400, "VALIDATION_ERROR", "mediaUrl: "),
    ("send-media", media(mediaUrl="https://a.example/A.GIF?w=9"), 400, "VALIDATION_ERROR", "mediaUrl: is image/gif"),
    ("send-media", media(**PHOTO_SOCIAL, mediaUrl="https://a.example/a.webp"), 400, "VALIDATION_ERROR", "mediaUrl: "),
    ("send", text(imageUrl="https://a.example/a.webp"), 400, "VALIDATION_ERROR", "imageUrl: is image/webp"),
    ("send-media", media(mediaType="sticker"), 400, "VALIDATION_ERROR", "mediaType: "),
    ("send-media", media(mediaType="audio", caption="x"), 400, "VALIDATION_ERROR", "caption: "),
    ("send-media", media(**PHOTO_SOCIAL, mediaType="document"), 409, "CHANNEL_UNSUPPORTED", "document"),
    ("send-media", media(**SHORT_VIDEO, mediaType="video"), 409, "CHANNEL_UNSUPPORTED", "video"),
    ("send-interactive", interactive(type="carousel"), 400, "VALIDATION_ERROR", "interactive"),
    ("send-interactive", interactive(buttons=[]), 400, "VALIDATION_ERROR", "interactive.buttons"),
    ("send-interactive", interactive(buttons=FOUR_BUTTONS), 400, "VALIDATION_ERROR", "interactive.buttons"),
    ("send-interactive", interactive(buttons=[{"id": "a", "title": "x" * 21}]), 400, "VALIDATION_ERROR", "title"),
    ("send-interactive", interactive(buttons=TWINS), 400, "VALIDATION_ERROR", "same id"),
    ("send-interactive", interactive(buttons=[{"id": "a", "title": " "}]), 400, "VALIDATION_ERROR", "blank"),
    ("send-interactive", interactive(body="\n"), 400, "VALIDATION_ERROR", "interactive.body"),
    ("send-interactive", LONG_BODY | PHOTO_SOCIAL, 400, "VALIDATION_ERROR", "at most 1000 characters"),
    ("send-interactive", LONG_LIST | PHOTO_SOCIAL, 400, "VALIDATION_ERROR", "at most 1000 characters"),
    ("send-interactive", LONG_LINK | PHOTO_SOCIAL, 400, "VALIDATION_ERROR", "at most 1000 characters"),
    ("send-interactive", interactive(header="x" * 61), 400, "VALIDATION_ERROR", "interactive.header"),
    ("send-interactive", choices(sections=rows(11, sections=2)), 400, "VALIDATION_ERROR", "at most 10 rows"),
    ("send-interactive", choices(sections=rows(2, sections=2) + [{"title": " ", "rows": ONE_ROW}]), 400,
     "VALIDATION_ERROR", "interactive.sections: must not be blank"),
    ("send-interactive", choices(button="x" * 21), 400, "VALIDATION_ERROR", "interactive.button"),
    ("send-interactive", {"to": NUMBER, "interactive": BAD_LINK}, 400, "VALIDATION_ERROR", "interactive.url"),
]  # fmt: skip


async def test_refusals_are_precise_recorded_and_reach_no_channel(sandbox: httpx.AsyncClient) -> None:
    await make_template(sandbox)
    for path, body, status, code, words in REFUSALS:
        answer = await sandbox.post(f"/messages/{path}", json=body)
        assert (answer.status_code, answer.json()["error"]["code"]) == (status, code), (body, answer.text)
        assert words in answer.json()["error"]["message"], answer.text
        (record, *_) = (await list_records(sandbox, limit=1))["data"]
        assert record["response"] == {"error": answer.json()["error"]}
        assert record["messageId2"] is None
        assert (record["sentAt"], record["failedAt"]) == (None, record["createdAt"])
        assert record["request"]["body"] == body
        assert record["endpointType"].replace("_", "-").removeprefix("send-message").strip("-") in path
    assert (await list_records(sandbox))["meta"]["total"] == len(REFUSALS)
    (submission,) = (await sandbox.get("/sandbox/outbox")).json()["data"]
    assert submission["path"].endswith("/message_templates")


async def test_a_company_cannot_write_to_its_own_address(sandbox: httpx.AsyncClient, company: Environments) -> None:
    answer = await sandbox.post("/messages/send", json=text(to=f"Shop-{company.test}@simulator.test", sources="MAIL"))
    assert (answer.status_code, answer.json()["error"]["details"][0]["field"]) == (400, "to")


async def test_content_just_within_the_limits_is_sent(sandbox: httpx.AsyncClient) -> None:
    await send(sandbox, message="x" * 4096)
    await send(sandbox, message="x" * 1024, imageUrl="https://shop.example/a.png")
    for source in ("SOCIAL_NETWORK", "MAIL"):
        to = "ayu@example.com" if source == "MAIL" else "sim_happy"
        await send(sandbox, to=to, sources=source, message="x" * 2000, imageUrl="https://shop.example/a.png")
    for body in (
        interactive(buttons=[{"id": str(n), "title": str(n) * 20} for n in range(3)], header="x" * 60),
        choices(sections=rows(10, sections=2), button="x" * 20),
        choices(sections=[{"title": "", "rows": ONE_ROW}]),
        LONG_LINK_TEXT,
    ):
        answer = await sandbox.post("/messages/send-interactive", json=body)
        assert answer.status_code == 200, answer.text
    (sent, *_) = (await sandbox.get("/sandbox/outbox")).json()["data"]
    assert "Lihat: https://a.example/" in sent["body"]


async def test_without_sources_the_recipient_s_form_chooses_the_channel(sandbox: httpx.AsyncClient) -> None:
    for to, source in ((NUMBER, "MSGAPP_CLOUD"), ("ayu@example.com", "MAIL"), ("ID.13491", "MSGAPP_CLOUD")):
        answer = await sandbox.post("/messages/send", json={"to": to, "message": "Halo"})
        assert answer.status_code == 200, answer.text
        assert answer.json()["data"]["source"] == source


async def test_of_several_sources_the_first_that_can_carry_it_is_used(sandbox: httpx.AsyncClient) -> None:
    assert (await send(sandbox, sources=["mail", "msgapp coex"]))["source"] == "MSGAPP_COEX"
    first = {"to": "sim_happy", "message": "Halo", "sources": ["SHORT_VIDEO", "SOCIAL_NETWORK"]}
    image = {**first, "imageUrl": "https://shop.example/a.png"}
    assert (await sandbox.post("/messages/send", json=image)).json()["data"]["source"] == "SOCIAL_NETWORK"
    refused = await sandbox.post("/messages/send", json={**first, "to": "two words"})
    assert refused.json()["error"]["message"].startswith("to: must be the id of a conversation")


async def test_a_live_company_without_channels_gets_not_connected(live: httpx.AsyncClient) -> None:
    for body in (text(), {"to": NUMBER, "message": "Halo"}):
        answer = await live.post("/messages/send", json=body)
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "CHANNEL_NOT_CONNECTED")


async def test_the_window_closes_as_the_clock_moves_on(
    sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    """The customer wrote, and a day passed; a template can still be sent."""
    await make_template(sandbox, body="Halo")
    body = {"source": "MSGAPP_CLOUD", "from": NUMBER, "text": "Halo?"}
    assert (await sandbox.post("/sandbox/inbound", json=body)).status_code == 200

    async def has_arrived() -> object:
        async with database.connection() as db:
            return await db.fetchval("SELECT last_inbound_at FROM message_threads WHERE company_id = $1", company.test)

    await eventually(has_arrived)
    await sandbox.post("/sandbox/clock/advance", json={"seconds": 86_000})
    await send(sandbox)
    await sandbox.post("/sandbox/clock/advance", json={"seconds": 401})
    answer = await sandbox.post("/messages/send", json=text())
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "WINDOW_CLOSED"), answer.text
    sent = await sandbox.post("/messages/send-template", json=template(params=[]))
    assert sent.status_code == 200, sent.text
