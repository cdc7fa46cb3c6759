"""Messages from customers over every channel, and the customers they belong to."""

import asyncio
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import httpx
import pytest

from sapa.db.pool import Database
from sapa.messaging.channels.interface import Source
from tests.conftest import Installation, connect
from tests.factories import Environments, make_customer, make_key
from tests.http.wire import eventually
from tests.messaging.conversation_steps import (
    get_message,
    list_events,
    list_inbound,
    send,
    settled,
    simulate_inbound,
    wait_for_inbound,
)
from tests.messaging.whatsapp_account import (
    WhatsAppHook,
    build_change,
    build_text,
    connect_whatsapp,
)

Json = dict[str, Any]

SENDERS = {
    "MSGAPP_CLOUD": "+628123456789",
    "MSGAPP_COEX": "+628123456789",
    "PHOTO_SOCIAL": "17841400123",
    "SOCIAL_NETWORK": "24681357",
    "SHORT_VIDEO": "conversation-7",
    "MAIL": "Ayu@Example.com",
    "WIDGET": "sim_ayu",
}
WINDOW_HOURS = {"MSGAPP_CLOUD": 24, "MSGAPP_COEX": 24, "PHOTO_SOCIAL": 24, "SOCIAL_NETWORK": 24, "SHORT_VIDEO": 48}
TELLS_NAMES = {"MSGAPP_CLOUD", "MSGAPP_COEX", "SHORT_VIDEO", "MAIL", "WIDGET"}
WITHOUT_CUSTOMER = {"PHOTO_SOCIAL", "SOCIAL_NETWORK", "SHORT_VIDEO", "WIDGET"}
RECEIVED = "SELECT body FROM events WHERE company_id = $1 AND kind = 'message.received'"
CONTACTS = "SELECT count(*) FROM contacts WHERE company_id = $1"


@pytest.fixture
def hook(installation: Installation, company: Environments) -> WhatsAppHook:
    return connect_whatsapp(installation, company.live)


@pytest.fixture
async def customers(installation: Installation, database: Database, company: Environments) -> Any:
    """The test environment's customers."""
    key = await make_key(database, company.test)
    async with connect(installation, key.raw) as client:
        yield client


async def list_customers(client: httpx.AsyncClient) -> list[Json]:
    found: list[Json] = (await client.get("/customers")).json()["data"]
    return found


def build_window(source: str, written_at: str) -> Json | None:
    if source not in WINDOW_HOURS:
        return None
    closes = datetime.fromisoformat(written_at) + timedelta(hours=WINDOW_HOURS[source])
    return {"closesAt": closes.isoformat(timespec="milliseconds").replace("+00:00", "Z")}


def test_every_channel_has_a_sender() -> None:
    missing = sorted(set(Source) - set(SENDERS))
    assert missing == [], (
        "add a sender of these channels to SENDERS in inbound/test_actions.py, and the channel to TELLS_NAMES, "
        "WINDOW_HOURS and WITHOUT_CUSTOMER if it tells names, has a window or has ids that create no customer"
    )


@pytest.mark.parametrize("source", SENDERS)
async def test_a_customer_writes(
    sandbox: httpx.AsyncClient, customers: httpx.AsyncClient, database: Database, company: Environments, source: str
) -> None:
    inbound = await simulate_inbound(
        sandbox, source=source, text="Masih ada?", name="Ayu Lestari", **{"from": SENDERS[source]}
    )
    (message,) = await wait_for_inbound(database, company.test)
    assert (message["source"], message["body"], message["provider_id"]) == (source, "Masih ada?", inbound["messageId"])
    shown = await get_message(sandbox, message["id"])
    assert (shown["direction"], shown["status"], shown["featureSource"]) == ("in", "received", "CUSTOMER")
    (received,) = await list_events(database, company.test, "message.received")
    assert received.items() >= {name: value for name, value in shown.items() if name != "events"}.items()
    name = "Ayu Lestari" if source in TELLS_NAMES else None
    assert received["contact"] == {"id": message["contact_id"], "name": name}
    assert received["window"] == build_window(source, shown["sentAt"])
    known = await list_customers(customers)
    if source in WITHOUT_CUSTOMER:
        assert (known, message["customer_id"]) == ([], None)
        return
    assert [customer["id"] for customer in known] == [message["customer_id"]]
    assert (known[0]["firstName"], known[0]["lastName"]) == ("Ayu", "Lestari")
    assert (known[0]["email"] or known[0]["phoneNumber"]).lower() == SENDERS[source].lower()


