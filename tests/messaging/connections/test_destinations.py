"""A stored secret is sent only to the server it was entered for."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from sapa.context import AppContext
from sapa.messaging.channels.interface import Source
from sapa.messaging.channels.registry import CHANNELS
from sapa.messaging.connections.accounts import ConnectedChannel, get_account_id
from sapa.messaging.connections.environment import get_environment
from sapa.values.company import Company
from tests.cli.command import Outcome, sapa
from tests.conftest import Installation
from tests.factories import Environments
from tests.messaging.channels.accounts import ACCOUNTS, SECRETS

PASSWORD = SECRETS["password"]
OTHER_VALUES = {"color": "#b3261e", "form": "name",
    "waba_id": "99", "phone_number": "+62811999", "client_key": "app-2", "smtp_host": "192.0.2.1", "smtp_port": "2525",
    "security": "tls", "inbound_address": "other@shop.example", "title": "Halo", "origins": "https://other.example",
}  # fmt: skip
MUST_ENTER = "password: must be entered again, because the server that gets it changes"


class MailServer:
    """Counts connections, and records what they send."""

    def __init__(self) -> None:
        self.port = 0
        self.received: list[bytes] = []

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.received.append(b"")
        writer.write(b"220 mail.example ESMTP\r\n")
        while line := await reader.readline():
            self.received[-1] += line
            is_hello = line.upper().startswith(b"EHLO")
            writer.write(b"250-mail.example\r\n250 AUTH PLAIN LOGIN\r\n" if is_hello else b"535 not accepted\r\n")
        writer.close()


@asynccontextmanager
async def open_mail_server() -> AsyncIterator[MailServer]:
    mail_server = MailServer()
    async with await asyncio.start_server(mail_server.answer, "127.0.0.1") as server:
        mail_server.port = server.sockets[0].getsockname()[1]
        yield mail_server


async def connect(installation: Installation, company_id: int, source: Source, *options: str, **fields: str) -> Outcome:
    pairs = [word for name, value in fields.items() for word in ("--set", f"{name}={value}")]
    words = ["channel", "connect", "--company", str(company_id), "--source", source, *options, *pairs, "--json"]
    return await asyncio.to_thread(sapa, installation.data, *words, SAPA_WEBHOOK_ALLOW_INSECURE="1")


async def open_account(context: AppContext, company_id: int, source: Source) -> ConnectedChannel:
    company = Company(company_id, "live", "ID", "IDR")
    async with context.database.connection() as db:
        connected = await get_environment(company).accounts.find_by_source(context, db, company, source)
    assert connected is not None
    return connected


@pytest.mark.parametrize("source", CHANNELS)
async def test_no_field_of_any_channel_sends_a_stored_secret_elsewhere(
    source: Source, installation: Installation, context: AppContext, company: Environments
) -> None:
    channel = CHANNELS[source]
    account = dict(ACCOUNTS.get(source, {}))
    secrets = {
        field.name: SECRETS.get(field.name, "planted-in-the-chat") for field in channel.fields if field.is_secret
    }
    assert (await connect(installation, company.live, source, "--no-check", **account, **secrets)).code == 0
    before = (await open_account(context, company.live, source)).connection
    account_id = get_account_id(channel, account)
    public = [field.name for field in channel.fields if not field.is_secret and account.get(field.name) != account_id]
    for name in public:
        changed = await connect(
            installation, company.live, source, "--no-check", **{name: OTHER_VALUES.get(name, "other")}
        )
        after = (await open_account(context, company.live, source)).connection
        assert after.address == before.address
        assert (changed.code == 0) == (after.account != before.account)
        if changed.code:
            assert changed.sentence() == MUST_ENTER
        before = after


@pytest.mark.parametrize("change", [{"smtp_host": "localhost"}, {"smtp_port": ""}, {"security": "starttls"}])
async def test_a_password_is_asked_for_again_when_its_server_changes(
    change: dict[str, str], installation: Installation, context: AppContext, company: Environments
) -> None:
    account = {**ACCOUNTS[Source.MAIL], "smtp_port": "2525", "password": PASSWORD, "hook_secret": "planted-hook-secret"}
    assert (await connect(installation, company.live, Source.MAIL, "--no-check", **account)).code == 0
    refused = await connect(installation, company.live, Source.MAIL, "--no-check", **change)
    assert refused.sentence() == MUST_ENTER
    kept = await connect(installation, company.live, Source.MAIL, "--no-check", sender_name="Kopi")
    assert kept.json()["connection"]["secrets"] == ["hook_secret", "password"]
    moved = await connect(installation, company.live, Source.MAIL, "--no-check", **change, password="another")
    assert moved.json()["connection"]["secrets"] == ["hook_secret", "password"]
    credentials = (await open_account(context, company.live, Source.MAIL)).connection.credentials
    assert credentials == {"password": "another", "hook_secret": "planted-hook-secret"}
    back = await connect(installation, company.live, Source.MAIL, "--no-check", smtp_host="127.0.0.1", password="")
    assert back.json()["connection"]["secrets"] == ["hook_secret"]


async def test_another_mail_server_never_hears_of_the_stored_password(
    installation: Installation, company: Environments
) -> None:
    async with open_mail_server() as own, open_mail_server() as thief:
        account = {**ACCOUNTS[Source.MAIL], "smtp_port": str(own.port), "password": PASSWORD}
        assert (await connect(installation, company.live, Source.MAIL, "--no-check", **account)).code == 0
        refused = await connect(installation, company.live, Source.MAIL, smtp_port=str(thief.port))
        assert refused.sentence() == MUST_ENTER
        assert thief.received == []
        entered = await connect(installation, company.live, Source.MAIL, smtp_port=str(thief.port), password="theirs")
        assert entered.code == 1, "this server refuses every password"
        assert len(thief.received) == 1
        assert b"AUTH" in thief.received[0]
