"""Consent decides marketing messages, on every way of sending; only the person lifts their stop."""

import asyncio
from typing import Any

import httpx
import pytest

from sapa.db.pool import Database
from tests.conftest import TLS, Installation
from tests.factories import Environments, make_customer
from tests.http.wire import eventually
from tests.messaging.consents.steps import (
    ADDRESS,
    NUMBER,
    await_replies,
    find_customer,
    get_subscriptions,
    is_refused,
    list_consents,
    list_replies,
    make_promo,
    send_promo,
    write,
)
from tests.messaging.conversation_steps import list_inbound, simulate_inbound
from tests.messaging.files.corpus import make_image
from tests.messaging.files.steps import upload
from tests.messaging.provider import NUMBER_SENT, Live, open_live
from tests.messaging.send_steps import build_message, list_records, make_template
from tests.messaging.whatsapp_account import build_change, build_text

Json = dict[str, Any]

PROOF = {"text": "Ya, kirimi saya promo.", "place": "https://shop.example/checkout", "reference": "form-1042"}


def subscription(app: str, status: str = "unsubscribe") -> list[Json]:
    return [{"app": app, "status": status}]


@pytest.mark.parametrize(
    ("subscriptions", "refused"),
    [
        ([], False),
        (subscription("CRM"), True),
        (subscription("MSGAPP_CLOUD"), True),
        (subscription("MSGAPP_CLOUD", "subscribe"), False),
        (subscription("CRM", "subscribe") + subscription("MSGAPP_CLOUD"), True),
        (subscription("CRM") + subscription("MSGAPP_CLOUD", "subscribe"), True),
        (subscription("MAIL"), False),
        (subscription("newsletter"), False),
    ],
)
async def test_a_customer_who_unsubscribed_gets_no_marketing_template(
    sandbox: httpx.AsyncClient, shop: httpx.AsyncClient, subscriptions: list[Json], refused: bool
) -> None:
    await make_promo(sandbox)
    await make_customer(shop, phoneNumber=NUMBER, subscriptionStatus=subscriptions)
    assert await is_refused(sandbox) == refused


@pytest.mark.smoke
async def test_other_messages_are_never_refused_for_consent(
    sandbox: httpx.AsyncClient, shop: httpx.AsyncClient
) -> None:
    await make_promo(sandbox)
    await make_template(sandbox)
    await make_customer(shop, phoneNumber=NUMBER, subscriptionStatus=subscription("CRM"))
    update = {"to": NUMBER, "sources": "MSGAPP_CLOUD", "template_name": "order_update", "params": ["Ayu", "17"]}
    assert (await sandbox.post("/messages/send-template", json=update)).status_code == 200
    assert (await sandbox.post("/messages/send", json=build_message(to=NUMBER))).status_code == 200
    refused = await send_promo(sandbox)
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "CONSENT_MISSING")
    record = (await list_records(sandbox))["data"][0]
    assert (record["templateId"], record["messageId2"], bool(record["failedAt"])) == ("promo", None, True)


async def test_the_next_channel_is_used_if_one_is_stopped(sandbox: httpx.AsyncClient, shop: httpx.AsyncClient) -> None:
    """A list of channels is an order of preference."""
    await make_promo(sandbox)
    await make_customer(shop, email=ADDRESS, phoneNumber=NUMBER, subscriptionStatus=subscription("MSGAPP_COEX"))
    answer = await send_promo(sandbox, sources=["MSGAPP_COEX", "MSGAPP_CLOUD"])
    assert (answer.status_code, answer.json()["data"]["source"]) == (200, "MSGAPP_CLOUD")


@pytest.mark.parametrize("word", ["STOP", "unsubscribe", "Berhenti.", "STOP PROMO", "Batal langganan!"])
async def test_a_word_stops_promotions_is_confirmed_once_and_opens_no_ticket(
    sandbox: httpx.AsyncClient, shop: httpx.AsyncClient, database: Database, company: Environments, word: str
) -> None:
    await make_promo(sandbox)
    message = await write(sandbox, database, company.test, word)
    assert await is_refused(sandbox)
    assert await is_refused(sandbox, sources="MSGAPP_COEX")
    assert (await await_replies(sandbox, 1)) == [
        "Anda tidak akan menerima pesan promosi lagi. Balas START untuk berlangganan kembali."
    ]
    again = await write(sandbox, database, company.test, word)
    assert again["id"] != message["id"]
    assert (await sandbox.get("/tickets")).json()["data"] == []
    customer = await find_customer(shop, NUMBER)
    consents = await list_consents(shop, customer["id"])
    assert {consent["identity"] for consent in consents} == {NUMBER, f"ID.{NUMBER[1:]}"}
    for consent in consents:
        assert consent["proof"] == {
            "text": word, "place": "MSGAPP_CLOUD", "reference": message["id"], "obtainedAt": consent["obtainedAt"],
        }  # fmt: skip
        shown = (consent["app"], consent["status"], consent["source"], consent["byPerson"])
        assert shown == ("CRM", "unsubscribe", "word", True)
        assert (consent["current"], consent["actor"]) == (True, None)
    assert (await get_subscriptions(shop, customer["id"]))["MSGAPP_CLOUD"] == "unsubscribe"
    await write(sandbox, database, company.test, "Masih ada?")  # by now a second confirmation would be queued and sent
    await asyncio.sleep(1.5)
    assert len(await list_replies(sandbox)) == 1


