"""The inbox without scripts: lists, the conversation and agents' actions."""

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from sapa.console.live import MAX_STREAMS_OF_A_PERSON
from sapa.console.ticket_lines import build_lines
from sapa.db.pool import Database
from sapa.people.types import Role
from tests.conftest import TLS, Installation, connect
from tests.console.people import make_person, open_browser, read_token
from tests.console.seats import Seat, list_shown, read
from tests.factories import Environments, make_company, make_customer, make_key
from tests.http.wire import eventually
from tests.messaging.conftest import connect_messaging
from tests.messaging.conversation_steps import read_outbox, simulate_inbound
from tests.messaging.files.corpus import PDF, make_image
from tests.messaging.send_steps import make_template
from tests.support.ticket_steps import NUMBER, Desk

EVENTS = {"accept": "text/event-stream"}
_ONCE = re.compile(r'name="once" value="(\w+)"')

MANY_TICKETS = """
    INSERT INTO counter_deltas (company_id, counter, cell, delta) VALUES ($1, 'tickets', 'resolved/MAIL', 10001)"""


async def test_a_new_person_chooses_the_name_of_their_agent(
    installation: Installation, database: Database, company: Environments, desk: Desk
) -> None:
    ticket = await desk.receive()
    async with open_browser(installation, await make_person(database, company, Role.AGENT)) as browser:
        new = Seat(browser)
        assert 'value="Sari agent"' in await new.open()
        assert "Reply as" not in await new.open(f"/{ticket['id']}")
        refused = await new.post(f"{ticket['id']}/replies", 409, body="Masih.")
        assert "Choose the name that customers see" in refused.text
        response = await new.post("agent", name="Sari", ticket=ticket["id"])
        assert response.headers["location"] == f"/console/test/inbox/{ticket['id']}"
        assert "Reply as Sari" in await new.open(f"/{ticket['id']}")
        await new.post("agent", 409, name="Once more")
        away = await new.post("agent", 409, name="Sari", ticket="//evil.example")
        assert "evil" not in away.headers.get("location", "")
    (agent,) = await desk.get("/agents")
    assert (agent["name"], agent["type"]) == ("Sari", "human")
    await desk.client.put(f"/agents/{agent['id']}", json={"active": False})


async def test_tickets_are_listed_by_whose_they_are_and_counted_exactly(
    installation: Installation, database: Database, company: Environments, desk: Desk, seat: Seat
) -> None:
    async with connect(installation, (await make_key(database, company.test)).raw) as api:
        await make_customer(api, firstName="Ayu", lastName="Lestari", phoneNumber="+628123456701")
    waiting = await desk.receive("Halo <b>kak</b>", "+628123456701")
    mine, other, done = [await desk.receive(sender=f"+62812345670{n}") for n in (2, 3, 4)]
    mailed = await desk.receive(sender="ayu@toko.example", source="MAIL")
    await seat.post(f"{mine['id']}/assign", agentId="me")
    await seat.post(f"{other['id']}/assign", agentId=str(await desk.create_agent("Budi")))
    await seat.post(f"{done['id']}/resolve")
    assert await seat.count() == {"mine": "1", "unassigned": "2", "all": "4", "snoozed": "0"}
    assert list_shown(await seat.open(view="unassigned", channel="mail")) == [mailed["id"]]
    page = await seat.open(view="unassigned")
    assert list_shown(page) == [waiting["id"], mailed["id"]], "the longest wait comes first"
    assert "Halo &lt;b&gt;kak" in page
    assert "WhatsApp" in page
    assert "waiting 0 min" in read(page)
    for view, tickets in (("mine", [mine]), ("all", [waiting, mine, other, mailed]), ("resolved", [done])):
        assert list_shown(await seat.open(view=view)) == [ticket["id"] for ticket in tickets]
    assert list_shown(await seat.open()) == [mine["id"]], "an agent who has conversations starts with them"
    assert "Budi" in read(await seat.open(view="all"))
    assert list_shown(await seat.open(search="lestari")) == [waiting["id"]]
    assert "No conversations match" in await seat.open(search="somebody else")
    assert "Type at least three letters" in await seat.open(search="le")
    assert "Search results" in await seat.open(search="masih ada")
    async with database.connection() as db:
        await db.execute(MANY_TICKETS, company.test)
    assert "older ones may match, too" in await seat.open(search="masih ada"), "not in all of so many"
    found = await seat.browser.get("/test/inbox", params={"search": done["id"]})
    assert found.headers["location"] == f"/console/test/inbox/{done['id']}"


