"""Channels and carriers at the console: connected, tested, disconnected, and their secrets never seen again."""

import re
from collections.abc import AsyncIterator

import httpx
import pytest

from sapa.db.pool import Database
from tests.conftest import Installation
from tests.console.own import open_own
from tests.console.people import make_person, open_browser, read_token
from tests.factories import Environments, make_key
from tests.http.wire import eventually
from tests.messaging.channels.peer import Peer, open_peer
from tests.messaging.conftest import connect_messaging
from tests.messaging.conversation_steps import simulate_inbound

WHATSAPP = {
    "phone_number_id": "1122",
    "waba_id": "3344",
    "phone_number": "+622150001234",
    "access_token": "planted-access-token",
    "app_secret": "planted-app-secret",
}
SET_ASIDE = """
    INSERT INTO channel_callbacks (company_id, connection_id, hash, headers, body, status, tries, error)
    VALUES ($1, $2, sha256($3), '{}', $3, 'failed', 3, 'It took <too> long.')"""
SECRETS = ("planted-access-token", "planted-app-secret", "planted-api-key", "planted-other-key")


@pytest.fixture
async def peer() -> AsyncIterator[Peer]:
    async with open_peer() as peer:
        yield peer


@pytest.fixture
async def owner(
    installation: Installation, database: Database, company: Environments, peer: Peer
) -> AsyncIterator[httpx.AsyncClient]:
    email = await make_person(database, company)
    upstreams = {"SAPA_UPSTREAM_MSGAPP_CLOUD": peer.address, "SAPA_UPSTREAM_KIRIMINAJA": peer.address}
    async with open_own(installation, email, **upstreams) as client:
        yield client


def list_done(page: str) -> list[str]:
    """The steps of the guide that are done."""
    return re.findall(r'<li class="done">.*?<strong>([^<]+)', page)


async def test_a_channel_is_refused_connected_fails_and_is_disconnected(owner: httpx.AsyncClient, peer: Peer) -> None:
    form, page = {"token": await read_token(owner), **WHATSAPP}, "/live/channels/MSGAPP_CLOUD"
    bad = await owner.post(page, data=form | {"phone_number": "0812"})
    assert bad.status_code == 400
    assert 'id="phone_number-problem">With the country&#39;s code, such as +6281234567890.' in bad.text
    odd = await owner.post(page, data=form | {"phone_number_id": "abc def"})
    assert "this value does not fit “Phone number ID”. Check it and try again" in odd.text
    assert list_done(bad.text) == ["2. The app and the number", "3. The token"], "what they yield was entered"
    half = await owner.post(page, data={name: value for name, value in form.items() if name != "access_token"})
    assert list_done(half.text) == ["2. The app and the number"]
    peer.answers = [(401, {"error": {"message": f"bad token {WHATSAPP['access_token']}", "code": 190}})]
    refused = await owner.post(page, data=form)
    assert refused.status_code == 409
    assert list_done(refused.text) == [], "the channel does not say what is wrong"
    assert 'value="+622150001234"' in refused.text
    peer.answers = [(200, {"id": "1122"})]
    created = await owner.post(page, data=form)
    hook = re.search(r'id="hook">http[^<]*/hooks/channels/(hook_[^<]+)<', created.text)
    word = re.search(r'id="made-verify_token">([^<]+)<', created.text)
    assert hook is not None
    assert word is not None
    assert "In the app open Use cases &gt; Customize" in created.text, "where they go"
    shown = (await owner.get(page)).text
    assert "works" in shown
    assert hook[1] not in shown
    assert word[1] not in shown
    peer.answers = [(401, {"error": {"message": "expired", "code": 190}})]
    assert (await owner.post(f"{page}/test", data=form)).status_code == 303
    assert "The connection does not work" in (await owner.get(page)).text
    failing = (await owner.get("/live/channels")).text
    assert "fails" in failing
    peer.answers = [(200, {"id": "1122"})]
    kept = {name: value for name, value in form.items() if name not in {"access_token", "app_secret"}}
    assert (await owner.post(page, data=kept)).status_code == 303, "nothing new to copy"
    assert "Saved" in (await owner.get(page)).text
    assert peer.requests[-1].headers["authorization"] == "Bearer planted-access-token"
    assert (await owner.post(f"{page}/disconnect", data=form)).status_code == 303
    assert (await owner.post(f"{page}/test", data=form)).status_code == 409
    audit = (await owner.get("/live/audit")).text
    assert audit.count("Channel connected") == 2
    assert audit.count("Channel disconnected") == 1
    for seen in (bad.text, refused.text, created.text, shown, failing, audit):
        assert not any(secret in seen for secret in SECRETS)


