"""A new secret key: everything is sealed anew while the product runs, and the old key can go."""

import asyncio
import base64
import os
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from structlog.testing import capture_logs

from sapa.access import actions as access
from sapa.context import AppContext
from sapa.db.pool import Database, open_database
from sapa.domains import ROUTES, SEALED_TABLES, build_jobs, build_process_context
from sapa.messaging.channels.interface import Source
from sapa.messaging.connections import actions as channels
from sapa.messaging.connections.environment import get_environment
from sapa.messaging.sending import queries as sending
from sapa.sandbox.accounts import build_secret, find_company_id
from sapa.settings import WebhookSettings, read_settings
from sapa.shipping.connections import actions as carriers
from sapa.values.company import Company
from sapa.values.sealing import Vault
from sapa.webhooks.endpoints import actions as webhooks
from sapa.webhooks.endpoints.fields import open_headers, open_secrets
from sapa.webhooks.types import WebhookEndpointIn
from sapa.work import rotation
from sapa.work.types import Rotation
from tests.cli.command import sapa
from tests.conftest import Installation
from tests.db.scratch import Scratch, migrated_database
from tests.factories import make_company, make_key
from tests.http.probe import open_app
from tests.messaging.channels.accounts import ACCOUNTS, SECRETS

OLD, NEW, LOST = (base64.b64encode(os.urandom(32)).decode() for _ in range(3))
BOTH = f"{NEW},{OLD}"
PUBLIC = WebhookSettings(allow_insecure=False, allowed_networks=())
PATIENCE = 120
DEFERRED = "01900000-0000-7000-8000-000000000000"
SOURCE = Path(rotation.__file__).parents[1]
SEALING = {
    "messaging/connections/actions.py": "channel_connections",
    "messaging/connections/jobs.py": "channel_connections",
    "messaging/history/actions.py": "api_requests",
    "messaging/media/links.py": "links that are not stored",
    "messaging/sending/deferrals.py": "deferred_messages",
    "shipping/connections/actions.py": "carrier_connections",
    "webhooks/endpoints/fields.py": "webhook_endpoints",
}
"""Every file that seals, and where the result is stored."""


@pytest.fixture
async def scratch(installation: Installation) -> AsyncIterator[Scratch]:
    async with migrated_database(installation.server) as scratch:
        yield scratch


