"""`sapa listen` as a developer runs it, in a process of its own, through whatever happens to the server."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from aiohttp import web

from sapa.db.connection import DatabaseAway
from sapa.db.pool import Database, open_database
from sapa.webhooks import verify
from sapa.webhooks.listen import forwarding
from sapa.webhooks.listen.forwarding import Forwarder, ReceivedEvents
from sapa.webhooks.listen.streams import ListenedEvent
from sapa.webhooks.signing import new_secret
from sapa.webhooks.tokens import actions as tokens
from tests.cli.command import environment, sapa, sapa_process
from tests.conftest import Installation, connect, free_port, start_installation, stop_installation
from tests.factories import Environments, make_company, make_customer, make_key
from tests.faults.traffic import api_processes, postmaster
from tests.http.wire import eventually
from tests.webhooks.shop import Shop, open_shop

PATIENCE = 120
RESOURCES = 10
CHANGES = 20


@pytest.fixture
async def database(victim: Installation) -> AsyncIterator[Database]:
    async with open_database(victim.server.app_url, size=2, application="onlooker") as opened:
        yield opened


@pytest.fixture
async def company(database: Database) -> Environments:
    return await make_company(database)


@pytest.fixture
async def api(victim: Installation, database: Database, company: Environments) -> AsyncIterator[httpx.AsyncClient]:
    async with connect(victim, (await make_key(database, company.live)).raw) as client:
        yield client


@pytest.fixture
async def shop() -> AsyncIterator[Shop]:
    async with open_shop() as opened:
        yield opened


class Terminal:
    """A running `sapa listen`, and what it printed."""

    def __init__(self, process: subprocess.Popen[bytes], printed: Path) -> None:
        self.process = process
        self._printed = printed

    @property
    def text(self) -> str:
        return self._printed.read_text()

    def lines(self, kind: str | None = None) -> list[Any]:
        """What it told programs, whole lines only."""
        whole = self.text.rpartition("\n")[0].splitlines()
        reported = [msgspec.json.decode(line) for line in whole]
        return [line for line in reported if kind in {None, line["type"]}]

    async def tells(self, kind: str, count: int = 1) -> list[Any]:
        async def look() -> list[Any] | None:
            assert self.process.poll() is None, self.text
            return found if len(found := self.lines(kind)) >= count else None

        return await eventually(look, PATIENCE)

    async def shows(self, words: str) -> None:
        async def look() -> bool | None:
            assert self.process.poll() is None, self.text
            return words in self.text or None

        await eventually(look, PATIENCE)


@asynccontextmanager
async def listening(data: Path, printed: Path, *arguments: str) -> AsyncIterator[Terminal]:
    """Runs it for the length of a block; Ctrl-C ends it, and that is no failure."""
    terminal = start(data, printed, *arguments)
    try:
        yield terminal
    finally:
        terminal.process.send_signal(signal.SIGINT)
        code = await asyncio.to_thread(terminal.process.wait, PATIENCE)
        assert code == 0, terminal.text
        assert "Traceback" not in terminal.text


def start(data: Path, printed: Path, *arguments: str) -> Terminal:
    with printed.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "sapa", "listen", *arguments],
            env=environment(data, {}),
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    return Terminal(process, printed)


def at(installation: Installation, company_id: int, *more: str) -> list[str]:
    return ["--company", str(company_id), "--server", installation.address, *more]


@pytest.mark.long
async def test_every_event_is_forwarded_once_and_in_order_through_deaths_of_api_and_database(
    victim: Installation, database: Database, company: Environments, api: httpx.AsyncClient, shop: Shop, tmp_path: Path
) -> None:
    arguments = at(victim, company.live, "--forward-to", shop.url, "--json")
    async with listening(victim.data, tmp_path / "out", *arguments) as terminal:
        (ready,) = await terminal.tells("ready")
        writers = [asyncio.create_task(write(api, number)) for number in range(RESOURCES)]
        await terminal.tells("forwarded", 30)
        for process in api_processes(victim):
            process.kill()
        await terminal.tells("forwarded", 80)
        postmaster(victim).kill()
        await asyncio.gather(*writers)
        recorded = await eventually(lambda: recorded_events(database, company.live), PATIENCE)
        assert len(recorded) >= RESOURCES * CHANGES
        forwarded = await terminal.tells("forwarded", len(recorded))
        assert terminal.lines("given up") == []
    assert sorted(line["id"] for line in forwarded) == sorted(row["id"] for row in recorded)
    order = {row["id"]: row["number"] for row in recorded}
    for resource in {row["resource_id"] for row in recorded}:
        own = [order[one.event_id] for one in shop.arrivals if resource.encode() in one.body]
        assert own == sorted(own)
    for arrival in shop.arrivals:
        assert verify(arrival.headers, arrival.body, ready["secret"]) == arrival.event_id


async def write(api: httpx.AsyncClient, number: int) -> None:
    """One customer and its changes, each until it is acknowledged."""
    path = f"/customers/by-external-id/c{number}"
    for change in range(CHANGES):
        await insist(api, path, {"email": f"c{number}@example.com", "firstName": f"n{change}"})
        await asyncio.sleep(0.05)


async def insist(api: httpx.AsyncClient, path: str, body: dict[str, str]) -> None:
    async with asyncio.timeout(PATIENCE):
        while True:
            with suppress(httpx.TransportError):
                if (await api.put(path, json=body)).status_code in {200, 201}:
                    return
            await asyncio.sleep(0.1)


async def recorded_events(database: Database, company_id: int) -> list[Any] | None:
    """The onlooker's own connections may have died with the server."""
    with suppress(DatabaseAway):
        async with database.connection() as db:
            return await db.fetch("SELECT id, number, resource_id FROM events WHERE company_id = $1", company_id)
    return None