async def test_start_lifts_a_stop_and_is_otherwise_a_message_like_any_other(
    sandbox: httpx.AsyncClient, shop: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    await make_promo(sandbox)
    await write(sandbox, database, company.test, "STOP")
    assert await is_refused(sandbox)
    await write(sandbox, database, company.test, "Start")
    assert not await is_refused(sandbox)
    replies = await await_replies(sandbox, 2)
    assert "STOP" in replies[-1]
    assert (await sandbox.get("/tickets")).json()["data"] == []
    customer = await find_customer(shop, NUMBER)
    assert (await get_subscriptions(shop, customer["id"]))["MSGAPP_CLOUD"] == "subscribe"
    current = [consent["current"] for consent in await list_consents(shop, customer["id"])]
    assert current == [True, True, False, False], "of the number and of the user id"
    await write(sandbox, database, company.test, "START")
    tickets = (await sandbox.get("/tickets")).json()["data"]
    assert len(tickets) == 1


async def test_a_word_in_a_conversation_is_shown_there_and_nobody_waits(
    sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    await write(sandbox, database, company.test, "Halo")
    (ticket,) = (await sandbox.get("/tickets")).json()["data"]
    agent = (await sandbox.post("/agents", json={"name": "Sari", "type": "human"})).json()["data"]["id"]
    reply = {"agentId": agent, "body": "Halo!"}
    assert (await sandbox.post(f"/tickets/{ticket['id']}/replies", json=reply)).status_code == 200
    word = await write(sandbox, database, company.test, "STOP")
    seen = (await sandbox.get(f"/tickets/{ticket['id']}")).json()["data"]
    assert word["id"] in [message["messageId2"] for message in seen["messages"]]
    assert seen["waitingSince"] is None


async def test_a_companys_own_words_and_replies(
    sandbox: httpx.AsyncClient, shop: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    await make_promo(sandbox)
    patch = {"stopWords": ["Jangan kirim"], "startWords": ["Mulai"], "stopReply": "Baik, kami berhenti."}
    saved = (await shop.put("/consent-settings", json=patch)).json()["data"]
    assert saved == {**patch, "startReply": None, "automaticMarketing": "subscribed"}
    assert (await shop.get("/consent-settings")).json()["data"] == saved
    await write(sandbox, database, company.test, "JANGAN KIRIM!")
    assert await is_refused(sandbox)
    assert await await_replies(sandbox, 1) == ["Baik, kami berhenti."]
    await write(sandbox, database, company.test, "mulai")
    assert not await is_refused(sandbox)
    for body, field in (
        ({"stopWords": ["start"]}, "stopWords[0]"),
        ({"startWords": ["Oke", "jangan, kirim"]}, "startWords[1]"),
        ({"stopWords": ["!!!"]}, "stopWords[0]"),
        ({"stopWords": ["x" * 51]}, "stopWords[0]"),
    ):
        refused = await shop.put("/consent-settings", json=body)
        assert (refused.status_code, refused.json()["error"]["details"][0]["field"]) == (400, field)
    assert (await shop.get("/consent-settings")).json()["data"] == saved


async def test_concurrent_changes_of_different_settings_all_arrive(shop: httpx.AsyncClient) -> None:
    for number in range(3):
        wanted = {
            "stopWords": [f"Jangan {number}"], "startWords": [f"Mulai {number}"], "stopReply": f"Baik {number}",
            "startReply": f"Halo {number}", "automaticMarketing": ["not_refused", "subscribed"][number % 2],
        }  # fmt: skip
        patches = [{name: value} for name, value in wanted.items()]
        changed = await asyncio.gather(*(shop.put("/consent-settings", json=patch) for patch in patches))
        assert [response.status_code for response in changed] == [200] * len(patches)
        assert (await shop.get("/consent-settings")).json()["data"] == wanted


async def test_nothing_that_a_program_does_lifts_a_stop_by_the_person(
    sandbox: httpx.AsyncClient, shop: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    await make_promo(sandbox)
    customer = await make_customer(shop, phoneNumber=NUMBER, externalId="shop-1", subscriptionStatus=[])
    await write(sandbox, database, company.test, "STOP")
    path = f"/customers/{customer['id']}"
    wanted = subscription("CRM", "subscribe") + subscription("MSGAPP_CLOUD", "subscribe")
    updated = await shop.put(path, json={"firstName": "Ayu", "subscriptionStatus": wanted})
    assert (updated.status_code, updated.json()["data"]["firstName"]) == (200, "Ayu")
    shown = {entry["app"]: entry["status"] for entry in updated.json()["data"]["subscriptionStatus"]}
    assert (shown["CRM"], shown["MSGAPP_CLOUD"]) == ("subscribe", "unsubscribe")
    assert await is_refused(sandbox)
    upserted = await shop.put("/customers/by-external-id/shop-1", json={"subscriptionStatus": wanted})
    assert upserted.status_code == 200
    assert await is_refused(sandbox)
    body = {"app": "MSGAPP_CLOUD", "status": "subscribe", "proof": PROOF}
    recorded = await shop.post(f"{path}/consents", json=body)
    assert (recorded.status_code, recorded.json()["error"]["code"]) == (409, "UNSUBSCRIBED_BY_PERSON")
    patches: list[Json] = [{"subscriptionStatus": []}, {"subscriptionStatus": None}, {"phoneNumber": "+628123456778"}]
    for patch in patches:
        patched = await shop.put(path, json={"email": ADDRESS, **patch})
        assert patched.status_code == 200, patched.text
        assert await is_refused(sandbox)
    assert await is_refused(sandbox, "+628123456778")  # the customer as a whole unsubscribed from the channel
    assert (await shop.delete(path)).status_code == 204
    again = await make_customer(shop, phoneNumber=NUMBER, subscriptionStatus=wanted)
    assert subscription("MSGAPP_CLOUD")[0] in again["subscriptionStatus"]
    assert await is_refused(sandbox)
    assert [consent["source"] for consent in await list_consents(shop, again["id"])].count("word") == 1


async def test_consent_is_recorded_with_its_proof(sandbox: httpx.AsyncClient, shop: httpx.AsyncClient) -> None:
    await make_promo(sandbox)
    customer = await make_customer(shop, phoneNumber=NUMBER)
    path = f"/customers/{customer['id']}/consents"
    stopped = await shop.post(path, json={"app": "msgapp cloud api", "status": "unsubscribe"})
    assert (stopped.status_code, stopped.json()["data"]["app"]) == (201, "MSGAPP_CLOUD")
    assert await is_refused(sandbox)
    at = "2026-01-31T16:30:00+07:00"
    body = {"app": "MSGAPP_CLOUD", "status": "subscribe", "proof": {**PROOF, "obtainedAt": at}}
    recorded = (await shop.post(path, json=body)).json()["data"]
    assert recorded["proof"] == {**PROOF, "obtainedAt": "2026-01-31T09:30:00.000Z"}
    assert (recorded["source"], recorded["actor"]["type"], recorded["byPerson"]) == ("api", "api_key", False)
    assert recorded["obtainedAt"] == "2026-01-31T09:30:00.000Z"
    assert await get_subscriptions(shop, customer["id"]) == {"MSGAPP_CLOUD": "subscribe"}
    assert not await is_refused(sandbox)
    listed = await list_consents(shop, customer["id"])
    assert [(one["status"], one["current"]) for one in listed] == [("subscribe", True), ("unsubscribe", False)]
    assert listed[0] == recorded
    wrong = await shop.post(path, json={"app": "PIGEON", "status": "subscribe"})
    assert (wrong.status_code, wrong.json()["error"]["details"][0]["field"]) == (400, "app")


async def test_subscriptions_that_are_left_out_keep_their_consent_and_its_record(
    shop: httpx.AsyncClient,
) -> None:
    sent = [*subscription("CRM", "subscribe"), *subscription("loyalty-app", "subscribe")]
    customer = await make_customer(shop, subscriptionStatus=sent)
    assert customer["subscriptionStatus"] == sent
    for patch in ([], None, subscription("MAIL", "subscribe")):
        await shop.put(f"/customers/{customer['id']}", json={"subscriptionStatus": patch})
        assert (await get_subscriptions(shop, customer["id"]))["CRM"] == "subscribe"
    assert await get_subscriptions(shop, customer["id"]) == {"MAIL": "subscribe", "CRM": "subscribe"}
    listed = [(one["app"], one["source"], one["status"]) for one in await list_consents(shop, customer["id"])]
    assert listed == [("MAIL", "api", "subscribe"), ("CRM", "api", "subscribe")]
    assert (await shop.delete(f"/customers/{customer['id']}")).status_code == 204
    assert (await shop.get(f"/customers/{customer['id']}/consents")).status_code == 404


async def test_a_setting_at_the_channel_is_a_record_of_its_own(
    installation: Installation, database: Database, company: Environments
) -> None:
    async with open_live(installation, database, company.live) as live:
        live.peer.answers = [(200, NUMBER_SENT)]
        await prepare_live(live, database, company.live)
        await set_preference(live, "stop", 1_790_000_000)
        await eventually(lambda: until(live, is_stopped=True))
        await live.hook.send_change(build_word("START", 1_790_000_010))
        await live.hook.send_change(build_word("STOP", 1_790_000_020))
        await live.hook.send_change(build_word("START", 1_790_000_030))
        await eventually(lambda: count_inbound(database, company.live, 3))
        assert await is_stopped(live)  # what the person wrote does not lift what they set
        await set_preference(live, "resume", 1_790_000_040)
        await eventually(lambda: until(live, is_stopped=False))
        await set_preference(live, "stop", 1_790_000_005)  # reported late
        await live.hook.send_change(build_word("STOP", 1_790_000_025))
        await live.hook.send_change(build_word("Halo", 1_790_000_050))
        await eventually(lambda: count_inbound(database, company.live, 5))
        assert not await is_stopped(live)


async def test_a_setting_is_recorded_with_its_report_as_the_proof(
    sandbox: httpx.AsyncClient, shop: httpx.AsyncClient
) -> None:
    await make_promo(sandbox)
    customer = await make_customer(shop, phoneNumber=NUMBER)
    await simulate_inbound(sandbox, source="MSGAPP_CLOUD", preference="stop", **{"from": NUMBER})
    consent = await eventually(lambda: find_consent(shop, customer["id"], "unsubscribe"))
    (event,) = (await sandbox.get("/channel-events")).json()["data"]
    assert (consent["app"], consent["source"], consent["byPerson"]) == ("MSGAPP_CLOUD", "channel_preference", True)
    assert {one["identity"] for one in await list_consents(shop, customer["id"])} == {NUMBER, f"ID.{NUMBER[1:]}"}
    assert (consent["proof"]["reference"], consent["proof"]["place"]) == (event["id"], "MSGAPP_CLOUD")
    assert await is_refused(sandbox)
    assert not await is_refused(sandbox, sources="MSGAPP_COEX")  # it is a setting of one number
    await simulate_inbound(sandbox, source="MSGAPP_CLOUD", preference="signup", **{"from": NUMBER})
    await eventually(lambda: find_consent(shop, customer["id"], "subscribe"))
    assert not await is_refused(sandbox)


async def find_consent(shop: httpx.AsyncClient, customer_id: str, status: str) -> Json | None:
    found = await list_consents(shop, customer_id)
    return found[0] if found and found[0]["status"] == status else None


@pytest.mark.parametrize("is_late", [False, True], ids=["in the response", "in a report"])
async def test_the_channels_refusal_is_written_down(
    installation: Installation, database: Database, company: Environments, is_late: bool
) -> None:
    async with open_live(installation, database, company.live) as live:
        await prepare_live(live, database, company.live)
        error = {"code": 131050, "title": "User stopped", "message": "(#131050) User has stopped marketing messages"}
        live.peer.answers = [(200, NUMBER_SENT)] if is_late else [(400, {"error": error})]
        answer = await send_live(live)
        assert answer.status_code == (200 if is_late else 502), answer.text
        if is_late:
            status = {"id": "wamid.1", "status": "failed", "timestamp": "1790000000", "recipient_id": "628123456789"}
            await live.hook.send_change({"statuses": [{**status, "errors": [error]}]})
            message = await await_live_failure(live, answer.json()["data"]["messageId2"])
            assert message["error"]["category"] == "consent"
        await eventually(lambda: until(live, is_stopped=True))
        async with database.connection() as db:
            sources = await db.fetch("SELECT source, app FROM consent_records WHERE company_id = $1", company.live)
        assert [tuple(row) for row in sources] == [("channel_refusal", "MSGAPP_CLOUD")]


async def test_a_stop_that_comes_while_a_message_is_retried_ends_it(
    installation: Installation, database: Database, company: Environments
) -> None:
    async with open_live(installation, database, company.live) as live:
        await prepare_live(live, database, company.live)
        live.peer.opens.clear()
        busy = {"error": {"code": 130429, "message": "(#130429) Rate limit hit"}}
        live.peer.answers = [(400, busy), (200, NUMBER_SENT)]
        sending = asyncio.create_task(send_live(live))
        await eventually(lambda: has_requests(live))
        await live.hook.send_change(build_word("STOP", 1_790_000_000))
        await eventually(lambda: count_stops(database, company.live))
        live.peer.opens.set()
        answer = await sending
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "CONSENT_MISSING")
        assert len([request for request in live.peer.requests if b"promo" in request.body]) == 1
        record = (await live.client.get("http://probe/messaging/v1/messages/requests")).json()["data"][0]
        assert (record["messageId2"] is not None, bool(record["failedAt"])) == (True, True)


async def test_a_stop_that_comes_while_a_file_is_uploaded_ends_the_message(
    installation: Installation, database: Database, company: Environments
) -> None:
    async with open_live(installation, database, company.live) as live:
        await prepare_live(live, database, company.live, header=b'{"type": "image"}')
        headers = {"x-api-key": live.client.headers["x-api-key"]}
        address = f"{installation.address}/messaging/v1"
        async with httpx.AsyncClient(base_url=address, headers=headers, verify=TLS, timeout=120) as client:
            file = await upload(client, make_image("PNG"))
        live.peer.opens.clear()
        live.peer.answers = [(200, {"id": "900"}), (200, NUMBER_SENT)]
        sending = asyncio.create_task(send_live(live, components={"header": {"attachmentId": file["id"]}}))
        await eventually(lambda: has_requests(live))
        await live.hook.send_change(build_word("STOP", 1_790_000_000))
        await eventually(lambda: count_stops(database, company.live))
        live.peer.opens.set()
        answer = await sending
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "CONSENT_MISSING")
        edges = [request.path.rpartition("/")[2] for request in live.peer.requests if b"STOP" not in request.body]
        assert edges.count("media") == 1
        assert not [request for request in live.peer.requests if b'"promo"' in request.body]


async def prepare_live(live: Live, database: Database, company_id: int, header: bytes | None = None) -> None:
    """An approved template, as synchronisation adopts it."""
    async with database.transaction() as tx:
        await tx.execute(
            "INSERT INTO message_templates (company_id, id, name, language, source, category, body, buttons,"
            " status, provider_id, header) VALUES ($1, 'tpl_promo', 'promo', 'id', 'CRM', 'MARKETING',"
            " 'Halo {{1}}, promo!', '[]', 'APPROVED', '77', $2)",
            company_id,
            header,
        )


async def send_live(live: Live, **fields: Any) -> httpx.Response:
    body = {"to": "+628123456789", "sources": "MSGAPP_CLOUD", "template_name": "promo", "params": ["Ayu"]}
    return await live.post("/messages/send-template", **body, **fields)


async def is_stopped(live: Live) -> bool:
    answer = await send_live(live)
    assert answer.status_code in {200, 409}, answer.text
    return answer.status_code == 409


async def until(live: Live, *, is_stopped: bool) -> bool | None:
    answer = await send_live(live)
    return True if (answer.status_code == 409) == is_stopped else None


async def set_preference(live: Live, value: str, at: int) -> None:
    preference = {
        "wa_id": "628123456789",
        "detail": f"User requested to {value} marketing messages",
        "category": "marketing_messages",
        "value": value,
        "timestamp": at,
    }
    contacts = [{"wa_id": "628123456789", "profile": {"name": "Ayu"}}]
    await live.hook.send_change({"contacts": contacts, "user_preferences": [preference]}, field="user_preferences")


def build_word(text: str, at: int) -> Json:
    return build_change(build_text("628123456789", text, at=at))


async def count_inbound(database: Database, company_id: int, count: int) -> bool | None:
    return True if len(await list_inbound(database, company_id)) >= count else None


async def count_stops(database: Database, company_id: int) -> bool | None:
    async with database.connection() as db:
        return True if await db.fetchval("SELECT count(*) FROM consents WHERE company_id = $1", company_id) else None


async def has_requests(live: Live) -> bool | None:
    return True if live.peer.requests else None


async def await_live_failure(live: Live, id: str) -> Json:
    async def look() -> Json | None:
        message: Json = await live.get(f"/messages/{id}")
        return message if message["status"] == "failed" else None

    return await eventually(look)
