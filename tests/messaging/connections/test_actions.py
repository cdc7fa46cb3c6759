"""Accounts with channels: connected by a command, sealed, verified, used for calls and callbacks."""

import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sapa.context import AppContext
from sapa.db.pool import Database
from sapa.messaging.channels.interface import OutgoingMessage, SendReceipt, Source
from sapa.messaging.channels.registry import CHANNELS
from sapa.messaging.connections import jobs as renewing
from sapa.messaging.connections.accounts import record_health
from sapa.messaging.connections.environment import find_by_token, get_environment
from sapa.messaging.connections.queries import DueRenewal
from sapa.messaging.connections.types import CONNECTION_ID
from sapa.sandbox.channels.accounts import build_hook_token
from sapa.values.company import Company
from tests.cli.command import Outcome, sapa
from tests.conftest import Installation
from tests.factories import Environments
from tests.messaging.channels.accounts import RECIPIENTS, REFERENCE
from tests.messaging.channels.contents import CONTENTS
from tests.messaging.channels.peer import Peer

TOKEN, SECRET = "planted-live-token-77aa", "planted-live-secret-88bb"
CLOUD = ("phone_number_id=1122", "waba_id=3344", "phone_number=+6281100001111", f"access_token={TOKEN}")
WHATSAPP = (*CLOUD, f"app_secret={SECRET}")


def _with_upstream(context: AppContext, source: Source, peer: Peer) -> AppContext:
    settings = msgspec.structs.replace(context.settings, upstreams={source.lower(): peer.address})
    return msgspec.structs.replace(context, settings=settings)


@pytest.fixture
def live(company: Environments) -> Company:
    return Company(company.live, "live", "ID", "IDR")


@pytest.fixture
def tester(company: Environments) -> Company:
    return Company(company.test, "test", "ID", "IDR")


class Desk:
    """Runs commands for one company."""

    def __init__(self, installation: Installation, company_id: int, peer: Peer) -> None:
        self._data = installation.data
        self._company_id = str(company_id)
        self._peer = peer

    async def run(self, verb: str, *arguments: str, **variables: str) -> Outcome:
        upstreams = {f"SAPA_UPSTREAM_{source}": self._peer.address for source in Source}
        words = ["channel", verb, "--company", self._company_id, *arguments, "--json"]
        return await asyncio.to_thread(sapa, self._data, *words, **{**upstreams, **variables})

    async def connect(self, source: Source, *fields: str, **more: Any) -> Outcome:
        options = [word for field in fields for word in ("--set", field)]
        return await self.run("connect", "--source", source, *options, *more.pop("flags", ()), **more)


@pytest.fixture
def desk(installation: Installation, company: Environments, peer: Peer) -> Desk:
    peer.answers = [(200, {"id": "1122", "user_id": "17841400"})]
    return Desk(installation, company.live, peer)


async def test_an_account_is_connected_and_its_secrets_are_never_seen_again(
    desk: Desk, peer: Peer, live: Company, database: Database, context: AppContext
) -> None:
    created = (await desk.connect(Source.MSGAPP_CLOUD, *WHATSAPP)).json()
    assert [request.path for request in peer.requests] == ["/1122"]
    info = created["connection"]
    assert CONNECTION_ID.matches(info["id"])
    assert info["account"] == {"phone_number_id": "1122", "waba_id": "3344", "phone_number": "+6281100001111"}
    assert info["secrets"] == ["access_token", "app_secret", "verify_token"]
    assert (info["status"], info["health"], info["lastError"]) == ("connected", "ok", None)
    assert set(created["generated"]) == {"verify_token"}
    listed = await desk.run("list")
    assert listed.json() == [info]
    async with database.connection() as db:
        row = await db.fetchrow("SELECT * FROM channel_connections WHERE company_id = $1", live.id)
    assert row is not None
    token = created["hookUrl"].rpartition("/hooks/channels/")[2]
    for secret in (TOKEN, SECRET, created["generated"]["verify_token"], token):
        assert secret not in listed.out + repr(dict(row))
    async with database.connection() as db:
        found = await find_by_token(context, db, token)
        opened = await get_environment(live).accounts.find_by_source(context, db, live, Source.MSGAPP_CLOUD)
        assert found == opened
        assert await get_environment(live).accounts.find_by_id(context, db, live, info["id"]) == opened
        assert await get_environment(live).accounts.list_sources(db, live) == [Source.MSGAPP_CLOUD]
    assert opened is not None
    assert opened.connection.credentials["access_token"] == TOKEN
    assert opened.connection.address == "https://graph.facebook.com/v25.0"
    assert opened.own_name == "+6281100001111"


