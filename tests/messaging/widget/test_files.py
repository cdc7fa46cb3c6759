"""Visitors send images and documents, and see those that they get."""

import asyncio
from typing import Any

import httpx
import pytest

from sapa.db.pool import Database
from sapa.messaging.widget.uploads import MAX_BYTES
from tests.conftest import Installation
from tests.factories import Environments
from tests.messaging.conversation_steps import get_message, list_events, wait_for_inbound
from tests.messaging.files.corpus import ALL, PDF, make_image, make_sound
from tests.messaging.files.steps import fetch, list_media, reset_limits, upload, wait_for_thumbnail
from tests.messaging.shop_site import Browser, Chat
from tests.messaging.widget.steps import read_messages, send

JPEG = make_image("JPEG")


async def upload_as_visitor(page: Browser, content: bytes, filename: str = "foto.jpg", status: int = 200) -> Any:
    answer = await page.call("POST", "files", content=content, params={"filename": filename})
    assert answer.status_code == status, answer.text
    assert answer.headers["access-control-allow-origin"] == "*"
    return answer.json()["data" if status == 200 else "error"]


async def test_a_visitor_sends_files_with_a_text(
    installation: Installation, page: Browser, shop: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    await page.join()
    made = [await upload_as_visitor(page, JPEG), await upload_as_visitor(page, PDF, "nota.pdf")]
    assert [file["mediaType"] for file in made] == ["image/jpeg", "application/pdf"]
    answer = await page.send("Ini notanya", files=[file["id"] for file in made])
    assert answer.status_code == 200, answer.text
    shown = answer.json()["data"]["content"]
    assert [(file["type"], file["filename"]) for file in shown["files"]] == [
        ("image", "foto.jpg"),
        ("document", "nota.pdf"),
    ]
    assert [(await fetch(installation, file["url"])).content for file in shown["files"]] == [JPEG, PDF]
    assert "messageId" not in str(shown)
    (row,) = await wait_for_inbound(database, company.test)
    message = await get_message(shop, row["id"])
    assert (message["type"], message["body"], message["attachments"]) == ("image", "Ini notanya", made)
    (event,) = await list_events(database, company.test, "message.received")
    assert event["attachments"] == made
    files = await list_media(shop, row["id"])
    assert [file["status"] for file in files] == ["stored", "stored"]
    await wait_for_thumbnail(shop, row["id"])
    again = await page.join()
    assert [file["filename"] for file in again["messages"][0]["content"]["files"]] == ["foto.jpg", "nota.pdf"]


async def test_a_file_alone_is_a_message_and_a_retry_is_the_same_one(page: Browser) -> None:
    await page.join()
    made = await upload_as_visitor(page, JPEG)
    first, again = [await page.send("", id="p_" + "0" * 32, files=[made["id"]]) for _ in range(2)]
    assert first.status_code == again.status_code == 200
    assert first.json()["data"]["number"] == again.json()["data"]["number"]
    assert (await page.send("")).status_code == 400


async def test_only_images_and_documents_are_accepted(page: Browser, database: Database, company: Environments) -> None:
    await page.join()
    for content in (
        make_sound(),
        b"\0\0\0\x18ftypmp42\0\0\0\0mp42isom",
        b"<html><script>1</script>",
        b"MZ" + bytes(99),
    ):
        error = await upload_as_visitor(page, content, status=415)
        assert error["code"] == "UNSUPPORTED_MEDIA_TYPE"
        await reset_limits(database, company.test)
    await upload_as_visitor(page, b"", status=400)
    await upload_as_visitor(page, bytes(MAX_BYTES + 1), status=413)
    svg = next(file for file in ALL if file.name == "logo.svg")
    await upload_as_visitor(page, svg.content, "logo.png", status=415)


async def test_a_visitor_sends_their_own_files_only(
    page: Browser, client: httpx.AsyncClient, chat: Chat, shop: httpx.AsyncClient
) -> None:
    await page.join()
    other = Browser(client, chat)
    await other.join()
    foreign = [(await upload_as_visitor(other, JPEG))["id"], (await upload(shop, JPEG))["id"], "att_x"]
    for id in foreign:
        answer = await page.send("Halo", files=[id])
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "VALIDATION_ERROR")
    assert (await page.call("POST", "files", content=JPEG, headers={"authorization": "Bearer x"})).status_code == 200
    page.token = None
    assert (await page.call("POST", "files", content=JPEG)).status_code == 401


async def test_uploads_are_limited_for_each_visitor_and_network(
    page: Browser, client: httpx.AsyncClient, chat: Chat, database: Database, company: Environments
) -> None:
    await page.join()
    answers = await asyncio.gather(*(page.call("POST", "files", content=b"kopi") for _ in range(6)))
    assert sorted(answer.status_code for answer in answers) == [200] * 5 + [429]
    other = Browser(client, chat)
    await other.join()
    await upload_as_visitor(other, b"kopi")
    async with database.connection() as db:
        for minutes in range(3):
            await db.execute(
                "UPDATE upload_windows SET window_start = window_start - interval '1 minute' "
                "WHERE company_id = $1 AND subject LIKE '%/minute'",
                company.test,
            )
            assert [(await page.call("POST", "files", content=b"kopi")).status_code for _ in range(5)] == [200] * 5, (
                minutes
            )
    full = await page.call("POST", "files", content=b"kopi")
    assert (full.status_code, full.headers["retry-after"]) in {(429, "60"), (429, "86400")}
    async with database.connection() as db:
        await db.execute(
            "UPDATE upload_windows SET used = 600 WHERE company_id = $1 AND subject LIKE 'network/%'", company.test
        )
    await upload_as_visitor(other, b"kopi", status=429)


async def test_a_visitor_gets_files_with_addresses_that_work(
    installation: Installation, page: Browser, client: httpx.AsyncClient, shop: httpx.AsyncClient
) -> None:
    visitor = (await page.join())["visitorId"]
    made = await upload(shop, PDF, "nota.pdf")
    message = await send(shop, visitor, "send-media", attachmentId=made["id"], caption="Nota")
    assert message["attachments"] == [made]
    (streamed,) = await read_messages(page, client, 0, 1)
    (shown,) = streamed["content"]["files"]
    assert (shown["filename"], shown["size"], streamed["content"]["text"]) == ("nota.pdf", len(PDF), "Nota")
    assert (await fetch(installation, shown["url"])).content == PDF


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_files_are_posted_only(page: Browser, method: str) -> None:
    assert (await page.call(method, "files")).status_code == 405
