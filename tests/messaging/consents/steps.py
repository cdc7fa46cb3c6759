"""Steps of tests about consent: promotions, words, links."""

import json
from email import message_from_string, policy
from email.message import EmailMessage
from typing import Any

import httpx

from sapa.db.pool import Database
from tests.conftest import TLS
from tests.http.wire import eventually
from tests.messaging.conversation_steps import read_outbox, simulate_inbound, wait_for_inbound
from tests.messaging.send_steps import make_template

Json = dict[str, Any]

NUMBER = "+628123456777"
ADDRESS = "ayu.promo@example.com"
ONE_CLICK = b"List-Unsubscribe=One-Click"


async def make_promo(client: httpx.AsyncClient, **fields: Any) -> None:
    text = {"name": "promo", "category": "MARKETING", "body": "Halo {{1}}, ada promo hari ini."}
    await make_template(client, **text | fields)


async def send_promo(client: httpx.AsyncClient, to: str = NUMBER, sources: Any = "MSGAPP_CLOUD") -> httpx.Response:
    body = {"to": to, "sources": sources, "template_name": "promo", "params": ["Ayu"]}
    return await client.post("/messages/send-template", json=body)


async def is_refused(client: httpx.AsyncClient, to: str = NUMBER, sources: Any = "MSGAPP_CLOUD") -> bool:
    """Whether a promotion is refused for lack of consent; anything but that and a success is an error."""
    answer = await send_promo(client, to, sources)
    if answer.status_code == 409:
        assert answer.json()["error"]["code"] == "CONSENT_MISSING", answer.text
        return True
    assert answer.status_code == 200, answer.text
    return False


async def write(
    client: httpx.AsyncClient, database: Database, company_id: int, text: str, sender: str = NUMBER, **fields: Any
) -> Json:
    """A customer writes; returns the message once it is processed."""
    count = len(await _list(database, company_id))
    source = fields.pop("source", "MSGAPP_CLOUD")
    await simulate_inbound(client, source=source, text=text, **{"from": sender}, **fields)
    return (await wait_for_inbound(database, company_id, count + 1))[-1]


async def _list(database: Database, company_id: int) -> list[Json]:
    return await wait_for_inbound(database, company_id, 0)


async def list_consents(shop: httpx.AsyncClient, customer_id: str) -> list[Json]:
    answer = await shop.get(f"/customers/{customer_id}/consents", params={"limit": 100})
    assert answer.status_code == 200, answer.text
    found: list[Json] = answer.json()["data"]
    return found


async def get_subscriptions(shop: httpx.AsyncClient, customer_id: str) -> dict[str, str]:
    answer = await shop.get(f"/customers/{customer_id}")
    assert answer.status_code == 200, answer.text
    return {entry["app"]: entry["status"] for entry in answer.json()["data"]["subscriptionStatus"]}


async def find_customer(shop: httpx.AsyncClient, search: str) -> Json:
    (found,) = (await shop.get("/customers", params={"search": search})).json()["data"]
    customer: Json = found
    return customer


async def list_replies(client: httpx.AsyncClient) -> list[str]:
    """The texts that went out over WhatsApp, oldest first."""
    entries = [entry for entry in await read_outbox(client) if entry["source"] == "MSGAPP_CLOUD"]
    bodies = [json.loads(entry["body"]) for entry in entries[::-1] if entry["path"].endswith("/messages")]
    return [body["text"]["body"] for body in bodies if body.get("type") == "text"]


async def await_replies(client: httpx.AsyncClient, count: int) -> list[str]:
    async def look() -> list[str] | None:
        found = await list_replies(client)
        return found if len(found) >= count else None

    return await eventually(look)


async def read_mails(client: httpx.AsyncClient) -> list[EmailMessage]:
    """The mails that went out, oldest first, as an independent parser reads them."""
    entries = [entry for entry in await read_outbox(client) if entry["source"] == "MAIL"]
    parsed = [message_from_string(entry["body"], policy=policy.default) for entry in entries[::-1]]
    return [mail for mail in parsed if isinstance(mail, EmailMessage)]


def find_link(mail: EmailMessage) -> str:
    return str(mail["List-Unsubscribe"]).partition(">")[0].strip("<")


async def post_link(link: str, body: bytes = ONE_CLICK) -> httpx.Response:
    """As a mail program does, without cookies."""
    headers = {"content-type": "application/x-www-form-urlencoded"}
    async with httpx.AsyncClient(verify=TLS, timeout=120) as program:
        return await program.post(link, content=body, headers=headers)
