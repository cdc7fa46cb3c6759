"""What agents do with conversations, without scripts: labels, snooze, macros, merging, views, drafts and new ones."""

import re
from collections.abc import AsyncIterator
from html import unescape
from typing import Any

import httpx
import pytest

from sapa.db.pool import Database
from sapa.http import idempotency
from sapa.http.endpoints import Base
from sapa.http.responses import HttpResponse
from tests.conftest import TLS, Installation, connect
from tests.console.people import make_person, open_browser, read_token
from tests.console.seats import Seat, list_shown, read
from tests.factories import Environments, make_customer, make_key, make_order
from tests.messaging.send_steps import make_template
from tests.messaging.shop_site import Browser as Visitor
from tests.messaging.shop_site import build_chat
from tests.support.ticket_steps import NUMBER, Desk

OTHER = "+628123456702"


@pytest.fixture
async def api(
    installation: Installation, database: Database, company: Environments
) -> AsyncIterator[httpx.AsyncClient]:
    async with connect(installation, (await make_key(database, company.test)).raw) as client:
        yield client


async def test_labels_priority_team_and_snooze(desk: Desk, seat: Seat) -> None:
    label = await desk.post("/labels", 201, name="Retur", color="#864c00")
    team = await desk.post("/teams", 201, name="Gudang")
    first, second = await desk.receive(), await desk.receive(sender=OTHER)
    path = first["id"]
    await seat.post(f"{path}/update", labels=["", label["id"]])
    await seat.post(f"{path}/update", priority="urgent")
    await seat.post(f"{path}/update", teamId=team["id"])
    page = await seat.open(f"/{path}", view="unassigned", labelId=label["id"])
    assert list_shown(page) == [path]
    assert [words for words in ("Labels: Retur", "Priority: Urgent", "Team: Gudang") if words not in read(page)] == []
    assert 'fill="#864c00"' in page
    choices = re.findall(r'name="snooze" value="([^"]+)"', page)
    snoozed = await seat.post(f"{path}/update?view=unassigned", snooze=choices[0])
    assert second["id"] in snoozed.headers["location"], "the next one opens"
    assert list_shown(await seat.open(view="snoozed")) == [path]
    assert list_shown(await seat.open(view="unassigned")) == [second["id"]]
    await seat.post(f"{path}/update", snooze="")
    await seat.post(f"{path}/update", 400, snooze="own", until="")
    late = await seat.post(f"{path}/update", snooze="own", until="2026-01-01T09:00", status=400)
    assert 'id="until-problem">choose a time in the future' in late.text
    assert re.search(r'id="pop-snooze" open>.*name="until" required value="2026-01-01T09:00"', late.text, re.DOTALL)
    await seat.post(f"{path}/update", labels="")
    seen = await desk.look(first)
    assert (seen["labelIds"], seen["snoozedUntil"], seen["teamId"]) == ([], None, team["id"])


