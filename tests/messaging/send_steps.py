"""Steps of tests that send messages."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import httpx

SECONDS = 120.0
NUMBER = "+628123456789"
BUTTONS = {"type": "buttons", "body": "Benar?", "buttons": [{"id": "yes", "title": "Ya"}]}


def magic(number: int) -> str:
    """A recipient whose number selects a simulator's script."""
    return f"+1201555{number:04d}"


async def send(client: httpx.AsyncClient, status: int = 200, **fields: Any) -> dict[str, Any]:
    """Sends a plain message over WhatsApp unless `fields` say otherwise; returns the message."""
    answer = await client.post("/messages/send", json=build_message(**fields))
    assert answer.status_code == status, answer.text
    found: dict[str, Any] = answer.json()["data"]
    return found


def build_message(**fields: Any) -> dict[str, Any]:
    return {"to": NUMBER, "message": "Halo!", "sources": "MSGAPP_CLOUD", **fields}


async def make_template(client: httpx.AsyncClient, **fields: Any) -> dict[str, Any]:
    body = {
        "name": "order_update",
        "language": "id",
        "category": "UTILITY",
        "body": "Halo {{1}}, pesanan {{2}} dikirim.",
        **fields,
    }
    answer = await client.post("/templates", json=body)
    assert answer.status_code == 201, answer.text
    created: dict[str, Any] = answer.json()["data"]
    return created


async def make_code_template(client: httpx.AsyncClient, **fields: Any) -> dict[str, Any]:
    """A template for one-time codes."""
    button = {"type": "otp", "otpType": "copy_code", "text": "Salin kode"}
    body = {"name": "login_code", "language": "id", "category": "AUTHENTICATION", "buttons": [button], **fields}
    answer = await client.post("/templates", json=body)
    assert answer.status_code == 201, answer.text
    created: dict[str, Any] = answer.json()["data"]
    return created


async def get_message(client: httpx.AsyncClient, id: str) -> dict[str, Any]:
    answer = await client.get(f"/messages/{id}")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()["data"]
    return found


async def await_message(
    client: httpx.AsyncClient, id: str, is_done: Callable[[dict[str, Any]], object]
) -> dict[str, Any]:
    """The message as soon as it meets the condition."""
    ends = time.monotonic() + SECONDS
    while True:
        message = await get_message(client, id)
        if is_done(message):
            return message
        assert time.monotonic() < ends, f"it stayed as it was: {message}"
        await asyncio.sleep(0.1)


async def list_records(client: httpx.AsyncClient, **params: Any) -> dict[str, Any]:
    answer = await client.get("/messages/requests", params=params)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def get_record(client: httpx.AsyncClient, id: str) -> dict[str, Any]:
    """The record of the call that created a message."""
    (found,) = (await list_records(client, responseId=id))["data"]
    record: dict[str, Any] = found
    return record
