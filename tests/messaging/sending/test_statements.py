"""How many statements a send takes, counted between the application and PostgreSQL."""

import asyncio
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import msgspec
import pytest

from sapa.access.actions import get_company, read_clock
from sapa.customers import actions as customers
from sapa.customers.types import CustomerIn
from sapa.db.pool import Database
from sapa.events import DELIVERY_ID
from sapa.messaging.channels.interface import Identity, Source, StatusReport
from sapa.messaging.contacts import actions as contacts
from sapa.messaging.messages import actions as messages
from sapa.messaging.messages.types import MESSAGE_ID
from sapa.messaging.sending.pacing import reserve_slot
from sapa.messaging.sending.queries import ACCEPT
from tests.conftest import Installation
from tests.db.query_plans import get_range, scans
from tests.db.statement_proxy import StatementProxy, open_statement_proxy
from tests.factories import Environments
from tests.http.wire import eventually
from tests.messaging.provider import NUMBER_SENT, Live, open_live
from tests.messaging.send_steps import NUMBER, build_message

OTHER = "+628123450000"
MAX_STATEMENTS = 9
"""With the rate limit, the pace, BEGIN and COMMIT."""
TURN_SECONDS = 0.05
"""After which a number may send again at once. For a message that has to wait, the conversation is read once more."""


@pytest.fixture
async def proxy(installation: Installation) -> AsyncIterator[StatementProxy]:
    async with open_statement_proxy(installation.server.app_url) as opened:
        yield opened


@pytest.fixture
async def live(
    installation: Installation, database: Database, company: Environments, proxy: StatementProxy
) -> AsyncIterator[Live]:
    """A company to which a customer wrote a moment ago."""
    async with open_live(installation, database, company.live, database_url=proxy.url) as opened:
        opened.peer.answers = [(200, NUMBER_SENT)]
        async with database.transaction() as tx:
            owner, now = await get_company(tx, company.live), (await read_clock(tx, company.live)).now
            contact = await contacts.find_or_create(tx, owner, [Identity("phone", NUMBER)], "Ayu")
            await contacts.record_inbound(tx, owner, opened.hook.connection_id, contact.id, now, MESSAGE_ID.new())
        yield opened


async def test_a_send_to_a_known_contact_takes_few_statements(live: Live, proxy: StatementProxy) -> None:
    """The fewest of some sends: other statements of the process pass the proxy, too."""
    counted: list[list[str]] = []
    for number in range(6):
        live.peer.answers = [(200, {**NUMBER_SENT, "messages": [{"id": f"wamid.{number}"}]})]
        proxy.statements.clear()
        sent = await live.post("/messages/send", **build_message())
        counted.append(list(proxy.statements))
        assert (sent.status_code, sent.json()["data"]["status"]) == (200, "sent")
    fewest = min(counted, key=len)
    assert len(fewest) <= MAX_STATEMENTS, "\n".join(" ".join(text.split())[:110] for text in fewest)
    assert len([text for text in fewest if "INSERT INTO messages" in text or "UPDATE messages" in text]) == 2


async def test_a_contact_who_is_no_customer_takes_no_statement_more(
    live: Live, proxy: StatementProxy, database: Database, company: Environments
) -> None:
    """Whether a customer has the number is read with everything else."""
    async with database.transaction() as tx:
        owner, now = await get_company(tx, company.live), (await read_clock(tx, company.live)).now
        contact = await contacts.find_or_create_contact(tx, owner, [Identity("phone", OTHER)], "Budi")
        await contacts.record_inbound(tx, owner, live.hook.connection_id, contact.id, now, MESSAGE_ID.new())
    counted: dict[str, list[int]] = {NUMBER: [], OTHER: []}
    for number in range(6):
        for to, counts in counted.items():
            known = {"input": to, "wa_id": to.removeprefix("+")}
            live.peer.answers = [(200, {"contacts": [known], "messages": [{"id": f"wamid.{to}-{number}"}]})]
            await asyncio.sleep(TURN_SECONDS)
            proxy.statements.clear()
            sent = (await live.post("/messages/send", **build_message(to=to))).json()["data"]
            assert (sent["customerId"] is None) == (to == OTHER)
            counts.append(len(proxy.statements))
    assert min(counted[OTHER]) == min(counted[NUMBER])
    async with database.transaction() as tx:
        customer = await customers.find_or_create(tx, owner, CustomerIn(first_name="Budi", phone_number=OTHER))
    live.peer.answers = [(200, {"contacts": [known], "messages": [{"id": "wamid.known"}]})]
    sent = (await live.post("/messages/send", **build_message(to=OTHER))).json()["data"]
    assert sent["customerId"] == customer.id


