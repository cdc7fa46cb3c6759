"""Files that we hold reach every channel as it wants them, and what it would refuse is refused before."""

import json
from email import message_from_string, policy
from typing import Any

import httpx
import pytest

from sapa.db.pool import Database
from tests.factories import Environments
from tests.http.wire import eventually
from tests.messaging.conversation_steps import read_outbox, simulate_inbound, wait_for_inbound
from tests.messaging.files.corpus import PDF, make_image, make_sound
from tests.messaging.files.steps import list_media, send_file, upload
from tests.messaging.send_steps import make_template
from tests.support.ticket_steps import Desk

Json = dict[str, Any]

NUMBER, PERSON, CONVERSATION = "+628123456789", "24681357", "conversation-7"
JPEG, PNG, WEBP = make_image("JPEG"), make_image("PNG"), make_image("WEBP")
MP4 = b"\0\0\0\x18ftypmp42\0\0\0\0mp42isom"

UPLOADED = [
    ("MSGAPP_CLOUD", NUMBER, JPEG, "/media", "image"),
    ("MSGAPP_COEX", NUMBER, PDF, "/media", "document"),
    ("MSGAPP_CLOUD", NUMBER, b"id;total\n1;2\n", "/media", "document"),
    ("SOCIAL_NETWORK", PERSON, PDF, "/message_attachments", "document"),
    ("SOCIAL_NETWORK", PERSON, JPEG, "/message_attachments", "image"),
    ("PHOTO_SOCIAL", PERSON, PNG, "/message_attachments", "image"),
    ("PHOTO_SOCIAL", PERSON, MP4, "/message_attachments", "video"),
    ("SHORT_VIDEO", CONVERSATION, JPEG, "/media/upload/", "image"),
]


@pytest.mark.parametrize(("source", "to", "content", "path", "type"), UPLOADED)
async def test_a_held_file_is_uploaded_once_and_sent_by_its_id(
    sandbox: httpx.AsyncClient, source: str, to: str, content: bytes, path: str, type: str
) -> None:
    made = await upload(sandbox, content, "foto ☕.csv" if content.startswith(b"id") else "foto ☕.bin")
    messages = [await send_file(sandbox, made["id"], sources=source, to=to) for _ in range(2)]
    assert [(message["type"], message["status"]) for message in messages] == [(type, "sent")] * 2
    calls = [(call["path"], json.loads(call["body"])) for call in reversed(await read_outbox(sandbox))]
    uploads = [body for place, body in calls if place.endswith(path)]
    sends = [body for place, body in calls if not place.endswith(path)]
    assert len(sends) == 2
    assert len(uploads) == (2 if source == "SHORT_VIDEO" else 1)  # there ids are for one message
    assert len({find_id(source, type, body) for body in sends}) == len(uploads)
    (file,) = [value for value in uploads[0].values() if isinstance(value, dict) and "size" in value]
    assert file["size"] == len(content)
    assert all("http" not in json.dumps(body) for body in sends)


def find_id(source: str, type: str, body: Json) -> str:
    """The id of the file in a request of the channel."""
    if source.startswith("MSGAPP"):
        return str(body[type]["id"])
    if source == "SHORT_VIDEO":
        return str(body["image"]["media_id"])
    return str(body["message"]["attachment"]["payload"]["attachment_id"])


