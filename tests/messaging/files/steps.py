"""Steps of tests with files."""

from collections.abc import AsyncIterator
from typing import Any

import httpx

from sapa.db.pool import Database
from tests.conftest import TLS, Installation
from tests.http.wire import eventually

Json = dict[str, Any]

RESET_LIMITS = "DELETE FROM upload_windows WHERE company_id = $1"
CUSTOMER = "ayu@example.com"


async def upload(
    client: httpx.AsyncClient, content: bytes, filename: str | None = None, status: int = 201, **headers: str
) -> Json:
    """The attachment, or the error of a refused upload."""
    params = {} if filename is None else {"filename": filename}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    answer = await client.post("/attachments", content=content, params=params, headers=named)
    assert answer.status_code == status, answer.text
    found: Json = answer.json()["data" if status == 201 else "error"]
    return found


async def reset_limits(database: Database, company_id: int) -> None:
    """Another minute for uploads."""
    async with database.connection() as db:
        await db.execute(RESET_LIMITS, company_id)


async def send_file(client: httpx.AsyncClient, attachment_id: str, status: int = 200, **fields: Any) -> Json:
    """Sends a file by mail, which takes every type, unless `fields` say otherwise."""
    body = {"to": CUSTOMER, "sources": "MAIL", "attachmentId": attachment_id, **fields}
    answer = await client.post("/messages/send-media", json=body)
    assert answer.status_code == status, answer.text
    found: Json = answer.json()["data" if status in {200, 202} else "error"]
    return found


async def list_media(client: httpx.AsyncClient, message_id: str) -> list[Json]:
    answer = await client.get(f"/messages/{message_id}/media")
    assert answer.status_code == 200, answer.text
    files: list[Json] = answer.json()["data"]["files"]
    return files


async def wait_for_thumbnail(client: httpx.AsyncClient, message_id: str) -> Json:
    """The first file of a message, once it has a thumbnail."""

    async def look() -> Json | None:
        file = (await list_media(client, message_id))[0]
        return file if file["thumbnailUrl"] else None

    return await eventually(look)


async def fetch(installation: Installation, url: str) -> httpx.Response:
    """Without a key, at this installation's port."""
    async with httpx.AsyncClient(verify=TLS, timeout=120) as browser:
        return await browser.get(installation.address + "/media/" + url.partition("/media/")[2])


async def drip(pieces: int, piece: bytes) -> AsyncIterator[bytes]:
    """A body without a Content-Length."""
    for _ in range(pieces):
        yield piece


async def count_rows(database: Database, company_id: int) -> dict[str, int]:
    """What is stored of a company's files."""
    tables = ("files", "file_parts", "file_thumbnails", "channel_files")
    async with database.connection() as db:
        return {
            table: await db.fetchval(f"SELECT count(*) FROM {table} WHERE company_id = $1", company_id)
            for table in tables
        }
