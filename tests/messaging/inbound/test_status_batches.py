"""Statuses that wait together are settled together, and one that cannot be stored does not hold up the others."""

import re
from collections.abc import AsyncIterator, Sequence

import msgspec
import pytest
from msgspec import Struct

from sapa.access.actions import get_company
from sapa.context import AppContext
from sapa.db.pool import open_database
from sapa.messaging.channels.interface import Source
from sapa.messaging.connections import actions as connections
from sapa.messaging.inbound import queries
from sapa.messaging.inbound.jobs import CallbackProcessor
from sapa.messaging.inbound.queries import CallbackLane, build_received
from sapa.messaging.messages.queries import get_message
from sapa.settings import read_settings
from sapa.startup import build_context
from sapa.values.json import encode
from tests.conftest import Installation
from tests.db.scratch import Scratch, connect, migrated_database
from tests.db.statement_proxy import StatementProxy, open_statement_proxy
from tests.factories import make_company
from tests.messaging.whatsapp_account import NUMBER_ID, OURS, SECRET, build_body

SOURCE = Source.MSGAPP_CLOUD
ACCOUNT = {
    "phone_number_id": NUMBER_ID, "waba_id": "3344", "phone_number": f"+{OURS}", "access_token": "token",
    "app_secret": SECRET,
}  # fmt: skip
PRICING = {"billable": True, "pricing_model": "PMP", "type": "regular", "category": "service"}
ERRORS = [{"code": 131026, "title": "Message undeliverable", "message": "Message undeliverable"}]
STORE_SENT = """
    INSERT INTO messages (company_id, id, direction, source, connection_id, identity_kind, identity, client_number,
                          connected_number, provider_id, type, body, feature_source, status, sequence, created_at,
                          accepted_at, sent_at)
    SELECT $1, gen_random_uuid(), 'out', 'MSGAPP_CLOUD', $2, 'phone', '+628123456789', '+628123456789',
           '+622150001234', 'wamid.' || n, 'text', n::text, 'API', 'sent', 1, now(), now(), now()
      FROM generate_series($3::int, $4::int) AS n"""
STATUSES = "SELECT body, status, sequence FROM messages WHERE company_id = $1 ORDER BY body::int"
EVENTS = """
    SELECT convert_from(body, 'UTF8')::json ->> 'messageId' AS message_id,
           convert_from(body, 'UTF8')::json ->> 'status' AS status
      FROM events
     WHERE company_id = $1
     ORDER BY number"""
CALLBACKS = "SELECT status, tries FROM channel_callbacks WHERE company_id = $1 ORDER BY id"


class Reported(Struct, frozen=True):
    """A number whose callbacks wait, in a database without a worker."""

    context: AppContext
    scratch: Scratch
    proxy: StatementProxy
    lane: CallbackLane

    async def post(self, *statuses: tuple[int, str]) -> None:
        """One callback with these statuses of messages."""
        values = [
            {"id": f"wamid.{n}", "status": status, "timestamp": "1700000000", "recipient_id": "628123456789",
             "pricing": PRICING, "errors": ERRORS if status == "failed" else []}
            for n, status in statuses
        ]  # fmt: skip
        body = build_body({"statuses": values})
        async with self.context.database.transaction() as tx:
            company_id, connection_id = self.lane.company_id, self.lane.connection_id
            await queries.insert_callbacks(tx, company_id, [build_received(connection_id, SOURCE, {}, body)])

    async def fetch(self, statement: str, *parameters: object) -> list[tuple[object, ...]]:
        async with self.context.database.connection() as db:
            return [tuple(row) for row in await db.fetch(statement, self.lane.company_id, *parameters)]


@pytest.fixture
async def reported(installation: Installation) -> AsyncIterator[Reported]:
    """Five messages were sent."""
    async with (
        migrated_database(installation.server) as scratch,
        open_statement_proxy(scratch.app_url) as proxy,
        open_database(proxy.url, size=4) as database,
    ):
        context = build_context(read_settings({"SAPA_SECRET_KEY": installation.server.secret_key}), database)
        environments = await make_company(database)
        async with database.transaction() as tx:
            company = await get_company(tx, environments.live)
            draft = await connections.prepare(context, tx, company, SOURCE, ACCOUNT)
            made = await connections.connect(context, tx, company, draft)
            await tx.execute(STORE_SENT, company.id, made.connection.id, 1, 5)
        yield Reported(context, scratch, proxy, CallbackLane(company.id, made.connection.id))
        await context.close()