async def test_an_account_that_the_channel_refuses_is_not_connected(desk: Desk, peer: Peer) -> None:
    peer.answers = [(401, {"error": {"message": "token expired", "code": 190}})]
    refused = await desk.connect(Source.MSGAPP_CLOUD, *WHATSAPP)
    assert refused.sentence() == "WhatsApp does not accept the account: (190) token expired"
    assert TOKEN not in refused.err
    assert (await desk.run("list")).json() == []
    created = await desk.connect(Source.MSGAPP_CLOUD, *WHATSAPP, flags=["--no-check"])
    assert created.json()["connection"]["health"] == "unverified"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (CLOUD, "app_secret: is required"),
        ((*WHATSAPP, "phone_number=0811"), "phone_number: is not valid"),
        ((*WHATSAPP, "phone_number_id=1/../2"), "phone_number_id: is not valid"),
        ((*WHATSAPP, "verify_token=a\nb"), "verify_token: is not valid"),
    ],
)
async def test_a_field_that_cannot_be_used_is_named(desk: Desk, peer: Peer, fields: list[str], words: str) -> None:
    assert words in (await desk.connect(Source.MSGAPP_CLOUD, *fields)).sentence()
    assert peer.requests == []


async def test_an_unknown_field_is_named(desk: Desk) -> None:
    refused = await desk.connect(Source.MSGAPP_CLOUD, "colour=blue")
    assert refused.code == 2
    assert "phone_number_id" in refused.err


async def test_fields_that_are_left_out_stay(desk: Desk, live: Company, context: AppContext, tmp_path: Path) -> None:
    first = (await desk.connect(Source.MSGAPP_CLOUD, *WHATSAPP)).json()
    file = tmp_path / "token"
    file.write_text("renewed-token\n")
    again = (await desk.connect(Source.MSGAPP_CLOUD, f"access_token=@{file}")).json()
    assert again["connection"]["id"] == first["connection"]["id"]
    assert (again["hookUrl"], again["generated"]) == (None, {})
    async with context.database.connection() as db:
        opened = await get_environment(live).accounts.find_by_source(context, db, live, Source.MSGAPP_CLOUD)
        token = first["hookUrl"].rpartition("/")[2]
        assert await find_by_token(context, db, token) == opened
    assert opened is not None
    assert (opened.connection.credentials["access_token"], opened.connection.credentials["app_secret"]) == (
        "renewed-token",
        SECRET,
    )
    moved = (await desk.connect(Source.MSGAPP_CLOUD, flags=["--new-hook"])).json()
    async with context.database.connection() as db:
        assert await find_by_token(context, db, token) is None
        assert await find_by_token(context, db, moved["hookUrl"].rpartition("/")[2]) is not None


