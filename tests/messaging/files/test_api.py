"""Files are uploaded, sent by their ids, and served so that a browser runs none of them."""

import asyncio
import json
from collections.abc import Sequence
from io import BytesIO

import httpx
import pytest
from PIL import Image

from sapa.db.pool import Database
from sapa.messaging.files.file_types import SAFE_TYPES
from tests.conftest import Installation
from tests.factories import Environments, make_company, make_key
from tests.http.wire import send_bytes
from tests.messaging.conftest import connect_messaging
from tests.messaging.conversation_steps import get_message
from tests.messaging.files.corpus import ALL, HOSTILE, ORDINARY, PDF, SampleFile, make_image
from tests.messaging.files.steps import (
    count_rows,
    drip,
    fetch,
    list_media,
    reset_limits,
    send_file,
    upload,
    wait_for_thumbnail,
)

MIB = 1_048_576


@pytest.mark.parametrize("files", [ORDINARY, HOSTILE], ids=["ordinary", "hostile"])
async def test_files_of_all_kinds_come_back_as_they_were_and_run_nowhere(
    installation: Installation,
    sandbox: httpx.AsyncClient,
    database: Database,
    company: Environments,
    files: Sequence[SampleFile],
) -> None:
    assert len(ALL) >= 20
    for file in files:
        await reset_limits(database, company.test)
        made = await upload(sandbox, file.content, file.name, content_type=file.declared)
        assert (made["mediaType"], made["size"]) == (file.media_type, len(file.content)), file.name
        sent = await send_file(sandbox, made["id"])
        assert sent["attachments"] == [made]
        (media,) = await list_media(sandbox, sent["messageId2"])
        assert (media["id"], media["mimeType"], media["status"]) == (made["id"], file.media_type, "stored")
        served = await fetch(installation, media["url"])
        assert (served.status_code, served.content) == (200, file.content), file.name
        check_harmless(served, file)


def check_harmless(served: httpx.Response, file: SampleFile) -> None:
    headers = served.headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["content-security-policy"] == "default-src 'none'; sandbox"
    assert headers["content-disposition"].startswith("inline;" if file.is_shown else "attachment;"), file.name
    expected = file.media_type if file.is_shown else "application/octet-stream"
    assert headers["content-type"] == expected
    assert expected in {*SAFE_TYPES, "application/octet-stream"}
    assert headers["cache-control"] == "private, no-store"


async def test_a_form_has_one_file(sandbox: httpx.AsyncClient) -> None:
    answer = await sandbox.post("/attachments", files={"file": ("kopi ☕.pdf", PDF, "text/html")}, data={"x": "1"})
    assert answer.status_code == 201, answer.text
    assert answer.json()["data"] == {
        "id": answer.json()["data"]["id"], "filename": "kopi ☕.pdf", "mediaType": "application/pdf", "size": len(PDF),
    }  # fmt: skip
    renamed = await sandbox.post("/attachments", files={"file": ("a.pdf", PDF)}, params={"filename": "nota.pdf"})
    assert renamed.json()["data"]["filename"] == "nota.pdf"
    for files, reason in [
        ({"a": ("a.txt", b"a"), "b": ("b.txt", b"b")}, "several files"),
        ({"a": (None, b"a")}, "no file"),
    ]:
        answer = await sandbox.post("/attachments", files=files)  # type: ignore[arg-type]
        assert answer.status_code == 400
        assert reason in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("content_type", "content"),
    [
        ("multipart/form-data", b"--x\r\n"),
        ("multipart/form-data; boundary=x", b""),
        ("multipart/form-data; boundary=x", b"nothing of a form"),
        (
            "multipart/form-data; boundary=x",
            b'--x\r\nContent-Disposition: form-data; name="f"; filename="a"\r\n\r\nabc',
        ),
        ("multipart/form-data; boundary=" + "x" * 300, b"abc"),
        ("application/pdf", b""),
    ],
)
async def test_broken_uploads_are_a_400_and_leave_nothing(
    sandbox: httpx.AsyncClient, database: Database, company: Environments, content_type: str, content: bytes
) -> None:
    error = await upload(sandbox, content, status=400, content_type=content_type)
    assert error["code"] == "VALIDATION_ERROR"
    async with database.connection() as db:
        unfinished = await db.fetch("SELECT status, expires_at <= now() FROM files WHERE company_id = $1", company.test)
    assert [tuple(row) for row in unfinished] in ([], [("writing", True)])


