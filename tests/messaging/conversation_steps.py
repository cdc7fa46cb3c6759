"""Steps of tests with conversations."""

from typing import Any

import httpx
import msgspec

from sapa.db.pool import Database
from tests.http.wire import eventually

Json = dict[str, Any]

STAMPS = ("sentAt", "deliveredAt", "readAt", "repliedAt", "failedAt")

LIST_INBOUND = """
    SELECT id, source, client_number, type, body, subject, customer_id, contact_id, media_url, feature_source,
           provider_id, quoted, direction, interaction::text AS interaction
      FROM messages
     WHERE company_id = $1 AND (direction = 'in' OR feature_source IN ('BUSINESS_APP', 'IMPORT'))
     ORDER BY created_at, id"""


async def send(client: httpx.AsyncClient, to: str, source: str = "MSGAPP_CLOUD", **fields: Any) -> httpx.Response:
    return await client.post("/messages/send", json={"to": to, "sources": source, "message": "Halo", **fields})


async def simulate_inbound(client: httpx.AsyncClient, **fields: Any) -> Json:
    """A customer writes; returns what will arrive."""
    answer = await client.post("/sandbox/inbound", json=fields)
    assert answer.status_code == 200, answer.text
    inbound: Json = answer.json()["data"]
    return inbound


async def get_message(client: httpx.AsyncClient, id: str) -> Json:
    answer = await client.get(f"/messages/{id}")
    assert answer.status_code == 200, answer.text
    found: Json = answer.json()["data"]
    return found


async def settled(client: httpx.AsyncClient, id: str, stamps: set[str]) -> Json:
    """The message, once it has these timestamps."""

    async def look() -> Json | None:
        message = await get_message(client, id)
        return message if stamps <= {name for name in STAMPS if message[name]} else None

    return await eventually(look)


async def advance(client: httpx.AsyncClient, seconds: int) -> Json:
    answer = await client.post("/sandbox/clock/advance", json={"seconds": seconds})
    assert answer.status_code == 200, answer.text
    clock: Json = answer.json()["data"]
    return clock


async def read_outbox(client: httpx.AsyncClient) -> list[Json]:
    answer = await client.get("/sandbox/outbox", params={"limit": 100})
    assert answer.status_code == 200, answer.text
    entries: list[Json] = answer.json()["data"]
    return entries


async def list_inbound(database: Database, company_id: int) -> list[Json]:
    """Inbound messages, oldest first: the API has no list of messages."""
    async with database.connection() as db:
        rows = [dict(row) for row in await db.fetch(LIST_INBOUND, company_id)]
    return [{**row, "interaction": row["interaction"] and msgspec.json.decode(row["interaction"])} for row in rows]


async def list_events(database: Database, company_id: int, kind: str) -> list[Json]:
    """Announced events, oldest first."""
    async with database.connection() as db:
        rows = await db.fetch(
            "SELECT body FROM events WHERE company_id = $1 AND kind = $2 ORDER BY number", company_id, kind
        )
    return [msgspec.json.decode(row[0]) for row in rows]


async def wait_for_inbound(database: Database, company_id: int, count: int = 1) -> list[Json]:
    """Inbound messages, once there are `count` of them."""

    async def look() -> list[Json] | None:
        found = await list_inbound(database, company_id)
        return found if len(found) >= count else None

    return await eventually(look)