async def test_one_account_of_a_channel_at_a_time_and_the_same_one_is_resumed(
    desk: Desk, context: AppContext, live: Company
) -> None:
    first = (await desk.connect(Source.MSGAPP_CLOUD, *WHATSAPP)).json()
    other = await desk.connect(Source.MSGAPP_CLOUD, *WHATSAPP, "phone_number_id=9999")
    assert "Disconnect that one first" in other.sentence()
    assert (await desk.run("disconnect", "--source", Source.MSGAPP_CLOUD)).json()["disconnected"] is True
    [disconnected] = (await desk.run("list")).json()
    assert (disconnected["status"], disconnected["health"], disconnected["secrets"]) == (
        "disconnected",
        "disconnected",
        [],
    )
    async with context.database.connection() as db:
        assert await get_environment(live).accounts.find_by_source(context, db, live, Source.MSGAPP_CLOUD) is None
        assert await get_environment(live).accounts.find_by_id(context, db, live, disconnected["id"]) is None
        assert await get_environment(live).accounts.list_sources(db, live) == []
        assert await find_by_token(context, db, first["hookUrl"].rpartition("/")[2]) is None
    assert (
        "has not connected this channel" in (await desk.run("disconnect", "--source", Source.MSGAPP_CLOUD)).sentence()
    )
    assert "is required" in (await desk.connect(Source.MSGAPP_CLOUD, "phone_number_id=1122")).sentence()
    other_account = (await desk.connect(Source.MSGAPP_CLOUD, *WHATSAPP, "phone_number_id=9999")).json()
    assert other_account["connection"]["id"] != first["connection"]["id"]
    await desk.run("disconnect", "--source", Source.MSGAPP_CLOUD)
    back = (await desk.connect(Source.MSGAPP_CLOUD, *WHATSAPP)).json()
    assert back["connection"]["id"] == first["connection"]["id"]
    assert back["hookUrl"] != first["hookUrl"]


async def test_health_is_asked_for_and_shown(desk: Desk, peer: Peer, context: AppContext, live: Company) -> None:
    created = (await desk.connect(Source.MSGAPP_CLOUD, *WHATSAPP)).json()
    peer.answers = [(401, {"error": {"message": "token expired", "code": 190}})]
    failed = await desk.run("test", "--source", Source.MSGAPP_CLOUD)
    assert failed.code == 1
    shown = json.loads(failed.out)
    assert (shown["health"], shown["lastError"]) == ("failing", "(190) token expired")
    assert shown["lastErrorAt"] is not None
    assert (await desk.run("list")).json() == [shown]
    peer.answers = [(200, {"id": "1122"})]
    assert (await desk.run("test", "--source", Source.MSGAPP_CLOUD)).json()["health"] == "ok"
    async with context.database.connection() as db:
        await record_health(db, live.id, created["connection"]["id"], "x" * 5000)
    [shown] = (await desk.run("list")).json()
    assert len(shown["lastError"]) == 500
    async with context.database.connection() as db:
        await record_health(db, live.id, created["connection"]["id"], None)
    assert (await desk.run("list")).json()[0]["lastError"] is None
    assert "has not connected this channel" in (await desk.run("test", "--source", Source.MAIL)).sentence()


async def test_a_sealed_account_does_not_open_for_another_company(
    desk: Desk, context: AppContext, live: Company, tester: Company, database: Database
) -> None:
    await desk.connect(Source.MSGAPP_CLOUD, *WHATSAPP)
    other = Company(live.id + 1_000_000, "live", "ID", "IDR")
    async with database.connection() as db:
        assert await get_environment(other).accounts.find_by_source(context, db, other, Source.MSGAPP_CLOUD) is None


@pytest.mark.parametrize("token", ["", "hook_", "hook_1_x", "hook_999999999999_" + "a" * 43, "sbx_1_" + "0" * 32, "☕"])
async def test_an_unknown_address_is_not_found(token: str, context: AppContext) -> None:
    async with context.database.connection() as db:
        assert await find_by_token(context, db, token) is None