async def test_a_conversation_shows_messages_notes_and_events(desk: Desk, seat: Seat) -> None:
    await simulate_inbound(desk.client, source="MSGAPP_CLOUD", text="Masih ada?", **{"from": NUMBER})
    ticket = await desk.receive("Halo?")
    path = f"/{ticket['id']}"
    await seat.post(f"{ticket['id']}/notes", note="Pelanggan VIP")
    await desk.create_agent("Cuti", active=False)
    await desk.create_agent("Robot", type="ai")
    await seat.post(f"{ticket['id']}/notes", note="@Sari @Cuti @Robot")
    marked = await seat.open(f"/{ticket['id']}")
    assert re.findall("<mark>(.*?)</mark>", marked) == ["@Sari"], "nobody else hears of it"
    await seat.post(f"{ticket['id']}/replies", body="Masih, kak.\r\nKirim ke mana?")
    await seat.wait_for(path, "tick read")
    await seat.post(f"{ticket['id']}/handover", agentId="")
    await seat.post(f"{ticket['id']}/resolve")
    page = await seat.open(path)
    conversation = read(page[page.index('id="conversation"') :])
    places = [
        conversation.index(words)
        for words in (
            "Conversation opened", "Masih ada?", "Halo?", "Note from Sari, only your team sees this", "Pelanggan VIP",
            "Masih, kak.", "Transferred to the queue", "Resolved (by an agent)",
        )
    ]  # fmt: skip
    assert places == sorted(places)
    assert "Assigned to Sari" in conversation
    assert 'class="line note"' in page
    assert "Reopen" in page
    await seat.post(f"{ticket['id']}/reopen")
    assert "Reopened" in read(await seat.open(path))


SHOWN: dict[str, tuple[dict[str, Any], list[str]]] = {
    "order": (
        {"order": {"text": "Cepat <ya>", "items": [{"productId": "GAYO", "quantity": 2, "price": 75000}]}},
        ["Cart", "Cepat <ya>", "2 × GAYO", "Rp 75,000"],
    ),
    "flow": (
        {"flow": {"token": "t-1", "data": {"city": "Bandung", "sizes": ["<S>"], "items": "2 kopi", "get": "pagi"}}},
        ["Form answered", "t-1", "city", "Bandung", "<S>", "items", "2 kopi", "pagi"],
    ),
    "location": ({"location": {"latitude": -6.2, "longitude": 106.8, "name": "Monas"}}, ["Monas", "-6.2, 106.8"]),
    "contacts": ({"contactCards": [{"name": "Budi <b>", "phone": "+62 811"}]}, ["Budi <b>", "+62 811"]),
    "share": ({"share": {"type": "reel", "url": "https://cdn.example/r", "title": "Kopi"}}, ["Reel", "Kopi"]),
    "story": (
        {"text": "Bagus", "story": {"id": "8", "url": "https://cdn.example/s"}},
        ["Reply to your story", "Bagus"],
    ),
    "referral": (
        {"text": "Halo", "referral": {"sourceId": "12", "headline": "Kopi baru", "ctwaClid": "ARAk"}},
        ["Came from an ad", "Kopi baru", "ARAk"],
    ),
    "product": ({"text": "?", "product": {"productId": "GAYO"}}, ["Asks about the product GAYO"]),
    "forwarded": ({"text": "x", "forwarded": True}, ["Forwarded"]),
    "unknown": (
        {"unknown": {"type": "hologram", "content": {"depth": "<3>"}}},
        ["not supported yet", "hologram", "As the channel sent it", "<3>"],
    ),
}


@pytest.mark.parametrize("kind", SHOWN)
async def test_each_kind_of_message_is_readable(desk: Desk, seat: Seat, kind: str) -> None:
    content, words = SHOWN[kind]
    source, sender = ("PHOTO_SOCIAL", "17841400123") if kind in {"share", "story"} else ("MSGAPP_CLOUD", NUMBER)
    inbound = await simulate_inbound(desk.client, source=source, **{"from": sender}, **content)
    ticket = await eventually(lambda: desk.find_ticket_of(inbound["messageId"]))
    page = await seat.open(f"/{ticket['id']}")
    text = read(page)
    assert [word for word in words if word not in text] == []
    assert "<script" not in page.partition('id="conversation"')[2].partition("</ol>")[0]