async def test_several_are_changed_at_once_and_filters_get_a_name(desk: Desk, seat: Seat) -> None:
    tickets = [await desk.receive(sender=sender) for sender in (NUMBER, OTHER)]
    ids = [ticket["id"] for ticket in tickets]
    changed = await seat.post("bulk?view=unassigned", ids=ids, change="priority:high")
    assert changed.headers["location"].endswith("/inbox?view=unassigned")
    assert ">2 conversations changed<" in (await seat.browser.get("/test/inbox")).text
    await seat.post("bulk", ids=[*ids, "tkt_" + "0" * 26], change="assign:me")
    notice = (await seat.browser.get("/test/inbox")).text
    assert "2 conversations changed, 1 refused" in notice
    await seat.post("bulk", 400, ids=ids, change="")
    assert list_shown(await seat.open(view="mine", priority="high")) == ids
    saved = await seat.browser.post(
        "/test/inbox/views?view=mine&priority=high", data={"token": await read_token(seat.browser), "name": "Penting"}
    )
    view = saved.headers["location"].partition("saved=")[2]
    page = await seat.open(saved=view)
    assert list_shown(page) == ids
    assert "Penting" in page
    chosen = {"priority": "", "name": "Penting"}
    taken = await seat.post("views?view=mine&priority=high", 409, **chosen)
    assert re.search(r'<details class="pop wide" id="queue-filters" open>', taken.text), "where it was refused"
    assert 'name="name" maxlength="100" required value="Penting"' in taken.text
    every = await seat.browser.post(
        "/test/inbox/views?view=all&priority=high", data={"token": await read_token(seat.browser), "name": "Semua"}
    )
    await seat.post("bulk", ids=ids[:1], change="resolve")
    for answer in (saved, every):
        kept = answer.headers["location"].partition("saved=")[2]
        assert list_shown(await seat.open(saved=kept)) == ids[1:], "as the queue that was saved"
    assert "Views" in read(await seat.open(saved="view_01jc9y3q5me8w92v7x4t6r0n1k")), "deleted by somebody else"
    await seat.post("bulk", ids=ids, change="resolve")
    assert list_shown(await seat.open(view="mine")) == []


async def test_a_macro_acts_and_its_text_becomes_the_draft(desk: Desk, seat: Seat) -> None:
    actions = {"priority": "high"}
    macro = await desk.post("/macros", 201, name="Minta foto", actions=actions, reply="Halo, saya {agen}. Fotonya?")
    reply = await desk.post("/saved-replies", 201, shortcut="resi", text="Ditangani {agen}.")
    ticket = await desk.receive()
    path = f"/{ticket['id']}"
    await seat.post(f"{ticket['id']}/macro", macro=macro["id"])
    page = await seat.open(path)
    assert "\nHalo, saya Sari. Fotonya?</textarea>" in page
    assert (await desk.look(ticket))["priority"] == "high"
    assert "\nDitangani Sari.</textarea>" in await seat.open(path, reply=reply["id"])
    await seat.post(f"{ticket['id']}/draft", 204, body="Sebentar <ya>")
    assert "\nSebentar &lt;ya&gt;</textarea>" in await seat.open(path)
    await seat.post(f"{ticket['id']}/macro", macro=macro["id"])
    assert "\nSebentar &lt;ya&gt;\nHalo, saya Sari. Fotonya?</textarea>" in await seat.open(path)
    empty = await desk.post("/macros", 201, name="Resi", reply="Resinya {resi}, pesanan {pesanan}.")
    await seat.post(f"{ticket['id']}/macro", macro=empty["id"])
    assert "The reply waits in the box: fill in {resi}, {pesanan}" in await seat.open(path)
    await seat.post(f"{ticket['id']}/replies", body="Halo, fotonya?")
    assert 'maxlength="65536"' in (page := await seat.open(path))
    assert "Sebentar" not in page, "what was sent is no draft any more"


async def test_a_second_answer_asks_first(
    installation: Installation, database: Database, company: Environments, desk: Desk, seat: Seat
) -> None:
    ticket = await desk.receive()
    seen = str((await desk.look(ticket))["sequence"])
    async with open_browser(installation, await make_person(database, company)) as browser:
        other = Seat(browser)
        await other.post("agent", name="Budi")
        await other.post(f"{ticket['id']}/draft", 204, body="Ma")
        assert "Budi is replying Leave it to Budi" in read(await seat.open(f"/{ticket['id']}"))
        [owner] = [one["id"] for one in await desk.get("/agents") if one["name"] == "Budi"]
        left = await seat.post(f"{ticket['id']}/assign", agentId=str(owner), next="1")
        assert left.headers["location"].endswith("/inbox"), "nobody else waits"
        assert (await desk.look(ticket))["agentId"] == owner
        await other.post(f"{ticket['id']}/replies", body="Masih.", seen=seen)
    asked = await seat.post(f"{ticket['id']}/replies", 409, body="Masih ada.", seen=seen)
    assert read(asked.text).count("Budi replied while you were writing.") == 1
    assert "\nMasih ada.</textarea>" in asked.text
    again = re.findall(r'name="seen" value="(\d+)"', asked.text)[0]
    await seat.post(f"{ticket['id']}/replies?view=all", body="Masih ada.", seen=again, resolve="1")
    twice = await seat.post(f"{ticket['id']}/replies", 409, body="Masih ada.", seen=again)
    assert "You've already sent this. Send anyway?" in read(twice.text)
    seen_again = await desk.look(ticket)
    assert [message["body"] for message in seen_again["messages"]] == ["Masih ada?", "Masih.", "Masih ada."]
    assert seen_again["status"] == "resolved"


