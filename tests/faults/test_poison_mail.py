"""Mail that is written to be slow, and a parser that hangs: messages of every company go on."""

from collections.abc import AsyncIterator, Sequence
from functools import partial

import httpx
import psutil
import pytest

from sapa.db.pool import Database, open_database
from tests.cli.command import sapa
from tests.conftest import TLS, Installation
from tests.factories import Environments, make_company
from tests.faults.traffic import PATIENCE
from tests.http.wire import eventually
from tests.messaging.channels.test_hostile_mail import SHAPES
from tests.messaging.conversation_steps import wait_for_inbound
from tests.messaging.whatsapp_account import build_change, build_text, connect_whatsapp

ACCOUNT = ["--set", "smtp_host=mail.shop.example", "--set", "address=halo@shop.example"]
ATTACKED = 3
"""As many companies as a worker serves at once."""
SIZE = 60_000
BODIES = "SELECT body FROM messages WHERE company_id = $1"
WAITING = "SELECT count(*) FROM channel_callbacks WHERE company_id = $1 AND status = 'waiting'"


@pytest.fixture
async def database(victim: Installation) -> AsyncIterator[Database]:
    async with open_database(victim.server.app_url, size=3, application="onlooker") as opened:
        yield opened


@pytest.fixture
async def companies(database: Database) -> Sequence[Environments]:
    return [await make_company(database) for _ in range(ATTACKED + 1)]


def connect_mail(installation: Installation, company_id: int) -> str:
    command = ["channel", "connect", "--company", str(company_id), "--source", "MAIL", "--no-check", "--json", *ACCOUNT]
    path = sapa(installation.data, *command).json()["hookUrl"].partition("/hooks/")[2]
    return f"{installation.address}/hooks/{path}"


async def post(address: str, *mails: bytes) -> None:
    async with httpx.AsyncClient(timeout=PATIENCE, verify=TLS) as client:
        for mail in mails:
            assert (await client.post(address, content=mail)).status_code == 200


async def is_empty(database: Database, company_id: int) -> bool | None:
    async with database.connection() as db:
        return await db.fetchval(WAITING, company_id) == 0 or None


def build_poison(shape: str, company_id: int) -> bytes:
    return f"From: mallory@example.net\r\nX-Company: {company_id}\r\n".encode() + SHAPES[shape](SIZE)


@pytest.mark.long
async def test_poison_in_three_companies_stops_none(
    victim: Installation, database: Database, companies: Sequence[Environments]
) -> None:
    """Every shape of 60 KB to three companies, then an ordinary message to each and to a fourth."""
    *attacked, other = companies
    phone = connect_whatsapp(victim, other.live)
    addresses = {company.live: connect_mail(victim, company.live) for company in attacked}
    for company_id, address in addresses.items():
        await post(address, *(build_poison(shape, company_id) for shape in SHAPES))
        await post(address, b"From: ayu@example.com\r\n\r\nThe last one")
    await phone.send_change(build_change(build_text("628123456789")))
    assert await wait_for_inbound(database, other.live)
    for company_id in addresses:
        await eventually(partial(is_empty, database, company_id), PATIENCE)
        async with database.connection() as db:
            assert "The last one" in [row["body"] for row in await db.fetch(BODIES, company_id)]


@pytest.mark.long
async def test_a_parser_that_hangs_is_killed_and_its_callback_tried_again(
    victim: Installation, database: Database, companies: Sequence[Environments]
) -> None:
    address = connect_mail(victim, companies[0].live)
    await post(address, b"From: ayu@example.com\r\n\r\nBefore")
    await eventually(lambda: is_empty(database, companies[0].live), PATIENCE)
    parser, *others = list_parsers(victim)
    for other in others:
        other.kill()
    parser.suspend()
    await post(address, b"From: ayu@example.com\r\n\r\nAfter")
    await eventually(lambda: is_empty(database, companies[0].live), PATIENCE)
    async with database.connection() as db:
        assert {row["body"] for row in await db.fetch(BODIES, companies[0].live)} == {"Before", "After"}
    assert not parser.is_running()


def list_parsers(installation: Installation) -> list[psutil.Process]:
    children = psutil.Process(installation.process.pid).children(recursive=True)
    return [child for child in children if "parser_process" in " ".join(child.cmdline())]