async def test_callbacks_that_were_set_aside_are_shown_and_processed_again(
    owner: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    form = {"token": await read_token(owner)}
    mail = {"smtp_host": "mail.shop.example", "address": "halo@shop.example", "unchecked": "1"}
    assert (await owner.post("/live/channels/MAIL", data=form | mail)).status_code == 200
    async with database.connection() as db:
        connection_id = await db.fetchval(
            "SELECT id FROM channel_connections WHERE company_id = $1 AND source = 'MAIL'", company.live
        )
        for body in (b"From: ayu@example.com\r\n\r\nHalo", b"From: budi@example.com\r\n\r\nHalo"):
            await db.execute(SET_ASIDE, company.live, connection_id, body)
        first = await db.fetchval("SELECT min(id) FROM channel_callbacks WHERE company_id = $1", company.live)
    page = "/live/channels/MAIL"
    assert "2 callbacks set aside" in (await owner.get("/live/channels")).text
    assert (await owner.get(page)).text.count("It took &lt;too&gt; long.") == 2
    english = (await owner.get(page)).text
    assert "Process all again" in english
    assert (await owner.post(f"{page}/retry", data=form | {"callback": "x"})).status_code == 404
    assert (await owner.post(f"{page}/retry", data=form | {"callback": str(first)})).status_code == 303
    assert "1 callbacks set aside" in (await owner.get("/live/channels")).text
    assert (await owner.post(f"{page}/retry", data=form | {"callback": "all"})).status_code == 303
    assert "set aside" not in (await owner.get(page)).text
    assert "Callbacks processed again" in (await owner.get("/live/audit")).text


async def test_a_channels_page_shows_what_it_reported(
    installation: Installation, database: Database, company: Environments
) -> None:
    key = await make_key(database, company.test)
    async with connect_messaging(installation, key.raw) as client:
        error = {"code": 131000, "message": "Oops <b>"}
        await simulate_inbound(client, source="MSGAPP_CLOUD", **{"from": "+628123456789"}, error=error)
        await simulate_inbound(client, source="MSGAPP_CLOUD", **{"from": "+628123456789"}, preference="stop")

        async def look() -> bool | None:
            return (await client.get("/channel-events")).json()["meta"]["total"] == 2 or None

        await eventually(look)
    async with open_browser(installation, await make_person(database, company)) as browser:
        page = (await browser.get("/test/channels/MSGAPP_CLOUD")).text
        assert "Oops &lt;b&gt;" in page
        assert "marketing_messages" in page
        assert "+628123456789" in page
        assert "marketing_messages" not in (await browser.get("/test/channels/MAIL")).text


async def test_the_web_chat_is_connected_with_its_snippet(owner: httpx.AsyncClient) -> None:
    look = {"title": "Halo", "hours": "Senin–Sabtu 9–17", "agent": "Tim Melati", "greeting": "Ada yang bisa dibantu?"}
    created = await owner.post("/live/channels/WIDGET", data={"token": await read_token(owner), **look})
    assert "&lt;script" in created.text
    assert 'id="made-secret"' in created.text
    key = re.search(r"data-key=&#34;([^&]+)&#34;", created.text)
    assert key is not None
    shown = await owner.get("http://probe/widget/v1/look", headers={"x-widget-key": key[1]})
    assert {name: shown.json()["data"][name] for name in look} == look, "visitors see what the form says"
    page = (await owner.get("/live/channels/WIDGET")).text
    for text in look.values():
        assert f'value="{text}"' in page
        assert f">{text}</text>" in page, "also in the preview"
    assert "<dt>Asked before the chat</dt>" not in page
    assert "Create a new key for your pages" in page
    assert "allback" not in page.partition('id="guide"')[0]
    assert 'name="unchecked"' not in page
    await owner.post("/live/channels/WIDGET", data={"token": await read_token(owner), **look, "form": "contact"})
    page = (await owner.get("/live/channels/WIDGET")).text
    assert "<dt>Asked before the chat</dt><dd>name, and email or phone</dd>" in page


async def test_the_web_chats_fields_say_how_to_write_them(owner: httpx.AsyncClient) -> None:
    page = "/live/channels/WIDGET"
    form = {"token": await read_token(owner), "form": ""}
    wrong = {"title": "x" * 61, "color": "teal", "origins": "https://toko.example/path", "secret": "short"}
    told = {
        "title": "At most 60 characters.",
        "color": "A colour such as #0b6b5d.",
        "origins": "Addresses without a path, such as https://shop.example,",
        "secret": "At least 16 characters.",
    }
    shown = (await owner.get(page)).text
    assert 'name="title" value="" aria-describedby="title-hint" maxlength="60"' in shown
    refused = await owner.post(page, data=form | wrong)
    assert refused.status_code == 400
    for name, hint in told.items():
        assert f'id="{name}-hint">{hint}' in shown
        assert f'id="{name}-problem">{hint}' in refused.text, "all of them at once"
        assert f'id="{name}-hint">{hint}' not in refused.text
    assert (await owner.post(page, data=form)).status_code == 200, "with a secret to copy"
    assert (await owner.post(page, data=form | {"color": "#b3261e"})).status_code == 303
    assert "Saved" in (await owner.get(page)).text


async def test_a_carrier_is_refused_connected_tested_and_disconnected(owner: httpx.AsyncClient, peer: Peer) -> None:
    page = "/live/carriers/aggregator_carrier"
    form = {"token": await read_token(owner), "adapter": "kiriminaja", "api_key": "planted-api-key"}
    missing = await owner.post(page, data=form | {"api_key": ""})
    assert missing.status_code == 400
    assert 'id="api_key-problem"' in missing.text
    peer.answers = [(401, {"status": False, "text": "planted-api-key is unknown"})]
    refused = await owner.post(page, data=form)
    assert refused.status_code == 400
    assert (await owner.post(f"{page}/test", data=form)).status_code == 409
    peer.answers = [(200, {"status": True, "text": "ok", "datas": []})]
    created = await owner.post(page, data=form)
    assert "/hooks/carriers/" in created.text
    peer.answers = [(401, {"status": False, "text": "gone"})]
    assert (await owner.post(f"{page}/test", data=form)).status_code == 303
    shown = (await owner.get(page)).text
    assert "fails" in shown
    assert "/hooks/carriers/" not in shown
    assert (await owner.post(f"{page}/disconnect", data=form)).status_code == 303
    assert "not connected" in (await owner.get(page)).text
    audit = (await owner.get("/live/audit")).text
    assert (audit.count("Carrier connected"), audit.count("Carrier disconnected")) == (1, 1)
    for seen in (missing.text, refused.text, created.text, shown, audit):
        assert not any(secret in seen for secret in SECRETS)


async def test_simulators_stand_there_in_a_test_environment_and_cannot_be_taken_away(
    installation: Installation, database: Database, company: Environments
) -> None:
    async with open_browser(installation, await make_person(database, company)) as client:
        form = {"token": await read_token(client), **WHATSAPP, "api_key": "planted-api-key"}
        for page in ("/test/channels/MSGAPP_CLOUD", "/test/carriers/aggregator_carrier"):
            assert (await client.post(f"{page}/test", data=form)).status_code == 303
            assert "works" in (await client.get(page)).text
            assert (await client.post(page, data=form)).status_code in {400, 409}
            assert (await client.post(f"{page}/disconnect", data=form)).status_code in {400, 409}
        assert "/hooks/channels/" in (await client.get("/test/channels/MSGAPP_CLOUD")).text
        for page in ("/live/channels/NOTHING", "/live/carriers/custom"):
            assert (await client.get(page)).status_code == 404


async def test_a_test_message_says_what_became_of_it(
    installation: Installation, database: Database, company: Environments
) -> None:
    async with open_browser(installation, await make_person(database, company)) as owner:
        page, token = "/test/channels/MSGAPP_CLOUD", await read_token(owner)
        sent = await owner.post(f"{page}/message", data={"token": token, "to": "+628123456789", "message": "Halo"})
        assert sent.status_code == 303

        async def look() -> bool | None:
            shown = (await owner.get(sent.headers["location"].removeprefix("/console"))).text
            return "The message to +628123456789 was" in shown or None

        assert await eventually(look)
        bad = await owner.post(f"{page}/message", data={"token": token, "to": "nobody", "message": "Halo"})
        assert (bad.status_code, 'id="to-problem"' in bad.text) == (400, True)
        closed = await owner.post(f"{page}/message", data={"token": token, "to": "+12015550122", "message": "Halo"})
        assert closed.status_code == 409
        assert "The reply window has closed" in closed.text