@pytest.mark.parametrize("source", SENDERS)
async def test_a_reply_goes_to_the_sender(
    sandbox: httpx.AsyncClient, database: Database, company: Environments, source: str
) -> None:
    await simulate_inbound(sandbox, source=source, text="Halo", **{"from": SENDERS[source]})
    (message,) = await wait_for_inbound(database, company.test)
    answer = await send(sandbox, message["client_number"], source)
    assert answer.status_code == 200, answer.text
    assert answer.json()["data"]["customerId"] == message["customer_id"]
    async with database.connection() as db:
        assert await db.fetchval(CONTACTS, company.test) == 1


async def test_a_button_is_chosen(sandbox: httpx.AsyncClient, database: Database, company: Environments) -> None:
    sent = (await send(sandbox, "+628123456789")).json()["data"]
    button = {"id": "yes", "title": "Ya"}
    await simulate_inbound(
        sandbox, source="MSGAPP_CLOUD", button=button, quoted=sent["messageId"], **{"from": "+628123456789"}
    )
    (message,) = await wait_for_inbound(database, company.test)
    assert message["interaction"] == {"kind": "button", **button}
    assert (await settled(sandbox, sent["messageId2"], {"repliedAt"}))["repliedAt"]


async def test_a_message_from_the_companys_phone_is_stored_and_opens_no_window(
    sandbox: httpx.AsyncClient, customers: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    await simulate_inbound(sandbox, source="MSGAPP_COEX", text="Dari telepon", echo=True, **{"from": "+628123456789"})
    (message,) = await wait_for_inbound(database, company.test)
    assert (message["direction"], message["feature_source"], message["body"]) == ("out", "BUSINESS_APP", "Dari telepon")
    async with database.connection() as db:
        assert await db.fetch(RECEIVED, company.test) == []
        windows = await db.fetch("SELECT last_inbound_at FROM message_threads WHERE company_id = $1", company.test)
    assert [row[0] for row in windows] in ([], [None])
    assert await list_customers(customers) == []


@pytest.mark.parametrize(
    ("kept", "written"),
    [
        ("+5511987654321", "551187654321"),
        ("+551187654321", "5511987654321"),
        ("+5491123456789", "541123456789"),
        ("+541123456789", "5491123456789"),
        ("+525512345678", "5215512345678"),
        ("+628123456789", "628123456789"),
    ],
)
async def test_a_customer_is_found_by_every_spelling_of_the_number(
    hook: WhatsAppHook, api: httpx.AsyncClient, database: Database, company: Environments, kept: str, written: str
) -> None:
    customer = await make_customer(api, phoneNumber=kept, email=None)
    await hook.send_change(build_change(build_text(written)))
    (message,) = await wait_for_inbound(database, company.live)
    assert message["customer_id"] == customer["id"]
    assert len(await list_customers(api)) == 1


async def test_a_number_in_an_outdated_form_becomes_a_customer(
    hook: WhatsAppHook, api: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    await hook.send_change(build_change(build_text("5215599887766")))
    (message,) = await wait_for_inbound(database, company.live)
    (customer,) = await list_customers(api)
    assert (message["customer_id"], customer["phoneNumber"]) == (customer["id"], "+525599887766")


@pytest.mark.parametrize(("number", "alias"), [("+12015550121", "+12015550191"), ("+12015550120", "US.12015550120")])
async def test_a_reply_under_another_identity_answers_what_was_sent(
    sandbox: httpx.AsyncClient, number: str, alias: str
) -> None:
    sent = (await send(sandbox, number)).json()["data"]
    await settled(sandbox, sent["messageId2"], {"readAt"})
    await simulate_inbound(sandbox, source="MSGAPP_CLOUD", text="Halo", **{"from": alias})
    assert (await settled(sandbox, sent["messageId2"], {"repliedAt"}))["repliedAt"]


async def test_two_spellings_at_once_are_one_customer(
    installation: Installation, hook: WhatsAppHook, api: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    """On two connections, so that only the number itself serialises them."""
    other = connect_whatsapp(installation, company.live, "MSGAPP_COEX")
    await asyncio.gather(
        hook.send_change(build_change(build_text("5511987654321"))),
        other.send_change(build_change(build_text("551187654321"))),
    )
    messages = await wait_for_inbound(database, company.live, 2)
    assert len({message["customer_id"] for message in messages}) == 1
    assert len({message["contact_id"] for message in messages}) == 1
    assert len(await list_customers(api)) == 1


async def test_a_contact_without_a_number_is_merged_once_it_is_known(
    hook: WhatsAppHook, api: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    user = "ID.13491208655302741918"
    await hook.send_change({"messages": [_of_user(user, "Tanpa nomor")]})
    (first,) = await wait_for_inbound(database, company.live)
    assert (first["client_number"], first["customer_id"]) == (user, None)
    await hook.send_change(build_change(build_text("628123456789", "Dengan nomor", from_user_id=user)))
    await hook.send_change({"messages": [_of_user(user, "Lagi")]})
    _, second, third = await wait_for_inbound(database, company.live, 3)
    assert second["customer_id"] == third["customer_id"] != None  # noqa: E711
    assert second["contact_id"] == third["contact_id"]
    assert len(await list_customers(api)) == 1


async def test_two_contacts_of_one_person_are_merged(
    hook: WhatsAppHook, api: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    user = "ID.13491208655302741918"
    await hook.send_change(build_change(build_text("628123456789", at=1_699_999_999)))
    await hook.send_change({"messages": [_of_user(user, "Tanpa nomor")]})
    await hook.send_change(build_change(build_text("628123456789", at=1_700_000_050, from_user_id=user)))
    await hook.send_change({"messages": [_of_user(user, "Lagi")]})
    first, stranger, _, last = await wait_for_inbound(database, company.live, 4)
    assert stranger["contact_id"] != first["contact_id"]
    assert (last["contact_id"], last["customer_id"]) == (first["contact_id"], first["customer_id"])
    assert len(await list_customers(api)) == 1


def _of_user(user: str, body: str) -> Json:
    at = {"Tanpa nomor": 1_700_000_000, "Lagi": 1_700_000_100}[body]
    message = {"from_user_id": user, "id": f"wamid.{uuid4().hex}", "timestamp": str(at), "type": "text"}
    return {**message, "text": {"body": body}}


async def test_a_changed_number_is_the_same_person(
    hook: WhatsAppHook, api: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    await hook.send_change(build_change(build_text("628123456789")))
    system = {"type": "user_changed_number", "wa_id": "628999999999", "body": "changed"}
    notice = {
        "from": "628123456789",
        "id": "wamid.system",
        "timestamp": "1700000001",
        "type": "system",
        "system": system,
    }
    await hook.send_change({"messages": [notice]})
    await hook.send_change(build_change(build_text("628999999999", at=1_700_000_002)))
    first, second = await wait_for_inbound(database, company.live, 2)
    assert second["customer_id"] == first["customer_id"]
    assert len(await list_customers(api)) == 1


async def test_a_deleted_customer_who_writes_again_is_a_new_one(
    hook: WhatsAppHook, api: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    await hook.send_change(build_change(build_text("628123456789")))
    (first,) = await wait_for_inbound(database, company.live)
    assert (await api.delete(f"/customers/{first['customer_id']}")).status_code == 204
    await hook.send_change(build_change(build_text("628123456789", at=1_700_000_009)))
    _, second = await wait_for_inbound(database, company.live, 2)
    assert second["customer_id"] != first["customer_id"]
    assert [customer["id"] for customer in await list_customers(api)] == [second["customer_id"]]


async def test_a_deleted_customer_is_not_linked_to_messages(
    sandbox: httpx.AsyncClient, customers: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    for source in ("MSGAPP_CLOUD", "MAIL"):
        await simulate_inbound(sandbox, source=source, text="Halo", **{"from": SENDERS[source]})
    messages = await wait_for_inbound(database, company.test, 2)
    for customer_id in {message["customer_id"] for message in messages}:
        assert (await customers.delete(f"/customers/{customer_id}")).status_code == 204
    for source in ("MSGAPP_CLOUD", "MSGAPP_COEX", "MAIL"):
        sent = (await send(sandbox, SENDERS[source], source)).json()["data"]
        assert sent["customerId"] is None


async def test_an_edit_a_reaction_and_a_revocation_are_events_of_the_message(
    hook: WhatsAppHook, live: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    await hook.send_change(build_change(build_text("628123456789", "Pesan 2", id="wamid.original")))
    (message,) = await wait_for_inbound(database, company.live)
    about = {"from": "628123456789", "timestamp": "1700000005"}
    edit = {"original_message_id": "wamid.original", "message": {"type": "text", "text": {"body": "Pesan 3"}}}
    reaction = {"message_id": "wamid.original", "emoji": "👍"}
    revoke = {"original_message_id": "wamid.original"}
    for type, content in (("edit", edit), ("reaction", reaction), ("revoke", revoke)):
        await hook.send_change({"messages": [{**about, "id": f"wamid.{type}", "type": type, type: content}]})

    async def look() -> Json | None:
        shown = await get_message(live, message["id"])
        return shown if {"edited", "reacted", "revoked"} <= {event["kind"] for event in shown["events"]} else None

    assert (await eventually(look))["body"] == "Pesan 3"
    assert len(await list_inbound(database, company.live)) == 1
