"""A live company's WhatsApp number, and signed callbacks to its address."""

import hmac
import json
from hashlib import sha256
from typing import Any
from uuid import uuid4

import httpx
from msgspec import Struct

from tests.cli.command import sapa
from tests.conftest import TLS, Installation

Json = dict[str, Any]

SECRET, WORD = "app-secret-1f2e", "verify-word-3d4c"
NUMBER_ID, OURS = "1122", "622150001234"


class WhatsAppHook(Struct, frozen=True):
    address: str
    connection_id: str

    async def post(self, body: bytes, signature: str | None = None) -> httpx.Response:
        header = signature if signature is not None else sign(body)
        headers = {"content-type": "application/json", "x-hub-signature-256": header}
        async with httpx.AsyncClient(timeout=120, verify=TLS) as client:
            return await client.post(self.address, content=body, headers=headers)

    async def send_change(self, *values: Json, field: str = "messages") -> None:
        answer = await self.post(build_body(*values, field=field))
        assert answer.status_code == 200, answer.text


def connect_whatsapp(installation: Installation, company_id: int, source: str = "MSGAPP_CLOUD") -> WhatsAppHook:
    account = {
        "phone_number_id": NUMBER_ID,
        "waba_id": "3344",
        "phone_number": f"+{OURS}",
        "access_token": "token",
        "app_secret": SECRET,
        "verify_token": WORD,
    }
    fields = [part for name, value in account.items() for part in ("--set", f"{name}={value}")]
    outcome = sapa(
        installation.data, "channel", "connect", "--company", str(company_id), "--source", source, "--no-check",
        "--json", *fields,
    )  # fmt: skip
    created = outcome.json()
    path = "/hooks/" + created["hookUrl"].partition("/hooks/")[2]
    return WhatsAppHook(installation.address + path, created["connection"]["id"])


def sign(body: bytes) -> str:
    return "sha256=" + hmac.new(SECRET.encode(), body, sha256).hexdigest()


def build_body(*values: Json, field: str = "messages") -> bytes:
    """One entry for each value, as the channel sends them."""
    metadata = {"display_phone_number": OURS, "phone_number_id": NUMBER_ID}
    whole = [{"messaging_product": "whatsapp", "metadata": metadata, **value} for value in values]
    entries = [{"id": "3344", "changes": [{"field": field, "value": value}]} for value in whole]
    return json.dumps({"object": "whatsapp_business_account", "entry": entries}).encode()


def build_text(sender: str, body: str = "Halo", id: str | None = None, at: int = 1_700_000_000, **more: Any) -> Json:
    id = id or f"wamid.{uuid4().hex}"
    text = {"type": "text", "text": {"body": body}}
    return {"from": sender, "id": id, "timestamp": str(at), **text, **more}


def build_change(*messages: Json, name: str = "Ayu Lestari") -> Json:
    """A change with these messages and their senders."""
    numbers = dict.fromkeys(message["from"] for message in messages if "from" in message)
    contacts = [{"profile": {"name": name}, "wa_id": number} for number in numbers]
    return {"contacts": contacts, "messages": list(messages)}
