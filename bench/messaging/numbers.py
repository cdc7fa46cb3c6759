"""Companies with a WhatsApp number each, customers who wrote to it a moment ago, and the channel's callbacks."""

import hmac
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Struct

from bench.ground import Ground, SeededCompany, make_company
from sapa.access.actions import get_company
from sapa.context import AppContext
from sapa.db.pool import open_database
from sapa.messaging.channels.interface import Identity, Source
from sapa.messaging.connections import actions
from sapa.messaging.contacts import actions as contacts
from sapa.messaging.messages.types import MESSAGE_ID
from sapa.settings import read_settings
from sapa.startup import build_context

SOURCE = Source.MSGAPP_CLOUD
SECRET = "app-secret"
OURS = "622150001234"
NUMBER_ID, BUSINESS_ID = "1122", "3344"
ACCOUNT = {
    "phone_number_id": NUMBER_ID,
    "waba_id": BUSINESS_ID,
    "phone_number": f"+{OURS}",
    "access_token": "token",
    "app_secret": SECRET,
}


class ConnectedNumber(Struct, frozen=True):
    company: SeededCompany
    connection_id: str
    hook: str
    """The path of its callbacks."""


async def connect_number(ground: Ground, name: str, customers: Sequence[str] = ()) -> ConnectedNumber:
    """A company with a number to which these customers wrote."""
    company = await make_company(ground, name)
    async with _open_context(ground) as context, context.database.transaction() as tx:
        owner = await get_company(tx, company.id)
        draft = await actions.prepare(context, tx, owner, SOURCE, ACCOUNT)
        made = await actions.connect(context, tx, owner, draft)
        for number in customers:
            contact = await contacts.find_or_create(tx, owner, [Identity("phone", number)], "Ayu")
            now, id = datetime.now(UTC), MESSAGE_ID.new()
            await contacts.record_inbound(tx, owner, made.connection.id, contact.id, now, id)
    assert made.hook_url is not None
    return ConnectedNumber(company, made.connection.id, "/hooks/" + made.hook_url.partition("/hooks/")[2])


@asynccontextmanager
async def _open_context(ground: Ground) -> AsyncIterator[AppContext]:
    async with open_database(ground.app_url) as database:
        context = build_context(read_settings(ground.environment), database)
        yield context
        await context.close()


def build_statuses(message_ids: Sequence[str], status: str) -> bytes:
    """One callback with a status of each message."""
    at = str(int(time.time()))
    statuses = [{"id": id, "status": status, "timestamp": at, "recipient_id": "628123456789"} for id in message_ids]
    return _build_callback({"statuses": statuses})


def build_text(sender: str, text: str, id: str) -> bytes:
    contact = {"profile": {"name": "Ayu Lestari"}, "wa_id": sender}
    message = {"from": sender, "id": id, "timestamp": str(int(time.time())), "type": "text", "text": {"body": text}}
    return _build_callback({"contacts": [contact], "messages": [message]})


def sign(body: bytes) -> dict[str, str]:
    """The headers of a callback."""
    signature = "sha256=" + hmac.new(SECRET.encode(), body, sha256).hexdigest()
    return {"content-type": "application/json", "x-hub-signature-256": signature}


def _build_callback(value: dict[str, Any]) -> bytes:
    metadata = {"display_phone_number": OURS, "phone_number_id": NUMBER_ID}
    change = {"field": "messages", "value": {"messaging_product": "whatsapp", "metadata": metadata, **value}}
    entry = {"id": BUSINESS_ID, "changes": [change]}
    return msgspec.json.encode({"object": "whatsapp_business_account", "entry": [entry]})