async def test_edits_deletions_reactions_and_quotations_are_shown(desk: Desk, seat: Seat) -> None:
    ticket = await desk.receive("Satu kopi")
    path, (message,) = f"/{ticket['id']}", ticket["messages"]
    original, sender = {"messageId": message["messageId"]}, {"source": "MSGAPP_CLOUD", "from": NUMBER}
    await simulate_inbound(desk.client, **sender, text="Jadi?", quoted=message["messageId"])
    page = await seat.wait_for(path, "Jadi?")
    assert f'href="#line-{message["messageId2"]}"' in page
    await simulate_inbound(desk.client, **sender, reaction={**original, "emoji": "👍"})
    await seat.wait_for(path, "👍")
    await simulate_inbound(desk.client, **sender, edit={**original, "text": "Dua kopi"})
    assert "Edited" in read(await seat.wait_for(path, "Dua kopi"))
    await simulate_inbound(desk.client, **sender, revocation=original)
    page = await seat.wait_for(path, "This message was deleted.")
    assert '<p class="words">Dua kopi</p>' not in page


async def test_what_a_form_sends_twice_goes_out_once(desk: Desk, seat: Seat) -> None:
    ticket = await desk.receive()
    page = await seat.open(f"/{ticket['id']}")
    once = _ONCE.findall(page)[0]
    await asyncio.gather(*(seat.post(f"{ticket['id']}/replies", body="Masih.", once=once) for _ in range(3)))
    await asyncio.gather(*(seat.post(f"{ticket['id']}/notes", note="VIP", once=once) for _ in range(3)))
    seen = await desk.look(ticket)
    assert [message["body"] for message in seen["messages"]] == ["Masih ada?", "Masih."]
    assert [note["body"] for note in seen["notes"]] == ["VIP"]
    assert len(await read_outbox(desk.client)) == 1
    assert once not in _ONCE.findall(await seat.open(f"/{ticket['id']}"))


async def test_what_was_not_sent_stays_in_the_form_and_says_why(desk: Desk, seat: Seat) -> None:
    ticket = await desk.receive(sender="+12015550110")
    refused = await seat.post(f"{ticket['id']}/replies", 502, body="Masih <ada>, kak")
    assert "\nMasih &lt;ada&gt;, kak</textarea>" in refused.text
    assert "Not delivered: " in refused.text
    empty = await seat.post(f"{ticket['id']}/notes", 400, note="  ")
    assert "alert" in empty.text
    odd = await seat.post(f"{ticket['id']}/assign", 400, agentId="somebody")
    assert "must be an agent of this company" in odd.text


async def test_the_window_is_counted_down_and_then_a_template_goes_out(desk: Desk, seat: Seat) -> None:
    template = await make_template(desk.client)
    ticket = await desk.receive()
    page = await seat.open(f"/{ticket['id']}")
    assert re.search(r'data-until="[^>]+>23 h 5\d min<', page)
    assert 'id="template">' in page
    await desk.pass_time(25 * 3600)
    page = await seat.open(f"/{ticket['id']}", template=template["id"])
    assert "Reply window closed" in page
    assert "waiting 25 h 0 min" in read(page)
    assert 'id="template" open>' in page
    late = await seat.post(f"{ticket['id']}/replies", 409, body="Masih.")
    assert "\nMasih.</textarea>" in late.text
    fields = {"template": template["id"], "param": ["Ayu", "INV-1"], "once": _ONCE.findall(page)[0]}
    wrong = await seat.post(f"{ticket['id']}/template", 409, **{**fields, "param": ["Ayu"]})
    assert 'value="Ayu"' in wrong.text
    for _ in range(2):
        await seat.post(f"{ticket['id']}/template", **fields)
    seen = await desk.look(ticket)
    assert [message["body"] for message in seen["messages"]][1:] == ["Halo Ayu, pesanan INV-1 dikirim."]
    assert seen["waitingSince"] is None