async def test_a_message_that_waits_for_its_turn_is_stored_at_once_too(
    live: Live, proxy: StatementProxy, database: Database, company: Environments
) -> None:
    """With the record of its call, by one statement; before, the conversation is read a second time."""
    async with database.connection() as db:
        await reserve_slot(db, company.live, live.hook.connection_id, 3.0)
    proxy.statements.clear()
    sent = await live.post("/messages/send", **build_message())
    assert (sent.status_code, sent.json()["data"]["status"]) == (200, "sent")
    assert len([text for text in proxy.statements if "FROM message_threads" in text]) == 2
    (storing,) = [text for text in proxy.statements if "INSERT INTO messages" in text]
    assert "INSERT INTO api_requests" in storing


@pytest.mark.one_server("reads a plan of the server that has the rows")
async def test_an_outcome_reads_no_other_messages_of_the_company(database: Database, company: Environments) -> None:
    """Whatever the statistics say, each message is found by its whole key."""
    values = {name: ["x"] for name in ACCEPT.names} | {"sequence": [0], "body": [b""], "snapshot": [b""]}
    values |= {"at": [datetime.now(UTC)], "record_stored_at": [datetime.now(UTC)]}
    async with database.transaction() as tx:
        await tx.execute("SET LOCAL enable_seqscan = off")
        plan = await tx.fetchval(f"EXPLAIN (FORMAT JSON) {ACCEPT.text}", company.live, *ACCEPT.order(values))
    found = list(scans(msgspec.json.decode(plan)[0]["Plan"], "messages"))
    assert found
    for scan in found:
        assert re.search(r"\bid = ", get_range(scan)), scan


async def test_the_response_is_the_message_as_it_is_stored(live: Live) -> None:
    """It is built without reading the message back."""
    body = build_message(metadata={"order": "INV-1", "weight": 1.5})
    sent = (await live.post("/messages/send", **body)).json()["data"]
    stored = await live.get(f"/messages/{sent['messageId2']}")
    assert [(event["kind"], event["sequence"]) for event in stored.pop("events")] == [("sent", 1)]
    assert sent == stored


async def test_the_event_and_the_record_have_the_message_as_it_is_stored(
    live: Live, database: Database, company: Environments
) -> None:
    sent = (await live.post("/messages/send", **build_message())).json()["data"]
    async with database.connection() as db:
        body: bytes = await db.fetchval(
            "SELECT body FROM events WHERE company_id = $1 AND resource_id = $2", company.live, sent["messageId2"]
        )
    assert msgspec.json.decode(body) == {**sent, "previousStatus": "pending"}
    (record,) = await live.get(f"/messages/requests?responseId={sent['messageId2']}")
    assert record["response"] == {"data": sent}


async def test_every_subscribed_endpoint_gets_a_delivery_of_its_own(
    live: Live, database: Database, company: Environments
) -> None:
    async with database.transaction() as tx:
        for number, kinds in enumerate([["order.created"], [], ["message.status.updated"]]):
            await tx.execute(
                "INSERT INTO webhook_endpoints (company_id, id, url, kinds, secret) VALUES ($1, $2, $3, $4, '')",
                company.live, f"whe_{number}", "https://example.com", kinds,
            )  # fmt: skip
    await live.post("/messages/send", **build_message())
    async with database.connection() as db:
        rows = await db.fetch(
            """
            SELECT q.id, q.endpoint_id, q.event_id, e.kind, q.due_at = e.created_at AS is_due
              FROM webhook_queue q
              JOIN events e ON e.company_id = q.company_id AND e.id = q.event_id AND e.created_at = q.event_at
             WHERE q.company_id = $1
             ORDER BY q.endpoint_id""",
            company.live,
        )
    assert [(row["endpoint_id"], row["kind"], row["is_due"]) for row in rows] == [
        ("whe_1", "message.status.updated", True), ("whe_2", "message.status.updated", True),
    ]  # fmt: skip
    assert all(DELIVERY_ID.matches(row["id"]) for row in rows)
    assert len({row["id"] for row in rows}) == 2


async def test_a_report_that_is_faster_than_the_response_is_kept(
    live: Live, database: Database, company: Environments
) -> None:
    """The message is not as it was recorded any more, so the acceptance is stored step by step."""

    async def is_asked() -> bool | None:
        return bool(live.peer.requests) or None

    live.peer.opens.clear()
    sending = asyncio.create_task(live.post("/messages/send", **build_message()))
    await eventually(is_asked)
    async with database.transaction() as tx:
        owner, now = await get_company(tx, company.live), (await read_clock(tx, company.live)).now
        id: str = await tx.fetchval("SELECT id FROM messages WHERE company_id = $1", company.live)
        report = StatusReport("delivered", now, message_id="wamid.1", reference=id)
        assert await messages.apply(tx, owner, Source.MSGAPP_CLOUD, report, now)
    live.peer.opens.set()
    sent = (await sending).json()["data"]
    assert (sent["status"], sent["messageId"], sent["sequence"]) == ("delivered", "wamid.1", 1)
