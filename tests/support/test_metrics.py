"""The worked examples over HTTP, with the test environment's clock moved."""

from tests.http.wire import eventually
from tests.messaging.send_steps import BUTTONS, make_template
from tests.support.ticket_steps import Desk, Json

HOUR = 3600


async def test_a_human_s_day(desk: Desk) -> None:
    """Two messages, an answer after five minutes and another one, a question answered in two, resolved at half past."""
    sari = await desk.create_agent()
    await desk.receive("Halo")
    await desk.pass_time(30)
    ticket = await desk.receive("Masih ada?")
    await desk.pass_time(270)
    first = await desk.reply(ticket, sari)
    await desk.act(ticket, "notes", 201, agentId=sari, body="Pelanggan VIP")
    await desk.reply(ticket, sari, "Warna apa?")
    await desk.pass_time(280)
    again = await desk.receive("Merah")
    await desk.pass_time(120)
    await desk.reply(ticket, sari, "Ada.")
    await desk.pass_time(1100)
    await desk.act(ticket, "resolve", agentId=sari)
    found = await desk.measured(sari)
    desk.check(found["first_response"], 300)
    desk.check(found["response"], 300, 120)
    desk.check(found["resolution"], 1800)
    assert [sample["seconds"] for sample in found["handled"]] == [0, 0, 0, 0]
    assert again["id"] == ticket["id"]
    opening, *_ = ticket["messages"]
    assert found["first_response"][0]["startedAt"] == opening["sentAt"]
    assert found["first_response"][0]["messageId"] == first["messageId2"]
    assert {sample["ticketId"] for sample in found["handled"]} == {ticket["id"]}
    assert await desk.list_timeline(ticket["customerId"]) == [
        "ticket_opened", "ticket_assigned", "ticket_answered", "customer_wrote", "ticket_answered", "ticket_resolved",
    ]  # fmt: skip


async def test_an_ai_agent_hands_over(desk: Desk) -> None:
    sari, bot = await desk.create_agent(), await desk.create_agent("Robo", "ai")
    ticket = await desk.receive()
    await desk.pass_time(120)
    answered = await desk.reply(ticket, bot)
    assert answered["featureSource"] == "AI_AGENT"
    await desk.receive("Saya mau bicara dengan orang")
    await desk.pass_time(600)
    await desk.reply(ticket, bot, "Saya sambungkan.", handover=True)
    queued = await desk.look(ticket)
    assert (queued["status"], queued["agentId"], queued["aiPaused"]) == ("open", None, True)
    assert queued["waitingSince"] is not None
    for verb, who in (("handover", {"fromAgentId": bot}), ("resolve", {"agentId": bot})):
        assert (await desk.act(ticket, verb, 409, **who))["code"] == "TAKEN_OVER"
    await desk.pass_time(300)
    await desk.reply(ticket, sari)
    await desk.pass_time(900)
    await desk.act(ticket, "resolve", agentId=sari)
    robot, human = await desk.measured(bot), await desk.measured(sari)
    desk.check(robot["first_response"] + robot["response"], 120, 120)
    desk.check(human["first_response"] + human["response"] + human["resolution"], 300, 300, 1200)
    assert robot["resolution"] == []
    assert len(robot["handled"]) == 2


async def test_a_reopened_ticket_is_measured_from_its_reopening(desk: Desk) -> None:
    """Four days later here, where the company reopens for five."""
    await desk.client.put("/support/settings", json={"reopenWindowHours": 120})
    sari = await desk.create_agent()
    ticket = await desk.receive()
    await desk.reply(ticket, sari)
    await desk.act(ticket, "resolve")
    await desk.pass_time(96 * HOUR)
    again = await desk.receive("Satu lagi")
    assert (again["id"], again["cycle"], again["status"], again["agentId"]) == (ticket["id"], 2, "assigned", sari)
    await desk.pass_time(600)
    await desk.reply(ticket, sari)
    await desk.act(ticket, "resolve")
    found = await desk.measured(sari)
    desk.check(found["first_response"], 0, 600)
    desk.check(found["resolution"], 0, 600)
    assert [sample["cycle"] for sample in found["resolution"]] == [1, 2]
    await desk.pass_time(121 * HOUR)
    assert (await desk.receive("Halo lagi"))["id"] != ticket["id"]