async def test_a_file_is_a_link_away(desk: Desk, seat: Seat) -> None:
    told = await simulate_inbound(desk.client, source="MSGAPP_CLOUD", media="image", **{"from": NUMBER})
    ticket = await eventually(lambda: desk.find_ticket_of(told["messageId"]))
    (message,) = ticket["messages"]
    link = f"/{ticket['id']}/files/{message['messageId2']}?number=0"
    assert f"/inbox{link}" in await seat.open(f"/{ticket['id']}")
    await seat.browser.post("/language", data={"token": await read_token(seat.browser), "language": "id"})
    assert '<span class="said">gambar</span>' in await seat.open()

    async def fetch() -> str | None:
        response = await seat.browser.get(f"/test/inbox{link}")
        return response.headers["location"] if response.status_code == 303 else None

    address = await eventually(fetch)
    assert (await seat.browser.get(address)).status_code == 200
    other = await desk.receive("Lihat https://toko.example/kopi.", sender="+628123456702")
    assert 'href="https://toko.example/kopi" rel="noreferrer noopener" target="_blank"' in await seat.open(
        f"/{other['id']}"
    )
    strange = await seat.browser.get(f"/test/inbox/{other['id']}/files/{message['messageId2']}")
    assert strange.status_code == 404


def test_a_part_of_a_conversation_shows_what_happened_meanwhile() -> None:
    def say(second: int) -> dict[str, Any]:
        return {"timestamp": second, "messageId2": f"m{second}", "direction": "in", "ack": 2, "agentId": None}

    notes = [{"id": f"n{n}", "agentId": 1, "body": "", "createdAt": f"1970-01-01T00:00:{n}.500Z"} for n in (10, 21, 35)]
    ticket = {"messages": [say(20), say(30)], "earlier": "m20", "events": [], "notes": notes}
    assert [line.key for line in build_lines(ticket, {1: "Sari"})] == ["m20", "n21", "m30", "n35"]
    assert [line.key for line in build_lines(ticket, {}, is_latest=False)] == ["m20", "n21", "m30"]


async def test_another_companys_ticket_is_out_of_reach(
    installation: Installation, database: Database, desk: Desk, seat: Seat
) -> None:
    stranger = await make_company(database)
    async with connect_messaging(installation, (await make_key(database, stranger.test)).raw) as client:
        foreign = await Desk(client).receive("Rahasia")
    for path in ("", "/events", f"/files/{foreign['messages'][0]['messageId2']}"):
        response = await seat.browser.get(f"/test/inbox/{foreign['id']}{path}", headers=EVENTS)
        assert response.status_code == 404
    for verb in (
        "replies", "notes", "assign", "handover", "resolve", "reopen", "template", "update", "macro", "merge",
        "customer", "draft",
    ):  # fmt: skip
        await seat.post(
            f"{foreign['id']}/{verb}", 404, body="x", note="x", agentId="", priority="low", template=foreign["id"]
        )
    assert foreign["id"] not in await seat.open(search="62812")
    own = await desk.receive()
    assert (await seat.browser.get(f"/live/inbox/{own['id']}")).status_code == 404


async def test_a_stream_says_that_something_is_new_until_its_reader_signs_out(desk: Desk, seat: Seat) -> None:
    ticket = await desk.receive()
    page = await seat.open(f"/{ticket['id']}")
    seen = re.findall(r'data-seen="(\w+)"', page)[0]
    address = f"/test/inbox/{ticket['id']}/events?seen={seen}"
    async with asyncio.timeout(120), seat.browser.stream("GET", address, headers=EVENTS) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        assert "default-src 'none'" in stream.headers["content-security-policy"]
        lines = stream.aiter_lines()
        assert [await anext(lines), await anext(lines), await anext(lines)] == [": ready", "", ": still here"]
        await desk.act(ticket, "notes", 201, agentId=await desk.create_agent("Budi"), body="VIP")
        assert "event: changed" in [line async for line in _take_until(lines, "event: changed")]
        token = await read_token(seat.browser)
        async with httpx.AsyncClient(cookies=seat.browser.cookies, verify=TLS) as other:
            await other.post(f"{seat.browser.base_url}sign-out", data={"token": token})
        await desk.act(ticket, "resolve")
        rest = [line async for line in lines]
        assert "event: changed" not in rest


async def _take_until(lines: AsyncIterator[str], word: str) -> AsyncIterator[str]:
    async for line in lines:
        yield line
        if line == word:
            return