class Shop:
    """A company that has stored something of every kind that is sealed."""

    def __init__(self, installation: Installation, scratch: Scratch, database: Database, live: Company) -> None:
        self._installation = installation
        self._url = scratch.app_url
        self.database = database
        self.live = live
        self.key = ""

    def build_context(self, keys: str) -> AppContext:
        return build_process_context(read_settings({"SAPA_SECRET_KEY": keys}), self.database)

    @asynccontextmanager
    async def open_api(self, keys: str) -> AsyncIterator[httpx.AsyncClient]:
        variables = {"SAPA_DATABASE_URL": self._url, "SAPA_SECRET_KEY": keys}
        async with open_app(self._installation, ROUTES, **variables) as client:
            client.base_url = httpx.URL("http://probe/messaging/v1")
            client.headers["x-api-key"] = self.key
            yield client

    async def fill(self, keys: str) -> None:
        context = self.build_context(keys)
        vault, company_id = context.vault, self.live.id
        self.key = (await make_key(self.database, company_id)).raw
        async with self.database.transaction() as tx:
            body = WebhookEndpointIn(url="https://hooks.example.com/x", headers={"Authorization": "planted-header"})
            for _ in range(3):
                made = await webhooks.create(tx, vault, PUBLIC, company_id, body)
            await webhooks.rotate(tx, vault, company_id, made.endpoint.id)
            fields = {**ACCOUNTS[Source.MAIL], "password": SECRETS["password"]}
            draft = await channels.prepare(context, tx, self.live, Source.MAIL, fields)
            await channels.connect(context, tx, self.live, draft)
            sealed = vault.seal(b"planted-code", company_id, DEFERRED)
            await sending.defer(tx, company_id, DEFERRED, "con", sealed, True, datetime.now(UTC), datetime.now(UTC))
        credentials = {"api_key": "planted-api-key"}
        await carriers.connect(context, self.live, "aggregator_carrier", "kiriminaja", credentials, verify=False)
        await self.send(keys, 7)

    async def send(self, keys: str, count: int) -> None:
        """Refused calls are recorded, too."""
        async with self.open_api(keys) as api:
            for number in range(count):
                assert (await api.post("/messages/send", json={"planted": number})).status_code == 400

    async def read_everything(self, keys: str) -> list[Any]:
        """All secrets in plain text, with these keys only."""
        context = self.build_context(keys)
        async with self.database.connection() as db:
            endpoints = await webhooks.list_stored(db, self.live.id)
            secrets = [(open_headers(context.vault, one), open_secrets(context.vault, one)) for one in endpoints]
            mail = await get_environment(self.live).accounts.find_by_source(context, db, self.live, Source.MAIL)
            carrier = await carriers.get_carrier(context, db, self.live, "aggregator_carrier")
            deferred = await db.fetchval("SELECT outgoing FROM deferred_messages WHERE message_id = $1", DEFERRED)
        assert mail is not None
        async with self.open_api(keys) as api:
            records = (await api.get("/messages/requests?limit=100")).json()["data"]
        message = context.vault.open(deferred, self.live.id, DEFERRED)
        return [secrets, mail.connection.credentials, carrier.connection.credentials, records, message]

    async def start(self, keys: str) -> None:
        async with self.database.transaction() as tx:
            await rotation.start(tx, Vault(keys))

    async def find(self) -> Rotation:
        async with self.database.connection() as db:
            found = await rotation.find(db)
        assert found is not None
        return found

    async def reseal(self, keys: str, batches: int = 1_000) -> None:
        for _ in range(batches):
            if not await rotation.reseal_batch(self.database, SEALED_TABLES, Vault(keys)):
                return


@pytest.fixture
async def shop(installation: Installation, scratch: Scratch) -> AsyncIterator[Shop]:
    async with open_database(scratch.app_url) as database:
        for _ in range(2):
            await make_company(database)
        owner = await make_company(database)
        async with database.connection() as db:
            live = await access.get_company(db, owner.live)
        shop = Shop(installation, scratch, database, live)
        await shop.fill(OLD)
        yield shop


async def seal_as_before(shop: Shop) -> None:
    """Seals an endpoint's secret as versions did that had one key."""
    async with shop.database.transaction() as tx:
        stored, *_ = await webhooks.list_stored(tx, shop.live.id)
        nonce, secret = os.urandom(12), open_secrets(Vault(OLD), stored)[0].encode()
        sealed = nonce + AESGCM(base64.b64decode(OLD)).encrypt(nonce, secret, f"{shop.live.id}/{stored.id}".encode())
        await tx.execute("UPDATE webhook_endpoints SET secret = $2 WHERE id = $1", stored.id, sealed)


async def test_everything_is_sealed_anew_in_steps_while_others_write(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rotation, "BATCH", 2)
    await seal_as_before(shop)
    before = await shop.read_everything(OLD)
    assert await shop.read_everything(BOTH) == before
    await shop.start(BOTH)
    for _ in range(4):
        await shop.reseal(BOTH, batches=6)
        await shop.send(BOTH, 1)
        await shop.start(BOTH)  # goes on, does not begin again
    assert await shop.read_everything(BOTH) != before, "records were added meanwhile"
    await shop.reseal(BOTH)
    done = await shop.find()
    assert done.finished_at is not None
    assert (done.resealed, done.unreadable) == (3 + 3 + 1 + 1 + 1 + 1 + 7, 0)
    after = await shop.read_everything(NEW)
    assert after == await shop.read_everything(BOTH)
    assert (after[:3], after[3][4:], after[4]) == (before[:3], before[3], b"planted-code")
    await shop.start(NEW)
    await shop.reseal(NEW)
    again = await shop.find()
    assert (again.resealed, again.unreadable, again.finished_at is None) == (0, 0, False)