async def test_a_conversation_that_an_agent_starts_is_measured_from_the_customer_s_first_message(desk: Desk) -> None:
    sari = await desk.create_agent()
    await desk.post("/sla-policies", 201, name="Semua", firstResponseMinutes=30, inBusinessHours=False)
    earlier = await desk.receive()
    await desk.act(earlier, "resolve")
    sent = await desk.post("/tickets", agentId=sari, customerId=earlier["customerId"], body="Pesanan Kakak siap.")
    await desk.pass_time(HOUR)
    ticket = await desk.receive("Kirim ke mana?")
    assert (ticket["id"], ticket["sla"]["firstRespondedAt"]) == (sent["ticketId"], None)
    await desk.pass_time(31 * 60)

    async def look() -> bool:
        seen = await desk.look(ticket)
        return bool(seen["sla"]["breached"] == ["firstResponse"])

    await eventually(look)
    await desk.reply(ticket, sari, "Ke rumah.")
    found = await desk.measured(sari)
    desk.check(found["first_response"], 31 * 60)
    desk.check(found["response"], 31 * 60)


async def test_a_failed_message_is_no_answer(desk: Desk) -> None:
    """Refused at once, or reported as failed later: the customer still waits, and the next answer is the first."""
    sari = await desk.create_agent()
    ticket = await desk.receive(sender="+12015550110")
    refused = await desk.reply(ticket, sari, status=502)
    assert refused["code"] == "SEND_FAILED"
    assert (await desk.look(ticket))["waitingSince"] == ticket["waitingSince"]
    assert not any((await desk.measured(sari)).values())
    late = await desk.receive(sender="+12015550111")
    failing = await desk.reply(late, sari)

    async def is_void() -> bool | None:
        return True if (await desk.look(late))["waitingSince"] else None

    await eventually(is_void)
    assert (await desk.get(f"/messages/{failing['messageId2']}"))["status"] == "failed"
    assert not any((await desk.measured(sari)).values())
    assert (await desk.look(late))["agentId"] == sari


async def test_sends_of_the_api_count_only_for_an_agent(desk: Desk) -> None:
    sari = await desk.create_agent()
    ticket = await desk.receive()
    to = {"to": ticket["clientNumber"], "sources": "MSGAPP_CLOUD", "message": "Halo"}
    nobody = await desk.post("/messages/send", **to)
    assert (nobody["ticketId"], nobody["agentId"]) == (ticket["id"], None)
    assert (await desk.look(ticket))["waitingSince"] is not None
    refused = await desk.post("/messages/send", 400, **to, agentId=999_999_999)
    assert refused["code"] == "VALIDATION_ERROR"
    counted = await desk.post("/messages/send", **to, agentId=sari)
    assert (counted["ticketId"], counted["agentId"]) == (ticket["id"], sari)
    seen = await desk.look(ticket)
    assert (seen["waitingSince"], seen["agentId"], len(seen["messages"])) == (None, sari, 3)
    assert len((await desk.measured(sari))["first_response"]) == 1
    locked = await desk.post("/messages/send", 409, **to, ignoreActiveTicket=True)
    assert locked["code"] == "ACTIVE_TICKET"
    await desk.act(ticket, "assign", agentId=None)
    await desk.post("/messages/send", **to, ignoreActiveTicket=True)


async def test_each_kind_of_send_answers_for_its_agent(desk: Desk) -> None:
    sari = await desk.create_agent()
    await make_template(desk.client)
    contents: dict[str, Json] = {
        "send": {"message": "Halo"},
        "send-template": {"template_name": "order_update", "params": ["Ayu", "INV-1"]},
        "send-media": {"mediaUrl": "https://shop.example/kopi.jpg"},
        "send-interactive": {"interactive": BUTTONS},
    }
    for kind, content in contents.items():
        ticket = await desk.receive(kind)
        to = {"to": ticket["clientNumber"], "sources": "MSGAPP_CLOUD", "agentId": sari}
        message = await desk.post(f"/messages/{kind}", **to, **content)
        assert (message["ticketId"], message["agentId"]) == (ticket["id"], sari), kind
        assert (await desk.look(ticket))["waitingSince"] is None, kind
    assert len((await desk.measured(sari))["response"]) == len(contents)