async def test_a_person_has_so_many_streams_and_no_more(seat: Seat) -> None:
    """Two processes have twice as many slots."""
    streams = []
    try:
        for _ in range(2 * MAX_STREAMS_OF_A_PERSON + 1):
            request = seat.browser.build_request("GET", "/test/inbox/events", headers=EVENTS)
            streams.append(await seat.browser.send(request, stream=True))
        refused = [response for response in streams if response.status_code == 503]
        assert refused
        assert refused[0].headers["x-frame-options"] == "DENY"
    finally:
        for response in streams:
            await response.aclose()
    plain = await seat.browser.get("/test/inbox/events")
    assert plain.headers["location"] == "/console/test/inbox"


async def reply_with_files(
    seat: Seat, ticket: dict[str, Any], text: str, files: list[tuple[str, bytes]], status: int = 303, once: str = ""
) -> httpx.Response:
    data = {"token": await read_token(seat.browser), "body": text, "once": once}
    parts = [("files", (name, content)) for name, content in files]
    response = await seat.browser.post(f"/test/inbox/{ticket['id']}/replies", data=data, files=parts)
    assert response.status_code == status, response.text
    return response


async def test_an_agent_sends_files_one_message_each_where_the_channel_needs_it(desk: Desk, seat: Seat) -> None:
    photo, paper = make_image("JPEG"), PDF
    ticket = await desk.receive()
    await reply_with_files(seat, ticket, "Ini fotonya", [("foto.jpg", photo), ("nota.pdf", paper)], once="0" * 32)
    await reply_with_files(seat, ticket, "Ini fotonya", [("foto.jpg", photo), ("nota.pdf", paper)], once="0" * 32)
    sent = [message for message in (await desk.look(ticket))["messages"] if message["direction"] == "out"]
    assert [(message["type"], message["body"]) for message in sent] == [("image", "Ini fotonya"), ("document", None)]
    assert [message["attachments"][0]["filename"] for message in sent] == ["foto.jpg", "nota.pdf"]
    page = await seat.open(f"/{ticket['id']}")
    assert 'class="thumbnail"' in page
    assert "nota.pdf" in page
    picture = await seat.browser.get(f"/test/inbox/{ticket['id']}/files/{sent[0]['messageId2']}?thumbnail=1")
    assert (picture.status_code, picture.headers["location"][:7]) == (303, "/media/")
    mailed = await desk.receive(sender="ayu@example.com", source="MAIL")
    await reply_with_files(seat, mailed, "Terlampir", [("foto.jpg", photo), ("nota.pdf", paper)])
    (mail,) = [message for message in (await desk.look(mailed))["messages"] if message["direction"] == "out"]
    assert len(mail["attachments"]) == 2


async def test_an_agent_picks_the_file_of_a_template(desk: Desk, seat: Seat) -> None:
    ticket = await desk.receive()
    template = await make_template(
        desk.client, header={"type": "image"}, examples={"header": "https://shop.example/kopi.jpg"}
    )
    page = await seat.open(f"/{ticket['id']}", template=template["id"])
    assert "File above the text" in page
    data = {"token": await read_token(seat.browser), "template": template["id"], "param": ["Ayu", "INV-1"]}
    path = f"/test/inbox/{ticket['id']}/template"
    missing = await seat.browser.post(path, data=data, files=[("files", ("", b""))])
    assert (missing.status_code, "this template needs a file" in read(missing.text)) == (400, True)
    refused = await seat.browser.post(path, data=data, files=[("files", ("nota.pdf", PDF))])
    assert (refused.status_code, "It accepts image up to 5 MB" in read(refused.text)) == (400, True)
    sent = await seat.browser.post(path, data=data, files=[("files", ("foto.jpg", make_image("JPEG")))])
    assert sent.status_code == 303, sent.text
    message = (await desk.look(ticket))["messages"][-1]
    assert (message["type"], message["attachments"][0]["filename"]) == ("template", "foto.jpg")


async def test_a_file_that_the_channel_refuses_is_explained_beside_the_form(desk: Desk, seat: Seat) -> None:
    ticket = await desk.receive()
    refused = await reply_with_files(seat, ticket, "Halo", [("virus.exe", b"MZ" + bytes(99))], 400)
    assert "It accepts image up to 5 MB" in read(refused.text)
    assert "\nHalo</textarea>" in refused.text
    empty = await reply_with_files(seat, ticket, "", [("kosong.txt", b"")], 400)
    assert "The file is empty" in read(empty.text)
