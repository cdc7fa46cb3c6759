"""Every shape of template is created, approved, synchronised and sent, with the JSON that WhatsApp documents."""

import json
from typing import Any

import httpx
import pytest

from sapa.db.pool import Database
from tests.messaging.send_steps import NUMBER
from tests.messaging.templates.shapes import HANDLE, SHAPES, Json, Shape

OWN = (
    "header", "buttons", "cards", "parameterFormat", "category", "limitedTimeOffer", "authentication", "ttlSeconds",
)  # fmt: skip


async def read_outbox(client: httpx.AsyncClient, end: str) -> list[Json]:
    """The bodies of the simulator's requests at this path, the newest first."""
    found = (await client.get("/sandbox/outbox", params={"limit": 100})).json()["data"]
    return [json.loads(request["body"]) for request in found if request["path"].endswith(end)]


def hide_handles(value: Any) -> Any:
    """Handles of samples are random."""
    if isinstance(value, list):
        return [hide_handles(inner) for inner in value]
    if isinstance(value, dict):
        return {name: [HANDLE] if name == "header_handle" else hide_handles(inner) for name, inner in value.items()}
    return value


def drop_examples(value: Any) -> Any:
    """A button without an example is submitted with one, which then comes back."""
    if isinstance(value, list):
        return [drop_examples(inner) for inner in value]
    if isinstance(value, dict):
        return {name: drop_examples(inner) for name, inner in value.items() if name != "example"}
    return value


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
async def test_a_shape_is_created_approved_synchronised_and_sent(sandbox: httpx.AsyncClient, shape: Shape) -> None:
    answer = await sandbox.post("/templates", json={"name": shape.name, "language": "id", **shape.template})
    assert answer.status_code == 201, answer.text
    created = answer.json()["data"]
    assert (created["status"], created["reason"], created["sendable"]) == ("APPROVED", None, True)
    (request,) = await read_outbox(sandbox, "/message_templates")
    is_code = shape.template["category"] == "AUTHENTICATION"
    assert hide_handles(request) == {
        "name": shape.name,
        "language": "id",
        "category": shape.template["category"],
        **({} if is_code else {"parameter_format": "POSITIONAL"}),
        **shape.more,
        "components": shape.created,
    }

    assert (await sandbox.post("/templates/sync")).json()["data"] == {"found": 1}
    (synchronised,) = (await sandbox.get("/templates")).json()["data"]
    assert {name: drop_examples(synchronised[name]) for name in OWN} == {
        name: drop_examples(created[name]) for name in OWN
    }
    assert (synchronised["id"], synchronised["status"], synchronised["sendable"]) == (created["id"], "APPROVED", True)

    send = {"to": NUMBER, "sources": "MSGAPP_CLOUD", "template_name": shape.name, **shape.send}
    sent = await sandbox.post("/messages/send-template", json=send)
    assert sent.status_code == 200, sent.text
    message = (await read_outbox(sandbox, "/messages"))[0]
    expected = {"name": shape.name, "language": {"code": "id"}}
    assert message["template"] == expected | ({} if shape.sent is None else {"components": shape.sent})


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
async def test_a_shape_that_was_made_at_the_channel_is_adopted_and_sent(
    sandbox: httpx.AsyncClient, database: Database, shape: Shape
) -> None:
    """Our own row of it is deleted, as if somebody else had created it there."""
    body = {"name": shape.name, "language": "id", **shape.template}
    created = (await sandbox.post("/templates", json=body)).json()["data"]
    async with database.connection() as db:
        await db.execute("DELETE FROM message_templates WHERE id = $1", created["id"])
    send = {"to": NUMBER, "sources": "MSGAPP_CLOUD", "template_name": shape.name, **shape.send}
    unknown = await sandbox.post("/messages/send-template", json=send)
    assert unknown.json()["error"]["code"] == "TEMPLATE_NOT_FOUND"
    assert (await sandbox.post("/templates/sync")).json()["data"] == {"found": 1}
    (adopted,) = (await sandbox.get("/templates")).json()["data"]
    assert (adopted["name"], adopted["sendable"], adopted["notSendableReason"]) == (shape.name, True, None)
    sent = await sandbox.post("/messages/send-template", json=send)
    assert sent.status_code == 200, sent.text
    message = (await read_outbox(sandbox, "/messages"))[0]
    expected = {"name": shape.name, "language": {"code": "id"}}
    assert message["template"] == expected | ({} if shape.sent is None else {"components": shape.sent})