async def test_a_file_over_the_limit_is_a_413(
    installation: Installation, sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    head = f"POST /messaging/v1/attachments HTTP/1.1\r\nHost: x\r\nContent-Length: {25 * MIB + 1}\r\n"
    request = f"{head}x-api-key: {sandbox.headers['x-api-key']}\r\n\r\n".encode()
    announced = await asyncio.to_thread(send_bytes, installation, request)
    assert (announced.status, json.loads(announced.body)["error"]["code"]) == (413, "PAYLOAD_TOO_LARGE")
    assert await count_rows(database, company.test) == dict.fromkeys(await count_rows(database, company.test), 0)
    unannounced = await sandbox.post("/attachments", content=drip(26, bytes(MIB)))
    assert unannounced.status_code == 413
    largest = await sandbox.post("/attachments", content=drip(25, b"a" * MIB))
    assert largest.json()["data"] == {
        **largest.json()["data"], "size": 25 * MIB, "mediaType": "text/plain", "filename": "file.txt",
    }  # fmt: skip


async def test_the_same_upload_with_the_same_key_is_one_file(
    sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    once = {"idempotency-key": "upload-1"}
    first = await sandbox.post("/attachments", content=PDF, headers=once)
    again = await sandbox.post("/attachments", content=PDF, headers=once)
    assert (again.status_code, again.json()) == (201, first.json())
    assert again.headers["idempotency-replayed"] == "true"
    other = await sandbox.post("/attachments", content=PDF + b" ", headers=once)
    assert (other.status_code, other.json()["error"]["code"]) == (409, "IDEMPOTENCY_KEY_REUSED")
    form = [
        await sandbox.post("/attachments", files={"f": ("a.pdf", PDF)}, headers={"idempotency-key": "upload-2"})
        for _ in range(2)
    ]
    assert form[0].json() == form[1].json()  # each with a boundary of its own
    at_once = await asyncio.gather(
        *(sandbox.post("/attachments", content=PDF, headers={"idempotency-key": "upload-3"}) for _ in range(4))
    )
    assert len({answer.json()["data"]["id"] for answer in at_once}) == 1
    async with database.connection() as db:
        stored = await db.fetchval(
            "SELECT count(*) FROM files WHERE company_id = $1 AND status = 'stored'", company.test
        )
    assert stored == 3


async def test_uploads_are_limited_in_a_minute_and_in_sum(
    sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    answers = await asyncio.gather(*(sandbox.post("/attachments", content=b"kopi") for _ in range(21)))
    assert sorted(answer.status_code for answer in answers) == [201] * 20 + [429]
    (refused,) = [answer for answer in answers if answer.status_code == 429]
    assert (refused.json()["error"]["code"], refused.headers["retry-after"]) == ("RATE_LIMIT_EXCEEDED", "60")
    await reset_limits(database, company.test)
    async with database.connection() as db:
        await db.execute(
            """
            INSERT INTO files (company_id, id, size, storage, status, expires_at)
            VALUES ($1, 'att_' || repeat('0', 26), 1024 * 1024 * 1024 - 90, 'database', 'stored', now() + '1 day')""",
            company.test,
        )
    full = await upload(sandbox, b"a" * 11, status=413)
    assert full["message"].startswith("Your unused files would take more than 1 GiB.")
    await upload(sandbox, b"a" * 10)


async def test_an_attachment_is_its_companys_only(
    installation: Installation, sandbox: httpx.AsyncClient, database: Database
) -> None:
    made = await upload(sandbox, PDF)
    key = await make_key(database, (await make_company(database)).test)
    async with connect_messaging(installation, key.raw) as other:
        for id in (made["id"], "att_00000000000000000000000000", "att_x", "../../etc"):
            error = await send_file(other, id, status=400)
            assert [detail["field"] for detail in error["details"]] == ["attachmentId"]


async def test_media_needs_a_url_or_an_attachment(sandbox: httpx.AsyncClient) -> None:
    made = await upload(sandbox, PDF)
    for fields in ({"mediaUrl": "https://shop.example/a.pdf"}, {"attachmentId": None}):
        error = await send_file(sandbox, made["id"], status=400, **fields)
        assert error["details"][0]["field"] == "mediaUrl"


async def test_an_image_gets_a_thumbnail(installation: Installation, sandbox: httpx.AsyncClient) -> None:
    made = await upload(sandbox, make_image("JPEG", (1000, 500)), "foto.jpg")
    sent = await send_file(sandbox, made["id"])
    file = await wait_for_thumbnail(sandbox, sent["messageId2"])
    served = await fetch(installation, file["thumbnailUrl"])
    assert (served.status_code, served.headers["content-type"]) == (200, "image/webp")
    assert Image.open(BytesIO(served.content)).size == (320, 160)
    assert served.headers["x-content-type-options"] == "nosniff"
    plain = await send_file(sandbox, (await upload(sandbox, PDF))["id"])
    assert (await list_media(sandbox, plain["messageId2"]))[0]["thumbnailUrl"] is None


async def test_a_file_can_be_sent_again_and_forwarded(sandbox: httpx.AsyncClient) -> None:
    made = await upload(sandbox, PDF, "nota.pdf")
    first = await send_file(sandbox, made["id"])
    again = await send_file(sandbox, made["id"], to="budi@example.com")
    forwarded = await sandbox.post(
        "/messages/send-media", json={"to": "citra@example.com", "sources": "MAIL", "mediaUrl": first["mediaUrl"]}
    )
    assert forwarded.status_code == 200, forwarded.text
    assert first["attachments"] == again["attachments"] == forwarded.json()["data"]["attachments"] == [made]
    assert len({first["mediaUrl"], again["mediaUrl"], forwarded.json()["data"]["mediaUrl"]}) == 3
    assert (await get_message(sandbox, first["messageId2"]))["attachments"] == [made]