async def test_a_value_that_no_key_opens_is_counted_and_left(shop: Shop) -> None:
    async with shop.database.transaction() as tx:
        stored, *_ = await webhooks.list_stored(tx, shop.live.id)
        lost = Vault(LOST).seal(b"x", shop.live.id, stored.id)
        await tx.execute("UPDATE webhook_endpoints SET secret = $2 WHERE id = $1", stored.id, lost)
    await shop.start(BOTH)
    await shop.reseal(BOTH)
    done = await shop.find()
    assert (done.resealed, done.unreadable, done.finished_at is None) == (16, 1, False)
    async with shop.database.connection() as db:
        assert (await webhooks.get_stored(db, shop.live.id, stored.id)).secret == lost


async def test_a_worker_with_another_first_key_does_nothing(shop: Shop) -> None:
    before = await shop.read_everything(OLD)
    await shop.start(BOTH)
    (job,) = [job for job in build_jobs(read_settings({"SAPA_SECRET_KEY": OLD})) if job.name == "reseal secrets"]
    with capture_logs() as logs:
        await job.run(shop.database)
    assert "another" in logs[0]["event"]
    assert await shop.read_everything(OLD) == before
    (job,) = [job for job in build_jobs(read_settings({"SAPA_SECRET_KEY": BOTH})) if job.name == "reseal secrets"]
    await job.run(shop.database)
    assert await shop.read_everything(NEW) == before


async def test_the_command_does_it_and_shows_how_far_it_is(
    shop: Shop, installation: Installation, scratch: Scratch
) -> None:
    def run(*words: str, keys: str = BOTH) -> dict[str, Any]:
        variables = {"SAPA_DATABASE_URL": scratch.app_url, "SAPA_SECRET_KEY": keys}
        found: dict[str, Any] = sapa(installation.data, "secrets", *words, "--json", **variables).json()
        return found

    assert (await asyncio.to_thread(run, "status"))["status"] == "none"
    started = await asyncio.to_thread(run, "rotate")
    assert (started["status"], started["keyId"], started["resealed"]) == ("running", Vault(NEW).key_id, 0)
    done = await asyncio.to_thread(run, "rotate", "--wait")
    assert (done["status"], done["resealed"], done["unreadable"]) == ("finished", 17, 0)
    assert done == await asyncio.to_thread(run, "status", keys=NEW)
    await shop.read_everything(NEW)


@pytest.mark.long
def test_the_worker_of_a_running_installation_does_it(installation: Installation) -> None:
    sapa(installation.data, "secrets", "rotate", "--json").json()
    deadline = time.monotonic() + PATIENCE
    while (found := sapa(installation.data, "secrets", "status", "--json").json())["status"] != "finished":
        assert time.monotonic() < deadline, found
        time.sleep(0.5)
    assert found["unreadable"] == 0


def test_simulators_accept_what_each_key_gave_out(installation: Installation, shop: Shop) -> None:
    old, both, new = (shop.build_context(keys) for keys in (OLD, BOTH, NEW))
    before, after = build_secret(old, 7, "hook"), build_secret(both, 7, "hook")
    assert after == build_secret(new, 7, "hook") != before
    assert [find_company_id(both, secret, "hook") for secret in (before, after)] == [7, 7]
    assert find_company_id(new, before, "hook") is None


def test_every_sealed_value_is_in_a_table_of_the_rotation() -> None:
    found = {
        str(path.relative_to(SOURCE)) for path in SOURCE.rglob("*.py") if re.search(r"vault\.seal\(", path.read_text())
    }
    assert found == SEALING.keys()
    assert {table.name for table in SEALED_TABLES} | {"links that are not stored"} == set(SEALING.values())