@pytest.fixture
async def processor(reported: Reported) -> AsyncIterator[CallbackProcessor]:
    created = CallbackProcessor(reported.context)
    yield created
    await created.close()


def list_states(*states: tuple[str, int]) -> Sequence[tuple[str, str, int]]:
    return [(str(n), status, sequence) for n, (status, sequence) in enumerate(states, 1)]


async def test_callbacks_that_wait_together_are_settled_in_one_step(
    reported: Reported, processor: CallbackProcessor
) -> None:
    """Also two reports on one message, a report twice, and one on a message that nobody knows yet."""
    await reported.post((1, "delivered"), (2, "delivered"))
    await reported.post((2, "read"), (3, "delivered"))
    await reported.post((9, "delivered"), (3, "delivered"))
    await reported.post((4, "failed"))
    assert await processor.advance(reported.lane)
    assert not processor.has_more(reported.lane)
    assert await reported.fetch(STATUSES) == list_states(
        ("delivered", 2), ("read", 3), ("delivered", 2), ("failed", 2), ("sent", 1)
    )
    found = await reported.fetch(EVENTS)
    assert sorted(map(str, found)) == sorted(
        map(str, [("wamid.1", "delivered"), ("wamid.2", "delivered"), ("wamid.2", "read"), ("wamid.3", "delivered"),
                  ("wamid.4", "failed")])
    )  # fmt: skip
    assert found.index(("wamid.2", "delivered")) < found.index(("wamid.2", "read"))
    assert await reported.fetch(CALLBACKS) == [("done", 1), ("done", 1), ("waiting", 0), ("done", 1)]


async def test_the_events_have_the_messages_as_they_are_stored(
    reported: Reported, processor: CallbackProcessor
) -> None:
    """They are built without reading the messages back."""
    await reported.post((1, "delivered"), (2, "read"), (3, "failed"))
    assert await processor.advance(reported.lane)
    rows = await reported.fetch("SELECT convert_from(body, 'UTF8') FROM events WHERE company_id = $1")
    events = [msgspec.json.decode(str(body)) for (body,) in rows]
    async with reported.context.database.connection() as db:
        for event in events:
            stored = await get_message(db, reported.lane.company_id, event["messageId2"])
            assert event == msgspec.json.decode(encode(stored)) | {"previousStatus": "sent"}
    assert sorted(event["ack"] for event in events) == [-1, 2, 3]
    assert {event["pricing"]["category"] for event in events} == {"service"}
    assert [event["error"]["code"] for event in events if event["status"] == "failed"] == ["131026"]


async def test_many_statuses_take_each_statement_once(reported: Reported, processor: CallbackProcessor) -> None:
    await reported.fetch(STORE_SENT, reported.lane.connection_id, 6, 60)
    await reported.post(*((n, "delivered") for n in range(1, 61)))
    reported.proxy.statements.clear()
    assert await processor.advance(reported.lane)
    of_messages = [text for text in reported.proxy.statements if re.search(r"\bmessages|\bmessage_", text)]
    assert len(of_messages) == len(set(of_messages)) == 4, of_messages
    assert len(await reported.fetch("SELECT FROM message_costs WHERE company_id = $1")) == 60


async def test_one_that_cannot_be_stored_is_tried_alone(reported: Reported, processor: CallbackProcessor) -> None:
    async with connect(reported.scratch.owner_url) as owner:
        await owner.execute("ALTER TABLE messages ADD CONSTRAINT no_second CHECK (body <> '2' OR status <> 'read')")
    for n in range(1, 6):
        await reported.post((n, "read"))
    assert await processor.advance(reported.lane)
    assert await reported.fetch(CALLBACKS) == [("waiting", 1)] * 5
    while await processor.advance(reported.lane):
        pass
    assert await reported.fetch(STATUSES) == list_states(("read", 2), ("sent", 1), *[("read", 2)] * 3)
    callbacks = await reported.fetch(CALLBACKS)
    assert callbacks.pop(1)[0] != "done"
    assert callbacks == [("done", 2)] * 4