@pytest.mark.long
async def test_a_token_from_elsewhere_chosen_kinds_and_lines_for_people(
    victim: Installation, database: Database, company: Environments, api: httpx.AsyncClient, shop: Shop, tmp_path: Path
) -> None:
    async with database.transaction() as tx:
        token = (await tokens.create(tx, company.live)).token
    arguments = [
        "--server", victim.address, "--token", token, "--events", "customer.updated", "--forward-to", shop.url, "-v",
    ]  # fmt: skip
    async with listening(tmp_path / "no-database-here", tmp_path / "out", *arguments) as terminal:
        await terminal.shows("Ready")
        made = await make_customer(api)
        await api.put(f"/customers/{made['id']}", json={"firstName": "Ayu"})
        (arrival,) = await shop.gets(1)
        await terminal.shows("→ 200")
    line = next(line for line in terminal.text.splitlines() if "→" in line)
    assert "customer.updated" in line
    assert arrival.event_id in line
    assert line.endswith("ms")
    assert '"firstName":"Ayu"' in terminal.text
    assert "customer.created" not in terminal.text
    assert "whsec_" in terminal.text
    assert not (tmp_path / "no-database-here").exists()


@pytest.mark.long
async def test_without_an_address_events_are_shown(
    victim: Installation, database: Database, company: Environments, api: httpx.AsyncClient, tmp_path: Path
) -> None:
    async with listening(victim.data, tmp_path / "out", *at(victim, company.live, "--json", "-v")) as terminal:
        await terminal.tells("ready")
        made = await make_customer(api)
        (event,) = await terminal.tells("event")
        assert event["kind"] == "customer.created"
        assert made["id"] in event["body"]
        async with database.connection() as db:
            assert len(await tokens.list_tokens(db, company.live)) == 1
    async with database.connection() as db:
        assert await tokens.list_tokens(db, company.live) == [], "the token it made for itself is gone with it"


@pytest.mark.long
async def test_an_own_token_that_was_revoked_is_replaced(
    victim: Installation, database: Database, company: Environments, api: httpx.AsyncClient, tmp_path: Path
) -> None:
    async with listening(victim.data, tmp_path / "out", *at(victim, company.live, "--json")) as terminal:
        await terminal.tells("ready")
        async with database.transaction() as tx:
            (token,) = await tokens.list_tokens(tx, company.live)
            await tokens.revoke(tx, token.id)
        await terminal.tells("ready", 2)
        await make_customer(api)
        await terminal.tells("event")


@pytest.mark.long
async def test_a_forward_that_fails_is_shown_and_tried_again(
    victim: Installation, company: Environments, api: httpx.AsyncClient, shop: Shop, tmp_path: Path
) -> None:
    shop.answer = lambda _: web.Response(status=500 if len(shop.arrivals) <= 2 else 200)
    arguments = at(victim, company.live, "--forward-to", shop.url, "--json")
    async with listening(victim.data, tmp_path / "out", *arguments) as terminal:
        await terminal.tells("ready")
        await make_customer(api)
        await make_customer(api)
        forwarded = await terminal.tells("forwarded", 2)
    failed = terminal.lines("failed")
    assert [(line["status"], line["error"], line["attempt"]) for line in failed] == [
        (500, "http_5xx", 1),
        (500, "http_5xx", 2),
    ]
    assert [line["attempt"] for line in forwarded] == [3, 1]
    assert {line["id"] for line in failed} == {forwarded[0]["id"]}


@pytest.mark.long
async def test_ready_is_not_printed_before_there_is_a_stream(
    victim: Installation, company: Environments, tmp_path: Path
) -> None:
    arguments = ["--company", str(company.live), "--server", f"http://127.0.0.1:{free_port()}"]
    async with listening(victim.data, tmp_path / "out", *arguments) as terminal:
        await terminal.shows("Not connected")
        assert "Ready" not in terminal.text


