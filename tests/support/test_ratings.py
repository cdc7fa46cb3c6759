"""Ratings: asked after a resolution, given once, by the page or over the API."""

import asyncio
import re
from typing import Any

import httpx
import pytest

from sapa.db.pool import Database
from tests.conftest import TLS, Installation
from tests.factories import Environments
from tests.http.wire import eventually
from tests.messaging.conversation_steps import simulate_inbound
from tests.support.test_filing import put
from tests.support.ticket_steps import NUMBER, Desk

Json = dict[str, Any]

RECEIVED = "SELECT count(*) FROM events WHERE company_id = $1 AND kind = 'rating.received'"
PATH = re.compile(r"/rate/[\w-]+")


async def resolve_rated_ticket(desk: Desk) -> tuple[Json, str]:
    """A ticket whose customer was asked, and the path of the page."""
    await put(desk, "/support/settings", askRating=True)
    sari = await desk.create_agent()
    ticket = await desk.receive()
    await desk.reply(ticket, sari)
    await desk.act(ticket, "resolve", agentId=sari)

    async def look() -> str | None:
        for sent in await desk.get("/sandbox/outbox"):
            if found := PATH.search(str(sent)):
                return found[0]
        return None

    return ticket, await eventually(look)


@pytest.mark.smoke
async def test_a_customer_rates_once(
    desk: Desk, installation: Installation, database: Database, company: Environments
) -> None:
    ticket, path = await resolve_rated_ticket(desk)
    asked = (await desk.get("/ratings", ticketId=ticket["id"]))[0]
    assert (asked["status"], asked["score"], asked["cycle"]) == ("asked", None, 1)
    async with httpx.AsyncClient(base_url=installation.address, verify=TLS, timeout=120) as browser:
        page = await browser.get(path, headers={"accept-language": "en"})
        assert (page.status_code, "How did" in page.text) == (200, True)
        assert "Choose a score" in (await browser.post(path, data={"score": "6"}, params={"lang": "en"})).text
        answers = [browser.post(path, data={"score": str(score), "comment": "Cepat <b>"}) for score in (4, 4, 4, 4)]
        assert {answer.status_code for answer in await asyncio.gather(*answers)} == {200}
        again = await browser.post(path, data={"score": "1"}, params={"lang": "en"})
        assert "4 of 5" in again.text
        another = path[:-1] + ("y" if path.endswith("x") else "x")
        assert (await browser.get(another)).status_code == 404
        assert (await browser.get("/rate/x")).status_code == 404
    rated = await desk.get(f"/ratings/{asked['id']}")
    assert (rated["status"], rated["score"], rated["comment"]) == ("rated", 4, "Cepat <b>")
    assert (await desk.look(ticket))["rating"] == 4
    found = [await desk.get("/tickets", rating=score) for score in (4, 5)]
    assert [[each["id"] for each in page] for page in found] == [[ticket["id"]], []]
    assert (await put(desk, f"/ratings/{asked['id']}", 409, score=5))["code"] == "ALREADY_RATED"
    assert [each["id"] for each in await desk.get("/ratings", score=4)] == [asked["id"]]
    async with database.connection() as db:
        assert await db.fetchval(RECEIVED, company.test) == 1


async def test_a_program_records_a_rating(desk: Desk) -> None:
    ticket, _ = await resolve_rated_ticket(desk)
    asked = (await desk.get("/ratings", status="asked"))[0]
    for wrong in ({"score": 0}, {"score": 6}, {"score": 3, "comment": "\0"}, {}):
        assert (await desk.client.put(f"/ratings/{asked['id']}", json=wrong)).status_code == 400
    rated = await put(desk, f"/ratings/{asked['id']}", score=2)
    assert (rated["score"], rated["comment"], rated["ticketId"]) == (2, None, ticket["id"])


async def test_nobody_is_asked_without_the_setting_or_an_owner(desk: Desk) -> None:
    sari = await desk.create_agent()
    first = await desk.receive()
    await desk.reply(first, sari)
    await desk.act(first, "resolve")
    await put(desk, "/support/settings", askRating=True)
    second = await desk.receive(sender="+628111111119")
    await desk.act(second, "resolve")
    assert await desk.get("/ratings") == []


async def test_a_score_chosen_in_the_chat_rates_and_reopens_nothing(desk: Desk) -> None:
    ticket, path = await resolve_rated_ticket(desk)
    token = path.partition("-")[2]
    for score in (5, 1):  # the first counts
        button = {"id": f"rating:{token}:{score}", "title": str(score)}
        await simulate_inbound(desk.client, source="MSGAPP_CLOUD", button=button, **{"from": NUMBER})

    async def look() -> Json | None:
        seen = await desk.look(ticket)
        return seen if len(seen["messages"]) == 4 else None

    seen = await eventually(look)
    assert (seen["status"], seen["rating"], seen["cycle"]) == ("resolved", 5, 1)
    assert (await desk.client.get("/tickets")).json()["meta"]["total"] == 1