async def test_a_reply_that_went_out_is_not_offered_again_when_resolving_fails(
    database: Database, company: Environments, desk: Desk, seat: Seat
) -> None:
    ticket = await desk.receive()
    once = "0" * 32
    target = f"POST {Base.MESSAGING}/tickets/{ticket['id']}/resolve"
    used = idempotency.build_claim(company.test, f"console-{once}-resolve", target, b"another body")
    async with database.transaction() as tx:
        await idempotency.acquire(tx, used)
        await idempotency.settle(tx, used, HttpResponse(200, b"", {}))
    refused = await seat.post(f"{ticket['id']}/replies", 409, body="Sudah dikirim.", resolve="1", once=once)
    assert 'data-sent="0"' in refused.text
    assert "Sudah dikirim.</textarea>" not in refused.text
    seen = await desk.look(ticket)
    assert (seen["status"], seen["messages"][-1]["body"]) == ("assigned", "Sudah dikirim.")


async def test_a_visitor_becomes_a_customer_and_their_conversations_one(
    desk: Desk, seat: Seat, api: httpx.AsyncClient
) -> None:
    ayu = await make_customer(api, firstName="Ayunda", phoneNumber=NUMBER)
    known = await desk.receive("Dari WhatsApp")
    stranger = await desk.receive("Dari Instagram", "17841400123", "PHOTO_SOCIAL")
    page = await seat.open(f"/{stranger['id']}", find="ayunda", pane="customer")
    assert f'value="{ayu["id"]}"' in page
    await seat.post(f"{stranger['id']}/customer", customer=ayu["id"])
    page = await seat.open(f"/{stranger['id']}", view="all")
    assert re.findall(r'<span class="name">([^<]+)', page) == ["Ayunda"] * 2, "one person has one name"
    assert "<h2>Ayunda</h2>" in page
    merge = f'name="ticket" value="{known["id"]}"><button class="plain" data-sure="([^"]+)"'
    [asked] = re.findall(merge, await seat.open(f"/{stranger['id']}", pane="customer"))
    assert asked.endswith("This cannot be undone.")
    await seat.post(f"{known['id']}/replies", body="Besok ya", later="own", sendAt="2027-01-01T09:00")
    [asked] = re.findall(merge, await seat.open(f"/{stranger['id']}", pane="customer"))
    assert asked.endswith("A reply that waits there to be sent moves, too, and goes out over Instagram.")
    await seat.post(f"{stranger['id']}/merge", ticket=known["id"])
    assert "Dari WhatsApp" in await seat.open(f"/{stranger['id']}")
    assert (await desk.look(known))["resolvedReason"] == "merged"
    await seat.post(f"{known['id']}/reopen")
    assert "Merged with another conversation" in read(await seat.open(f"/{known['id']}"))
    other = await make_customer(api, firstName="Budi", phoneNumber=OTHER)
    page = await seat.open(f"/{stranger['id']}", find="budi", pane="customer")
    assert f'name="customer" value="{other["id"]}"' in page
    await seat.post(f"{stranger['id']}/customer", customer=other["id"])
    assert "<h2>Budi</h2>" in await seat.open(f"/{stranger['id']}"), "linked to the wrong one at first"