class Wire:
    """Between listener and server, and it can be cut."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._open: set[asyncio.StreamWriter] = set()
        self.is_cut = False

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.is_cut:
            writer.transport.abort()
            return
        server, client = await asyncio.open_connection("127.0.0.1", self._port)
        self._open |= {writer, client}
        await asyncio.gather(self._pump(reader, client), self._pump(server, writer))

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(65_536):
                writer.write(data)
                await writer.drain()
        writer.transport.abort()

    def cut(self) -> None:
        self.is_cut = True
        for writer in self._open:
            writer.transport.abort()


@pytest.mark.long
async def test_events_during_a_broken_connection_are_received_though_none_was_received_before(
    victim: Installation, company: Environments, api: httpx.AsyncClient, tmp_path: Path
) -> None:
    await make_customer(api, firstName="long before")
    wire = Wire(int(victim.address.rpartition(":")[2]))
    async with await asyncio.start_server(wire.carry, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        arguments = ["--company", str(company.live), "--server", f"http://127.0.0.1:{port}", "--json", "-v"]
        async with listening(victim.data, tmp_path / "out", *arguments) as terminal:
            await terminal.tells("ready")
            wire.cut()
            await terminal.tells("interrupted")
            missed = await make_customer(api)
            wire.is_cut = False
            await terminal.tells("ready", 2)
            after = await make_customer(api)
            heard = await terminal.tells("event", 2)
    assert [customer["id"] in event["body"] for customer, event in zip((missed, after), heard, strict=True)] == [
        True,
        True,
    ]


def test_an_invalid_token_is_reported_in_one_sentence(victim: Installation, tmp_path: Path) -> None:
    outcome = sapa_process(tmp_path / "unused", "listen", "--server", victim.address, "--token", "dev_x")
    assert outcome.code == 1
    assert "sapa token create" in outcome.err
    assert "Traceback" not in outcome.err


@pytest.mark.parametrize(
    ("arguments", "code"),
    [([], 2), (["--token", "dev_x", "--events", "x"], 1), (["--token", "dev_x", "--forward-to", "ftp://x"], 1)],
)
def test_an_impossible_request_is_reported_at_once(tmp_path: Path, arguments: list[str], code: int) -> None:
    outcome = sapa(tmp_path / "unused", "listen", *arguments)
    assert outcome.code == code
    assert "Traceback" not in outcome.err


@pytest.mark.processes
async def test_on_a_fresh_installation_the_demo_company_s_test_environment_is_used(tmp_path: Path) -> None:
    running = await asyncio.to_thread(start_installation, tmp_path / "data", SAPA_PROCESSES="1")
    try:
        async with open_database(running.server.app_url, size=2) as database:
            async with database.connection() as db:
                test_id = await db.fetchval("SELECT company_id FROM companies WHERE environment = 'test'")
            key = (await make_key(database, test_id)).raw
            async with (
                connect(running, key) as api,
                open_shop() as shop,
                listening(
                    running.data, tmp_path / "out", "--server", running.address, "--forward-to", shop.url
                ) as terminal,
            ):
                await terminal.shows("Ready")
                made = await make_customer(api)
                (arrival,) = await shop.gets(1)
                assert made["id"].encode() in arrival.body
            other = await make_company(database)
            request = await asyncio.to_thread(sapa, running.data, "listen", "--forward-to", "http://127.0.0.1:1")
            assert request.sentence().startswith("Which company? Use --company:")
            assert f"{test_id} (Demo, test)" in request.sentence()
            assert str(other.live) in request.sentence()
    finally:
        await asyncio.to_thread(stop_installation, running)


async def test_a_forward_that_never_succeeds_is_abandoned_and_reported(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forwarding, "RETRY_PAUSES", (0, 0))
    shop.answer = lambda _: web.Response(status=500)
    forwarder = Forwarder(shop.url, new_secret())
    event = ListenedEvent("evt_1", "customer.created", "2026-01-31T09:30:00.000Z", "{}")
    try:
        tries = [(number, outcome.delivered) async for number, outcome in forwarder.forward(event)]
    finally:
        await forwarder.close()
    assert tries == [(1, False), (2, False), (3, False)]
    assert len(shop.arrivals) == 3


@pytest.mark.long
def test_received_ids_are_remembered_for_as_long_as_a_stream_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forwarding, "_MAX_IDS", 10)
    received = ReceivedEvents()
    digits = "0123456789abcdefghjkmnpqrstvwxyz"

    def id_at(seconds: int) -> str:
        number = seconds * 1000
        return "evt_" + "".join(digits[number >> shift & 31] for shift in range(45, -1, -5)) + "0" * 16

    ids = [id_at(1_700_000_000 + second) for second in range(400)]
    assert all(received.is_new(id) for id in ids)
    assert not any(received.is_new(id) for id in ids[-60:])
    assert received.is_new(ids[0]), "what is long past is forgotten"
