"""Access to the chat from other sites, and the snippet that embeds it."""

import asyncio
from pathlib import Path

import httpx
import pytest

from sapa.db.pool import open_database
from sapa.messaging.widget.pages import read_script
from tests.cli.command import sapa
from tests.conftest import TLS, Installation, start_installation, stop_installation
from tests.factories import Environments, make_company
from tests.messaging.shop_site import Browser, Chat, build_chat


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"\xff", b'{"id": "\\ud800"}', b"[" * 5000])
@pytest.mark.parametrize("path", ["sessions", "messages", "acks"])
async def test_broken_bodies_are_a_400(page: Browser, path: str, content: bytes) -> None:
    await page.join()
    headers = {"content-type": "application/json"}
    answer = await page.call("POST", path, headers=headers, content=content)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "VALIDATION_ERROR")


async def test_an_invalid_body_names_its_field(page: Browser) -> None:
    await page.join()
    for body, field, words in (
        ({"id": "p_" + "a" * 16, "text": "x" * 4097}, "text", "must have at most 4096 characters"),
        ({"id": "p_" + "a" * 16, "words": "Halo"}, "words", "is not a known field"),
        ({"text": "Halo"}, "id", "is required"),
    ):
        error = (await page.call("POST", "messages", body)).json()["error"]
        assert error["details"][0]["field"] == field
        assert words in error["message"]


async def test_forms_are_refused_so_that_every_write_needs_a_preflight(page: Browser) -> None:
    await page.join()
    answer = await page.call("POST", "messages", headers={"content-type": "text/plain"}, content=b"{}")
    assert answer.status_code == 415


async def test_pages_of_any_site_may_call(page: Browser, client: httpx.AsyncClient) -> None:
    wanted = "authorization,content-type,last-event-id,x-widget-key"
    asked = {"origin": "https://shop.example", "access-control-request-method": "POST"}
    answer = await client.options("/widget/v1/messages", headers={**asked, "access-control-request-headers": wanted})
    allowed = answer.headers["access-control-allow-headers"]
    assert answer.status_code == 204
    assert answer.headers["access-control-allow-origin"] == "*"
    assert set(wanted.split(",")) <= set(allowed.split(", "))
    assert "access-control-allow-credentials" not in answer.headers
    joined = await page.call("POST", "sessions", {})
    assert joined.headers["access-control-allow-origin"] == "*"
    assert joined.headers["cache-control"] == "no-store"


async def test_a_wrong_method_is_a_405(page: Browser) -> None:
    answer = await page.call("PUT", "messages", {})
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST, GET")


async def test_the_script_is_small_and_cacheable(client: httpx.AsyncClient) -> None:
    answer = await client.get("/widget/v1/widget.js")
    assert answer.headers["content-type"].startswith("text/javascript")
    assert len(answer.content) <= 32 * 1024
    assert answer.content == read_script()[0]
    again = await client.get("/widget/v1/widget.js", headers={"if-none-match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


async def test_a_live_chat_is_connected_with_one_command_and_gone_with_another(
    installation: Installation, client: httpx.AsyncClient, company: Environments, chat: Chat, live: httpx.AsyncClient
) -> None:
    arguments = ["--company", str(company.live), "--source", "WIDGET", "--json"]
    site = "https://shop.example"
    created = sapa(installation.data, "channel", "connect", *arguments, "--set", f"origins={site}").json()
    key = created["snippet"].partition('data-key="')[2].partition('"')[0]
    secret = created["generated"]["secret"]
    assert secret not in sapa(installation.data, "channel", "list", "--company", str(company.live), "--json").out
    page = Browser(client, Chat(chat.server, key, secret))
    session = await page.join(id="user-1", hash=Chat(chat.server, key, secret).prove("user-1"))
    assert (await page.send("Halo")).status_code == 200
    reply = {"to": session["visitorId"], "sources": "WIDGET", "message": "Halo juga"}
    answer = await live.post("/messages/send", json=reply)
    assert (answer.status_code, answer.json()["data"]["status"]) == (200, "sent")
    assert [line["direction"] for line in (await page.join())["messages"]] == ["in", "out"]
    page.origin = "https://elsewhere.example"
    refused = await page.send("Dari situs lain")
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "ORIGIN_NOT_ALLOWED")
    page.origin = site
    sapa(installation.data, "channel", "disconnect", *arguments).json()
    assert (await page.send("Halo?")).status_code == 404


async def test_the_snippet_of_a_test_environment_can_be_asked_for(
    installation: Installation, company: Environments, chat: Chat
) -> None:
    shown = sapa(installation.data, "channel", "snippet", "--company", str(company.test), "--json").json()
    assert (shown["key"], shown["secret"]) == (chat.key, chat.secret)
    assert f'data-key="{chat.key}"' in shown["snippet"]
    refused = sapa(installation.data, "channel", "snippet", "--company", str(company.live), "--json")
    assert "shown when the channel is connected" in refused.sentence()


@pytest.mark.long
@pytest.mark.processes
async def test_open_pages_do_not_delay_a_shutdown(tmp_path: Path) -> None:
    installation = start_installation(tmp_path / "data", SAPA_PROCESSES="1")
    try:
        async with (
            open_database(installation.server.app_url) as database,
            httpx.AsyncClient(base_url=installation.address, timeout=120, verify=TLS) as client,
        ):
            page = Browser(client, build_chat(installation, database, (await make_company(database)).test))
            await page.join()
            headers = {"x-widget-key": page.key, "authorization": f"Bearer {page.token}"}
            async with client.stream("GET", "/widget/v1/events", headers=headers) as answer:
                text = answer.aiter_text()
                assert await anext(text) == ": ready\n\n"
                stopping = asyncio.create_task(asyncio.to_thread(stop_installation, installation))
                assert [part async for part in text] == []
                assert await stopping == 0
    finally:
        if installation.process.poll() is None:
            stop_installation(installation)
    assert "refused to gracefully stop" not in installation.log.read_text()