async def test_a_conversation_starts_from_a_customer_and_from_an_order(
    desk: Desk, seat: Seat, api: httpx.AsyncClient
) -> None:
    ayu = await make_customer(api, firstName="Ayunda", email="ayunda@example.com", phoneNumber=None)
    order = await make_order(api, customerId=ayu["id"])
    assert f"customerId={ayu['id']}" in await seat.open("/new", find="ayunda")
    page = await seat.open("/new", orderId=order["id"])
    assert "To Ayunda" in page
    started = await seat.post("new", orderId=order["id"], source="MAIL", body="Pesanan Anda siap.")
    ticket: dict[str, Any] = await desk.get(f"/tickets/{started.headers['location'].rpartition('/')[2]}")
    assert ticket["messages"][0]["body"] == "Pesanan Anda siap."
    place = f"/console/test/inbox/new?customerId={ayu['id']}"
    seat.browser.headers["referer"] = str(seat.browser.base_url).removesuffix("/console/") + place
    empty = await seat.post("new", 400, customerId=ayu["id"], body="")
    assert "Ayunda" in empty.text
    assert f'data-here="{place}"' in empty.text, "a reload has the customer"


async def test_a_placeholder_is_sent_only_if_the_agent_says_so(desk: Desk, seat: Seat, api: httpx.AsyncClient) -> None:
    """Without a script: the reply that was to resolve, or to go out later, still does."""
    ayu = await make_customer(api, firstName="Ayunda", email="ayunda@example.com", phoneNumber=None)
    first: dict[str, Any] = {"customerId": ayu["id"], "source": "MAIL", "body": "Halo {nama}"}
    refused = await seat.post("new", 400, **first)
    assert "Replace {nama} before you send, or take it out" in read(refused.text)
    assert await desk.get("/tickets") == []
    place = re.search(r'formaction="/console/test/inbox/([^"]+)">Send as it is', refused.text)
    assert place is not None
    started = await seat.post(place[1], **first)
    ticket = await desk.get(f"/tickets/{started.headers['location'].rpartition('/')[2]}")
    assert ticket["messages"][0]["body"] == "Halo {nama}"
    reply: dict[str, Any] = {"body": "Pesanan {pesanan}", "resolve": "1"}
    refused = await seat.post(f"{ticket['id']}/replies", 400, **reply)
    place = re.search(r'formaction="/console/test/inbox/([^"]+)" name="resolve" value="1">Send as it is', refused.text)
    assert place is not None
    assert (await desk.look(ticket))["status"] == "assigned"
    await seat.post(unescape(place[1]), **reply)
    seen = await desk.look(ticket)
    assert (seen["status"], seen["messages"][-1]["body"]) == ("resolved", "Pesanan {pesanan}")
    later = await seat.post(f"{ticket['id']}/replies", 400, body="{resi}", later="own", sendAt="2030-01-01T09:00")
    assert 'name="later" value="own">Send as it is' in later.text
    assert "Send as it is" not in (await seat.post(f"{ticket['id']}/replies", 400, body="")).text


async def test_every_contact_is_found(desk: Desk, seat: Seat, api: httpx.AsyncClient) -> None:
    """Those without a customer record, and a name that many customers have."""
    for number in range(12):
        await make_customer(api, firstName="Ayu", lastName=f"Ke{number}", phoneNumber=f"+62812000{number:04}")
    first = await desk.receive("Halo", "+628120000000")
    channels = (("PHOTO_SOCIAL", "17841400123"), ("SOCIAL_NETWORK", "24001"), ("SHORT_VIDEO", "tt-77001"))
    others = {}
    for source, sender in channels:
        others[source] = (await desk.receive(f"Dari {source.lower()}", sender, source))["id"]
    assert list_shown(await seat.open(search="Ayu")) == [first["id"]]
    for source, sender in channels:
        assert list_shown(await seat.open(search=sender)) == [others[source]], source
        assert list_shown(await seat.open(search=f"dari {source.lower()}")) == [others[source]], source