async def test_a_test_environment_has_every_channel_from_the_start(
    context: AppContext, tester: Company, live: Company, installation: Installation, peer: Peer
) -> None:
    """It leads to this machine, whatever the operator's settings say."""
    loopback = await context.loopback.address()
    async with context.database.connection() as db:
        assert await get_environment(tester).accounts.list_sources(db, tester) == list(Source)
        assert await get_environment(live).accounts.list_sources(db, live) == []
        for source in Source:
            opened = await get_environment(tester).accounts.find_by_source(context, db, tester, source)
            assert opened is not None
            connection = opened.connection
            assert CONNECTION_ID.matches(connection.id)
            assert connection.address.startswith("127.0.0.1:" if source is Source.MAIL else loopback)
            assert await get_environment(tester).accounts.find_by_id(context, db, tester, connection.id) == opened
            token = build_hook_token(context, tester.id, source)
            assert await find_by_token(context, db, token) == opened
            stolen = build_hook_token(context, live.id, source)
            assert await find_by_token(context, db, stolen) is None
    desk = Desk(installation, tester.id, peer)
    listed = await desk.run("list")
    assert [(each["source"], each["health"]) for each in listed.json()] == [(source, "ok") for source in Source]
    assert "sbx_" + str(tester.id) not in listed.out.replace("sbx_business", "").replace("sbx_app", "")
    assert "simulator" in (await desk.connect(Source.MSGAPP_CLOUD, *WHATSAPP)).sentence()
    assert "simulator" in (await desk.run("disconnect", "--source", Source.MAIL)).sentence()


@pytest.mark.parametrize("source", Source)
async def test_every_simulator_knows_the_account(
    source: Source, installation: Installation, tester: Company, peer: Peer
) -> None:
    shown = (await Desk(installation, tester.id, peer).run("test", "--source", source)).json()
    assert (shown["source"], shown["health"]) == (source, "ok")
    assert peer.requests == []


async def test_tokens_are_renewed_before_they_expire(
    desk: Desk, peer: Peer, context: AppContext, live: Company
) -> None:
    peer.answers = [(200, {"code": 0, "data": {"username": "tokokopi"}})]
    fields = ("business_id=o1", "client_key=a1", f"access_token={TOKEN}", "refresh_token=r1", f"app_secret={SECRET}")
    created = (await desk.connect(Source.SHORT_VIDEO, *fields)).json()
    from_here = _with_upstream(context, Source.SHORT_VIDEO, peer)
    async with context.database.connection() as db:
        await db.execute("UPDATE channel_connections SET renew_at = now() WHERE company_id = $1", live.id)
    peer.requests.clear()
    peer.answers = [(200, {"code": 0, "data": {"access_token": "t2", "refresh_token": "r2", "expires_in": 86400}})]
    due = DueRenewal(live.id, created["connection"]["id"], Source.SHORT_VIDEO)
    await asyncio.gather(*(renewing.renew(from_here, due) for _ in range(3)))
    [request] = peer.requests
    assert (request.path, request.json) == (
        "/tt_user/oauth2/refresh_token/",
        {"client_id": "a1", "client_secret": SECRET, "grant_type": "refresh_token", "refresh_token": "r1"},
    )
    async with context.database.connection() as db:
        opened = await get_environment(live).accounts.find_by_source(context, db, live, Source.SHORT_VIDEO)
    assert opened is not None
    assert opened.connection.credentials == {"access_token": "t2", "refresh_token": "r2", "app_secret": SECRET}
    assert (await desk.run("list")).json()[0]["health"] == "ok"


async def test_the_operators_address_replaces_the_channels(
    desk: Desk, peer: Peer, context: AppContext, live: Company
) -> None:
    await desk.connect(Source.MSGAPP_CLOUD, *WHATSAPP)
    context = _with_upstream(context, Source.MSGAPP_CLOUD, peer)
    peer.answers = [(200, {"messages": [{"id": "wamid.1"}]})]
    async with context.database.connection() as db:
        opened = await get_environment(live).accounts.find_by_source(context, db, live, Source.MSGAPP_CLOUD)
    assert opened is not None
    message = OutgoingMessage(REFERENCE, RECIPIENTS[Source.MSGAPP_CLOUD], CONTENTS["text"])
    assert await CHANNELS[Source.MSGAPP_CLOUD].send(opened.connection, message) == SendReceipt("wamid.1")
