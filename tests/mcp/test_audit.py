"""A change that an agent makes is in the audit log as the same change over REST."""

import asyncio
from typing import Any

import pytest

from sapa.db.pool import Database
from tests.conftest import Installation, connect
from tests.factories import Environments, make_key
from tests.mcp.client import connect_mcp

CHANGES: list[tuple[str, str, str, dict[str, Any]]] = [
    ("pause_webhook_endpoint", "POST", "/webhook-endpoints/{endpoint}/pause", {}),
    ("resume_webhook_endpoint", "POST", "/webhook-endpoints/{endpoint}/resume", {"missed": "skip"}),
    ("update_webhook_endpoint", "PUT", "/webhook-endpoints/{endpoint}", {"description": "shop"}),
    ("delete_webhook_endpoint", "DELETE", "/webhook-endpoints/{endpoint}", {}),
    ("update_api_key", "PUT", "/api-keys/{key}", {"allowsMcp": False}),
    ("revoke_api_key", "DELETE", "/api-keys/{key}", {}),
]


async def list_audit(database: Database, key_id: str) -> list[dict[str, Any]]:
    query = "SELECT action, subject, environment, address, user_id FROM audit_entries WHERE key_id = $1 ORDER BY id"
    async with database.connection() as db:
        return [dict(row) for row in await db.fetch(query, key_id)]


@pytest.mark.smoke
async def test_an_agents_changes_are_audited_as_those_of_other_programs(
    installation: Installation, database: Database, company: Environments
) -> None:
    programs = [await make_key(database, company.live) for _ in range(2)]
    async with connect(installation, programs[0].raw) as rest, connect_mcp(installation, programs[1].raw) as agent:
        made: list[dict[str, str]] = []
        for _ in programs:
            endpoint = await rest.post("/webhook-endpoints", json={"url": "https://shop.example/hooks"})
            key = await rest.post("/api-keys", json={"name": "lesser", "scopes": ["orders:READ"]})
            made.append({"endpoint": endpoint.json()["data"]["id"], "key": key.json()["data"]["id"]})
        before = len(await list_audit(database, programs[0].id))
        for tool, method, path, fields in CHANGES:
            body = fields if method != "DELETE" else None
            assert (await rest.request(method, path.format(**made[0]), json=body)).is_success
            id = made[1]["endpoint" if "webhook" in tool else "key"]
            await agent.run(tool, id=id, **fields)
    by_rest = (await list_audit(database, programs[0].id))[before:]
    assert await list_audit(database, programs[1].id) == by_rest
    assert [entry["action"] for entry in by_rest] == [
        "webhook.paused",
        "webhook.resumed",
        "webhook.changed",
        "webhook.deleted",
        "key.mcp_forbidden",
        "key.revoked",
    ]
    assert all(entry["address"] and entry["user_id"] is None for entry in by_rest)


async def test_what_is_done_again_and_changes_nothing_is_recorded_once(
    installation: Installation, database: Database, company: Environments
) -> None:
    program = await make_key(database, company.live)
    async with connect(installation, program.raw) as rest:
        endpoint = (await rest.post("/webhook-endpoints", json={"url": "https://shop.example/hooks"})).json()["data"]
        key = (await rest.post("/api-keys", json={"name": "lesser", "scopes": ["orders:READ"]})).json()["data"]
        for method, path, body in [
            ("POST", f"/webhook-endpoints/{endpoint['id']}/pause", None),
            ("PUT", f"/api-keys/{key['id']}", {"allowsMcp": False}),
            ("DELETE", f"/api-keys/{key['id']}", None),
        ]:
            answers = await asyncio.gather(*(rest.request(method, path, json=body) for _ in range(4)))
            assert all(answer.is_success for answer in answers)
    recorded = [entry["action"] for entry in await list_audit(database, program.id)]
    assert recorded == ["webhook.created", "key.created", "webhook.paused", "key.mcp_forbidden", "key.revoked"]