async def test_a_reply_is_sent_later_or_not_at_all(desk: Desk, seat: Seat) -> None:
    """A text that is not sent any more becomes the draft."""
    ticket = await desk.receive()
    path = ticket["id"]
    choices = re.findall(r'name="later" value="(2[^"]+)"', await seat.open(f"/{path}"))
    await seat.post(f"{path}/replies", 400, body="Besok ya", later="own", sendAt="")
    await seat.post(f"{path}/replies", 400, body="Besok ya", later="own", sendAt="2020-01-01T09:00")
    await seat.post(f"{path}/replies", body="Besok ya", later=choices[0])
    page = await seat.open(f"/{path}")
    assert "sends this" in read(page)
    [scheduled] = re.findall(r'name="reply" value="(sched_\w+)"', page)
    await seat.post(f"{path}/unschedule", reply=scheduled)
    page = await seat.open(f"/{path}")
    assert "sends this" not in read(page)
    assert "\nBesok ya</textarea>" in page
    assert (await desk.look(ticket))["messages"][-1]["direction"] == "in"


async def test_a_missing_value_of_a_template_is_named_at_its_field(
    api: httpx.AsyncClient, seat: Seat, desk: Desk
) -> None:
    ayu, template = await make_customer(api), await make_template(desk.client)
    asked = {"template": template["id"], "shownTemplate": template["id"], "param": ["Ayu", "  "]}
    ticket = await desk.receive("Halo")
    starting = await seat.post("new", 400, customerId=ayu["id"], **asked)
    sending = await seat.post(f"{ticket['id']}/template", 400, **asked)
    for refused in (starting, sending):
        assert re.findall(r'name="param"[^>]*value="([^"]*)" aria-invalid', refused.text) == ["  "]
        assert 'id="params[1]-problem">Enter' in refused.text
    typed = {"customerId": ayu["id"], "source": "MSGAPP_CLOUD", "body": "Halo,\nsudah siap"}
    chosen = await seat.post("new", 200, **typed, template=template["id"])
    assert re.findall(r'name="param"[^>]*value="([^"]*)"', chosen.text) == ["", ""]
    back = await seat.post("new", 200, **typed, template="", shown=template["id"], choose="1")
    for page in (chosen, back):
        assert "sudah siap" in page.text
        assert '<option value="MSGAPP_CLOUD" selected>' in page.text
    assert [one["direction"] for one in (await desk.look(ticket))["messages"]] == ["in"], "nothing was sent"


async def test_what_a_visitor_says_is_shown_and_filled_in_for_a_new_customer(
    installation: Installation, database: Database, company: Environments, desk: Desk, seat: Seat
) -> None:
    async with httpx.AsyncClient(base_url=installation.address, verify=TLS) as client:
        visitor = Visitor(client, build_chat(installation, database, company.test))
        await visitor.join()
        statement = {"name": "Ayu Lestari", "contact": "0812 3456 7890"}
        assert (await visitor.call("POST", "statement", statement)).status_code == 204
        await visitor.send("Halo, kopi Gayo masih ada?")
    [ticket] = await desk.get("/tickets")
    page = await seat.open(f"/{ticket['id']}")
    assert "Says: Ayu Lestari, +62 812-3456-7890 From the form before the chat. Not verified." in read(page)
    filled = dict(re.findall(r'<input[^>]* name="(\w+)"[^>]* value="([^"]+)"', page))
    fields = {name: filled.get(name, "") for name in ("firstName", "lastName", "phoneNumber", "email")}
    assert fields == {"firstName": "Ayu", "lastName": "Lestari", "phoneNumber": "+6281234567890", "email": ""}
    assert (await desk.look(ticket))["customerId"] is None
    await seat.post(f"{ticket['id']}/save", **fields)
    assert (await desk.look(ticket))["customerId"] is not None
    assert "Says: Ayu Lestari" in read(await seat.open(f"/{ticket['id']}"))