async def test_a_refused_id_is_uploaded_again(
    sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    made = await upload(sandbox, JPEG)
    await send_file(sandbox, made["id"], sources="MSGAPP_CLOUD", to=NUMBER)
    async with database.connection() as db:  # the channel deletes files after some time
        await db.execute("DELETE FROM sandbox_media WHERE company_id = $1", company.test)
    refused = await send_file(sandbox, made["id"], status=502, sources="MSGAPP_CLOUD", to=NUMBER)
    assert refused["details"][0]["providerCode"] == "131009"
    again = await send_file(sandbox, made["id"], sources="MSGAPP_CLOUD", to=NUMBER)
    assert again["status"] == "sent"


@pytest.mark.parametrize(
    ("source", "to", "content", "media_type", "accepted"),
    [
        ("MSGAPP_CLOUD", NUMBER, WEBP, "image", "image up to 5 MB (image/jpeg, image/png)"),
        ("MSGAPP_CLOUD", NUMBER, WEBP, None, "image up to 5 MB (image/jpeg, image/png)"),
        ("MSGAPP_CLOUD", NUMBER, JPEG + bytes(5 * 1_048_576), None, "image up to 5 MB"),
        ("MSGAPP_CLOUD", NUMBER, b"MZ" + bytes(99), None, "document up to 100 MB (application/msword"),
        ("SHORT_VIDEO", CONVERSATION, make_image("GIF"), None, "image up to 3 MB (image/jpeg, image/png)"),
        ("PHOTO_SOCIAL", PERSON, WEBP, None, "image up to 8 MB (image/gif, image/jpeg, image/png)"),
        ("SOCIAL_NETWORK", PERSON, PDF, "video", "video up to 25 MB (video/mp4"),
    ],
)
async def test_a_file_that_the_channel_refuses_is_refused_before_with_what_it_accepts(
    sandbox: httpx.AsyncClient, source: str, to: str, content: bytes, media_type: str | None, accepted: str
) -> None:
    made = await upload(sandbox, content)
    error = await send_file(sandbox, made["id"], status=400, sources=source, to=to, mediaType=media_type)
    assert (error["code"], error["details"][0]["field"]) == ("VALIDATION_ERROR", "attachmentId")
    assert accepted in error["details"][0]["message"]
    assert await read_outbox(sandbox) == []


async def test_a_type_without_a_rule_is_not_supported(sandbox: httpx.AsyncClient) -> None:
    made = await upload(sandbox, make_sound())
    error = await send_file(sandbox, made["id"], status=409, sources="SHORT_VIDEO", to=CONVERSATION)
    assert error["code"] == "CHANNEL_UNSUPPORTED"


async def test_what_is_no_image_for_a_channel_may_be_a_document(sandbox: httpx.AsyncClient) -> None:
    made = await upload(sandbox, make_image("TIFF"), "foto.tiff")
    message = await send_file(sandbox, made["id"], sources="SOCIAL_NETWORK", to=PERSON)
    assert message["type"] == "document"


async def test_a_received_file_is_forwarded_by_its_id(
    sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    await simulate_inbound(sandbox, source="MAIL", media="document", **{"from": "ayu@example.com"})
    (row,) = await wait_for_inbound(database, company.test)
    received = (await sandbox.get(f"/messages/{row['id']}")).json()["data"]
    (attachment,) = received["attachments"]
    assert (attachment["mediaType"], attachment["filename"]) == ("application/pdf", "sandbox.pdf")
    sent = await send_file(sandbox, attachment["id"], sources="MSGAPP_CLOUD", to=NUMBER)
    assert sent["attachments"] == [attachment]


async def test_a_fetched_file_is_in_the_message_with_its_real_type(
    sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    await simulate_inbound(sandbox, source="MSGAPP_CLOUD", media="image", **{"from": NUMBER})
    (row,) = await wait_for_inbound(database, company.test)

    async def look() -> Json | None:
        (attachment,) = (await sandbox.get(f"/messages/{row['id']}")).json()["data"]["attachments"]
        return attachment if attachment["size"] else None

    attachment = await eventually(look)
    (file,) = await list_media(sandbox, row["id"])
    assert (attachment["id"], attachment["mediaType"], attachment["size"]) == (file["id"], "image/png", file["size"])


async def test_a_reply_has_files(sandbox: httpx.AsyncClient) -> None:
    desk = Desk(sandbox)
    ticket, agent = await desk.receive(), await desk.create_agent()
    made = await upload(sandbox, JPEG, "foto.jpg")
    message = await desk.reply(ticket, agent, "Ini fotonya", attachmentIds=[made["id"]])
    assert (message["type"], message["body"], message["attachments"]) == ("image", "Ini fotonya", [made])
    assert message["ticketId"] == ticket["id"]
    path = f"/tickets/{ticket['id']}/replies"
    alone = await desk.post(path, agentId=agent, attachmentIds=[made["id"]])
    assert (alone["type"], alone["body"]) == ("image", None)
    for status, fields in [
        (400, {}),
        (400, {"attachmentIds": ["att_x"]}),
        (409, {"attachmentIds": [made["id"]] * 2}),
    ]:
        refused = await desk.post(path, status, agentId=agent, **fields)
        assert refused["code"] == {400: "VALIDATION_ERROR", 409: "CHANNEL_UNSUPPORTED"}[status]


async def test_a_template_s_header_is_an_uploaded_file(sandbox: httpx.AsyncClient) -> None:
    await make_template(sandbox, header={"type": "image"}, examples={"header": "https://shop.example/kopi.jpg"})
    made = await upload(sandbox, JPEG, "foto.jpg")
    body = {"to": NUMBER, "sources": "MSGAPP_CLOUD", "template_name": "order_update", "params": ["Ayu", "INV-1"]}
    header = {"header": {"attachmentId": made["id"]}}
    answer = await sandbox.post("/messages/send-template", json=body | {"components": header})
    assert answer.status_code == 200, answer.text
    message = answer.json()["data"]
    assert (message["type"], message["attachments"]) == ("template", [made])
    (component, *_) = json.loads((await read_outbox(sandbox))[0]["body"])["template"]["components"]
    assert component["parameters"] == [{"type": "image", "image": {"id": find_uploaded(await read_outbox(sandbox))}}]
    # The file of one message is the header of the next.
    again = await sandbox.post("/messages/send-template", json=body | {"mediaUrl": message["mediaUrl"]})
    assert (again.status_code, again.json()["data"]["attachments"]) == (200, [made])
    mail = await sandbox.post(
        "/messages/send-template", json=body | {"to": "ayu@example.com", "sources": "MAIL", "components": header}
    )
    assert mail.status_code == 200, mail.text
    assert "/media/" in (await read_outbox(sandbox))[0]["body"]
    chat = await sandbox.post(
        "/messages/send-template", json=body | {"to": "sim_happy", "sources": "WIDGET", "components": header}
    )
    assert chat.status_code == 200, chat.text
    shown = json.loads((await read_outbox(sandbox))[0]["body"])["content"]
    assert ([file["filename"] for file in shown["files"]], shown.get("media")) == (["foto.jpg"], None)


def find_uploaded(outbox: list[Json]) -> str:
    """The id that the simulator gave to the only uploaded file."""
    (answer,) = [call["answer"] for call in outbox if call["path"].endswith("/media")]
    return str(json.loads(answer)["id"])


async def test_the_cards_of_a_template_are_files_and_urls(sandbox: httpx.AsyncClient) -> None:
    card = {
        "header": {"type": "image"},
        "body": "Kopi pilihan kami untuk Anda.",
        "buttons": [{"type": "quick_reply", "text": "Pesan"}],
    }
    example = {"header": "https://shop.example/kopi.jpg"}
    await make_template(
        sandbox,
        category="MARKETING",
        body="Halo, ini kopi pilihan kami.",
        cards=[card] * 3,
        examples={"cards": [example] * 3},
    )
    first, second = await upload(sandbox, JPEG, "a.jpg"), await upload(sandbox, PNG, "b.png")
    headers: list[Json] = [
        {"attachmentId": second["id"]},
        {"mediaUrl": "https://shop.example/kopi.jpg"},
        {"attachmentId": first["id"]},
    ]
    body = {"to": NUMBER, "sources": "MSGAPP_CLOUD", "template_name": "order_update"}
    components = {"cards": [{"header": header} for header in headers]}
    answer = await sandbox.post("/messages/send-template", json=body | {"components": components})
    assert answer.status_code == 200, answer.text
    assert answer.json()["data"]["attachments"] == [second, first]
    (carousel,) = [
        component
        for component in json.loads((await read_outbox(sandbox))[0]["body"])["template"]["components"]
        if component["type"] == "carousel"
    ]
    images = [card["components"][0]["parameters"][0]["image"] for card in carousel["cards"]]
    assert [sorted(image) for image in images] == [["id"], ["link"], ["id"]]
    assert images[0]["id"] != images[2]["id"]
    mail = body | {"to": "ayu@example.com", "sources": "MAIL", "components": components}
    assert (await sandbox.post("/messages/send-template", json=mail)).status_code == 200
    text = message_from_string((await read_outbox(sandbox))[0]["body"], policy=policy.default).get_body(("plain",))
    assert text is not None
    assert (text.get_content().count("/media/"), text.get_content().count("kopi.jpg")) == (2, 1)


@pytest.mark.parametrize(
    ("header", "status", "field"),
    [
        ({"attachmentId": "att_00000000000000000000000000"}, 400, "components.header.attachmentId"),
        ({"attachmentId": "GIF"}, 400, "components.header.attachmentId"),
        ({"attachmentId": "JPEG", "mediaUrl": "https://shop.example/kopi.jpg"}, 409, "components.header"),
        ({"filename": "kopi.jpg"}, 409, "components.header"),
    ],
)
async def test_a_file_that_no_header_can_be_is_refused(
    sandbox: httpx.AsyncClient, header: Json, status: int, field: str
) -> None:
    await make_template(sandbox, header={"type": "image"}, examples={"header": "https://shop.example/kopi.jpg"})
    for name in ("GIF", "JPEG"):
        if header.get("attachmentId") == name:
            header = header | {"attachmentId": (await upload(sandbox, make_image(name)))["id"]}
    body = {"to": NUMBER, "sources": "MSGAPP_CLOUD", "template_name": "order_update", "params": ["Ayu", "INV-1"]}
    refused = await sandbox.post("/messages/send-template", json=body | {"components": {"header": header}})
    assert refused.status_code == status, refused.text
    assert refused.json()["error"]["details"][0]["field"] == field


async def test_a_mail_has_several_files(sandbox: httpx.AsyncClient) -> None:
    desk = Desk(sandbox)
    ticket = await desk.receive(sender="ayu@example.com", source="MAIL")
    made = [await upload(sandbox, PDF, "nota.pdf"), await upload(sandbox, JPEG, "foto.jpg")]
    ids = [each["id"] for each in made]
    message = await desk.reply(ticket, await desk.create_agent(), "Terlampir", attachmentIds=ids)
    assert message["attachments"] == made
    mail = (await read_outbox(sandbox))[0]["body"]
    assert [name in mail for name in ("nota.pdf", "foto.jpg", "Terlampir")] == [True] * 3
    assert [file["type"] for file in await list_media(sandbox, message["messageId2"])] == ["document", "image"]


async def test_a_mail_without_text_is_named_after_its_file(sandbox: httpx.AsyncClient) -> None:
    made = await upload(sandbox, PDF, "nota.pdf")
    mail = {"to": "ayu@example.com", "sources": "MAIL"}
    for body, subject in (
        ({"attachmentId": made["id"]}, "nota.pdf"),
        ({"attachmentId": made["id"], "filename": "INV-1042.pdf"}, "INV-1042.pdf"),
        ({"attachmentId": made["id"], "caption": "Nota Anda"}, "Nota Anda"),
        ({"mediaUrl": "https://shop.example/files/nota.pdf?key=1"}, "nota.pdf"),
    ):
        answer = await sandbox.post("/messages/send-media", json={**mail, **body})
        assert answer.status_code == 200, answer.text
        assert f"\r\nSubject: {subject}\r\n" in (await read_outbox(sandbox))[0]["body"]
