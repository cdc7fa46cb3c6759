"""A callback that fails three times is set aside; its connection goes on, and people can start it again."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from sapa.access.actions import get_company
from sapa.context import AppContext
from sapa.db.pool import Database, open_database
from sapa.domains import HOOKS
from sapa.http.hooks import answer_hook
from sapa.messaging.channels.interface import Source
from sapa.messaging.connections import actions as connections
from sapa.messaging.inbound import queries, set_aside
from sapa.messaging.inbound.jobs import MAX_BUSY_TRIES, MAX_TRIES, CallbackProcessor
from sapa.messaging.inbound.parsers import Parsers
from sapa.messaging.inbound.queries import CallbackLane
from sapa.settings import read_settings
from sapa.startup import build_context
from sapa.values.company import Company
from sapa.values.hook_calls import HookCall
from tests.conftest import Installation
from tests.db.scratch import Scratch, connect, migrated_database
from tests.factories import make_company

ACCOUNT = {"smtp_host": "mail.shop.example", "address": "halo@shop.example"}
CALLBACKS = "SELECT id, status, tries, error FROM channel_callbacks WHERE company_id = $1 ORDER BY id"
HURRY = "UPDATE channel_callbacks SET due_at = now() WHERE company_id = $1"
PARK = "UPDATE channel_callbacks SET due_at = now() + interval '1 hour' WHERE company_id = $1"
BODIES = "SELECT body FROM messages WHERE company_id = $1 ORDER BY id"
TRIES = "UPDATE channel_callbacks SET tries = $2 WHERE company_id = $1"
BEGIN_AND_DIE = """
    UPDATE channel_lanes
       SET holder = 'a dead worker', leased_until = now() - interval '1 second',
           claimed = ARRAY(SELECT id FROM channel_callbacks ORDER BY id LIMIT 2)"""
CLAIMED = "SELECT claimed FROM channel_lanes WHERE company_id = $1"
TAKE_OVER = "UPDATE channel_lanes SET holder = 'another worker', leased_until = now() + interval '1 minute'"
POISON = b"From: mallory@example.net\r\nContent-Type: text/html\r\n\r\n" + b"<b>" * 100_000


class MailHook:
    """The hook of a mail account, in a database without a worker."""

    def __init__(self, context: AppContext, company: Company, address: str, connection_id: str) -> None:
        self.context = context
        self.company = company
        self.lane = CallbackLane(company.id, connection_id)
        self._path = "/hooks/" + address.partition("/hooks/")[2]

    async def post(self, body: bytes) -> None:
        call = HookCall("POST", self._path, {}, {}, body, "127.0.0.1")
        assert (await answer_hook(self.context, HOOKS, call)).status == 200

    async def post_text(self, number: int) -> None:
        await self.post(f"From: ayu@example.com\r\nMessage-ID: <{number}@example.com>\r\n\r\n{number}".encode())

    async def list_callbacks(self) -> list[Any]:
        return await self._fetch(CALLBACKS)

    async def list_bodies(self) -> list[str]:
        return [row["body"] for row in await self._fetch(BODIES)]

    async def execute(self, statement: str, *parameters: object) -> None:
        async with self.context.database.connection() as db:
            await db.execute(statement, *parameters)

    async def _fetch(self, statement: str) -> list[Any]:
        async with self.context.database.connection() as db:
            return await db.fetch(statement, self.company.id)


@pytest.fixture
async def scratch(installation: Installation) -> AsyncIterator[Scratch]:
    async with migrated_database(installation.server) as created:
        yield created


@pytest.fixture
async def database(scratch: Scratch) -> AsyncIterator[Database]:
    async with open_database(scratch.app_url, size=4) as opened:
        yield opened


@pytest.fixture
async def hook(installation: Installation, database: Database) -> AsyncIterator[MailHook]:
    settings = read_settings({"SAPA_SECRET_KEY": installation.server.secret_key})
    context = build_context(settings, database)
    environments = await make_company(database)
    async with database.transaction() as tx:
        company = await get_company(tx, environments.live)
        draft = await connections.prepare(context, tx, company, Source.MAIL, ACCOUNT)
        made = await connections.connect(context, tx, company, draft)
    yield MailHook(context, company, made.hook_url or "", made.connection.id)
    await context.close()


@pytest.fixture
async def processor(hook: MailHook) -> AsyncIterator[CallbackProcessor]:
    """Its processes may compute for a tenth of a second: enough for mail, not enough for POISON."""
    created = CallbackProcessor(hook.context, Parsers(cpu_seconds=0.1))
    yield created
    await created.close()


async def advance_all(processor: CallbackProcessor, hook: MailHook) -> None:
    while await processor.advance(hook.lane):
        pass


async def test_a_callback_that_fails_three_times_is_set_aside_and_its_lane_goes_on(
    hook: MailHook, processor: CallbackProcessor
) -> None:
    await hook.post(POISON)
    for tries in range(1, MAX_TRIES + 1):
        await hook.execute(HURRY, hook.company.id)
        assert await processor.advance(hook.lane)
        await hook.execute(PARK, hook.company.id)
        await hook.post_text(tries)
        await advance_all(processor, hook)
        poison = (await hook.list_callbacks())[0]
        assert (poison["tries"], "CPU" in poison["error"]) == (tries, True)
        assert await hook.list_bodies() == [str(number) for number in range(1, tries + 1)]
    assert [row["status"] for row in await hook.list_callbacks()] == ["failed", *["done"] * MAX_TRIES]
    await advance_all(processor, hook)
    assert (await hook.list_callbacks())[0]["tries"] == MAX_TRIES


@pytest.mark.long
async def test_a_callback_that_was_set_aside_can_be_started_again(hook: MailHook, processor: CallbackProcessor) -> None:
    await hook.post(POISON)
    for _ in range(MAX_TRIES):
        await hook.execute(HURRY, hook.company.id)
        assert await processor.advance(hook.lane)
    async with hook.context.database.transaction() as tx:
        [failed] = await set_aside.list_latest(tx, hook.company, hook.lane.connection_id)
        assert await set_aside.count(tx, hook.company) == {hook.lane.connection_id: 1}
        assert (failed.size, failed.tries) == (len(POISON), MAX_TRIES)
        assert await set_aside.retry(tx, hook.company, hook.lane.connection_id, failed.id) == 1
    patient = CallbackProcessor(hook.context)
    await advance_all(patient, hook)
    await patient.close()
    [row] = await hook.list_callbacks()
    assert (row["status"], row["error"]) == ("done", None)


async def test_a_message_that_cannot_be_stored_is_set_aside_after_three_tries(
    scratch: Scratch, hook: MailHook, processor: CallbackProcessor
) -> None:
    async with connect(scratch.owner_url) as owner:
        await owner.execute("ALTER TABLE messages ADD CONSTRAINT no_first CHECK (body <> '1')")
    await hook.post_text(1)
    await hook.post_text(2)
    for tries in range(1, MAX_TRIES + 1):
        await hook.execute(HURRY, hook.company.id)
        assert await processor.advance(hook.lane)
        row = (await hook.list_callbacks())[0]
        assert (row["tries"], row["status"]) == (tries, "failed" if tries == MAX_TRIES else "waiting")
        assert "no_first" in row["error"]
    await advance_all(processor, hook)
    assert await hook.list_bodies() == ["2"]


async def test_a_try_counts_before_the_work(hook: MailHook, processor: CallbackProcessor) -> None:
    """A worker that dies on the way leaves its try behind, so that a callback that kills workers is found."""
    await hook.post_text(1)
    await hook.execute(TRIES, hook.company.id, MAX_BUSY_TRIES)
    await hook.post_text(2)
    await advance_all(processor, hook)
    [killer, other] = await hook.list_callbacks()
    assert (killer["status"], "never finished" in killer["error"]) == ("failed", True)
    assert other["status"] == "done"
    assert await hook.list_bodies() == ["2"]


async def test_a_lane_that_another_worker_holds_is_left_alone(hook: MailHook, processor: CallbackProcessor) -> None:
    await hook.post_text(1)
    await hook.execute(TAKE_OVER)
    assert not await processor.advance(hook.lane)
    assert (await hook.list_callbacks())[0]["tries"] == 0
    async with hook.context.database.connection() as db:
        assert await queries.list_lanes(db, processor.holder, 10) == []
        assert await queries.list_lanes(db, "another worker", 10) == [hook.lane]
    await hook.execute("UPDATE channel_lanes SET leased_until = now() - interval '1 second'")
    await advance_all(processor, hook)
    assert await hook.list_bodies() == ["1"]


async def test_what_a_dead_worker_had_begun_has_had_a_try(hook: MailHook, processor: CallbackProcessor) -> None:
    for number in (1, 2, 3):
        await hook.post_text(number)
    await hook.execute(BEGIN_AND_DIE)
    await advance_all(processor, hook)
    assert [(row["status"], row["tries"]) for row in await hook.list_callbacks()] == [
        ("done", 2), ("done", 2), ("done", 1)
    ]  # fmt: skip
    assert await hook.list_bodies() == ["1", "2", "3"]
    async with hook.context.database.connection() as db:
        assert await db.fetchval(CLAIMED, hook.company.id) == []
