"""Accounts with carriers: encrypted, one per provider, simulators by default, never a secret in a response."""

import httpx
import msgspec
import pytest
from msgspec import Struct

from sapa.context import AppContext
from sapa.db.pool import Database
from sapa.http.errors import Invalid
from sapa.shipping.carriers import call_log
from sapa.shipping.carriers.interface import Booked, Driver, Rejected
from sapa.shipping.carriers.registry import CARRIERS
from sapa.shipping.connections import actions as connections
from sapa.shipping.connections.types import CarrierConnection, ConnectedCarrier, ProviderNotConnected
from sapa.shipping.environment import get_environment
from sapa.shipping.errors import CarrierUnavailable
from sapa.values.company import Company
from sapa.values.sealing import BadSecretKey
from tests.conftest import Installation
from tests.factories import Environments, make_company
from tests.shipping.carriers.cases import CREDENTIALS
from tests.shipping.carriers.peer import Reply, open_connection, open_peer
from tests.shipping.carriers.simulated import PROVIDERS
from tests.shipping.parcels import create

KEY = "kiriminaja-secret-5f1d"
SANDBOX = {"instant_carrier": "gosend", "aggregator_carrier": "kiriminaja", "ev_courier": "dash"}
"""The adapter of each provider in a test environment by default."""


async def find(context: AppContext, company: Company, provider: str) -> ConnectedCarrier | None:
    async with context.database.connection() as db:
        return await connections.find_carrier(context, db, company, provider)


async def list_connected(context: AppContext, company: Company) -> dict[str, str]:
    async with context.database.connection() as db:
        return await connections.list_connected(context, db, company)


async def list_infos(context: AppContext, company: Company) -> dict[str, CarrierConnection]:
    async with context.database.connection() as db:
        return {info.provider: info for info in await connections.list_connections(db, company)}


async def connect(context: AppContext, company: Company, adapter: str = "kiriminaja", verify: bool = False) -> str:
    """The token of the callback address."""
    credentials = {"api_key": KEY} if adapter == "kiriminaja" else CREDENTIALS[adapter]
    created = await connections.connect(context, company, PROVIDERS[adapter], adapter, credentials, verify=verify)
    return created.callback_url.rpartition("/")[2]


async def test_a_test_environment_is_connected_from_the_start(context: AppContext, tester: Company) -> None:
    assert await list_connected(context, tester) == SANDBOX
    for provider, adapter in SANDBOX.items():
        connected = await find(context, tester, provider)
        assert connected is not None
        assert connected.carrier.name == adapter
        assert not connected.connection.breaks_circuit, "simulators fail on request"
    assert {info.status for info in (await list_infos(context, tester)).values()} == {"connected"}


async def test_a_live_environment_is_not(context: AppContext, owner: Company) -> None:
    assert await list_connected(context, owner) == {}
    assert await list_infos(context, owner) == {}
    async with context.database.connection() as db:
        with pytest.raises(ProviderNotConnected, match="/console/live/carriers/instant_carrier"):
            await connections.get_carrier(context, db, owner, "instant_carrier")


@pytest.mark.parametrize("provider", ["custom", "parcel_carrier", "pigeon"])
async def test_other_providers_have_no_carrier(context: AppContext, tester: Company, provider: str) -> None:
    assert await find(context, tester, provider) is None
    with pytest.raises(Invalid, match="provider"):
        await connections.connect(context, tester, provider, None, {}, verify=False)


@pytest.mark.parametrize("adapter", list(CARRIERS))
async def test_an_account_has_the_credentials_it_was_connected_with(
    context: AppContext, owner: Company, adapter: str
) -> None:
    credentials = CREDENTIALS[adapter]
    await connections.connect(context, owner, PROVIDERS[adapter], adapter, credentials, verify=False)
    connected = await find(context, owner, PROVIDERS[adapter])
    assert connected is not None
    assert (connected.carrier.name, connected.connection.credentials) == (adapter, credentials)
    assert connected.connection.address == CARRIERS[adapter].address
    assert connected.connection.breaks_circuit
    assert await list_connected(context, owner) == {PROVIDERS[adapter]: adapter}


@pytest.mark.parametrize("adapter", list(CARRIERS))
async def test_no_secret_of_an_account_is_kept_for_another(context: AppContext, owner: Company, adapter: str) -> None:
    carrier, credentials = CARRIERS[adapter], CREDENTIALS[adapter]
    await connections.connect(context, owner, carrier.provider, adapter, credentials, verify=False)
    for field in carrier.fields:
        others = {name: value for name, value in credentials.items() if name != field.name}
        if field.is_secret and field.is_required:
            with pytest.raises(Invalid, match=f"^{field.name}: is required"):
                await connections.connect(context, owner, carrier.provider, adapter, others, verify=False)
        elif field.is_secret:
            await connections.connect(context, owner, carrier.provider, adapter, others, verify=False)
            connected = await find(context, owner, carrier.provider)
            assert connected is not None
            assert connected.connection.credentials == others


async def test_an_operator_may_put_another_address_in_a_carriers_place(
    context: AppContext, owner: Company, tester: Company
) -> None:
    settings = msgspec.structs.replace(context.settings, upstreams={"kiriminaja": "https://staging.example.com"})
    elsewhere = msgspec.structs.replace(context, settings=settings)
    for company in (owner, tester):
        await connect(elsewhere, company)
    live, test = await find(elsewhere, owner, "aggregator_carrier"), await find(elsewhere, tester, "aggregator_carrier")
    assert live is not None
    assert test is not None
    assert live.connection.address == "https://staging.example.com"
    assert test.connection.address == f"{await context.loopback.address()}/sandbox/kiriminaja"


async def test_a_test_environment_may_have_another_aggregator(context: AppContext, tester: Company) -> None:
    await connections.connect(context, tester, "aggregator_carrier", "biteship", {})
    assert (await list_connected(context, tester))["aggregator_carrier"] == "biteship"
    async with context.database.transaction() as tx:
        await connections.disconnect(tx, tester, "aggregator_carrier")
    assert await list_connected(context, tester) == SANDBOX
    async with context.database.transaction() as tx:
        with pytest.raises(Invalid, match="simulated"):
            await connections.disconnect(tx, tester, "aggregator_carrier")


async def test_a_new_account_takes_the_place_of_the_one_before(context: AppContext, owner: Company) -> None:
    first = await connect(context, owner)
    second = await connect(context, owner, "biteship")
    assert await list_connected(context, owner) == {"aggregator_carrier": "biteship"}
    async with context.database.connection() as db:
        assert await connections.find_by_token(context, db, first) is None
        found = await connections.find_by_token(context, db, second)
    assert found is not None
    assert (found.carrier.name, found.connection.company) == ("biteship", owner)


async def test_a_token_identifies_the_connection_of_a_callback(
    context: AppContext, owner: Company, tester: Company
) -> None:
    async with context.database.connection() as db:
        for adapter in CARRIERS:
            token = get_environment(tester).build_token(context, tester.id, adapter)
            found = await connections.find_by_token(context, db, token)
            assert found is not None
            assert (found.carrier.name, found.connection.company.id) == (adapter, tester.id)
        for token in ("", "x", "sbx_1_" + "0" * 32, "é", "%00"):
            assert await connections.find_by_token(context, db, token) is None


async def test_earlier_callback_addresses_still_work(context: AppContext, owner: Company) -> None:
    async def find_adapter(token: str) -> str | None:
        async with context.database.connection() as db:
            found = await connections.find_by_token(context, db, token)
        return None if found is None else found.carrier.name

    tokens = [await connect(context, owner) for _ in range(3)]
    assert [await find_adapter(token) for token in tokens] == ["kiriminaja"] * 3
    other = await connect(context, owner, "biteship")
    assert [await find_adapter(token) for token in (*tokens, other)] == [None, None, None, "biteship"]


async def test_replacing_a_carrier_reports_shipments_under_way(
    context: AppContext, tester: Company, sandbox: httpx.AsyncClient
) -> None:
    await create(sandbox, "aggregator_carrier", autoBook=True)
    again = await connections.connect(context, tester, "aggregator_carrier", "kiriminaja", {})
    other = await connections.connect(context, tester, "aggregator_carrier", "biteship", {})
    assert (again.left_behind, other.left_behind) == (0, 1)


async def test_what_is_stored_holds_no_secret_and_no_token(
    context: AppContext, owner: Company, database: Database
) -> None:
    token = await connect(context, owner)
    await connect(context, owner, "gosend")
    async with database.connection() as db:
        rows = await db.fetch("SELECT k::text FROM carrier_connections k WHERE company_id = $1", owner.id)
    stored = " ".join(row[0] for row in rows)
    assert len(rows) == 2
    assert "toko-kopi" in stored
    for secret in (token, KEY, *(CREDENTIALS["gosend"][name] for name in ("pass_key", "callback_token"))):
        assert secret not in stored
        assert secret.encode().hex() not in stored


async def test_a_sealed_account_does_not_open_for_another_company(
    context: AppContext, owner: Company, database: Database
) -> None:
    await connect(context, owner)
    other = await make_company(database)
    async with database.transaction() as tx:
        await tx.execute(
            "INSERT INTO carrier_connections SELECT $2, id, provider, adapter, sealed, public_fields, status,"
            " verified_at, last_error, sha256(hook_hash), created_at FROM carrier_connections WHERE company_id = $1",
            owner.id,
            other.live,
        )
    with pytest.raises(BadSecretKey):
        await find(context, Company(other.live, "live", "ID", "IDR"), "aggregator_carrier")


@pytest.mark.parametrize(
    ("adapter", "credentials", "words"),
    [
        ("kiriminaja", {}, "api_key: is required"),
        ("kiriminaja", {"api_key": "  "}, "api_key: is required"),
        ("kiriminaja", {"api_key": "a\nb"}, "printable characters"),
        ("kiriminaja", {"api_key": "a", "pin": KEY}, "pin: is not a field of KiriminAja"),
        ("gosend", {"client_id": "a"}, "pass_key: is required"),
        ("dash", {"client_secret": KEY}, "client_key: is required"),
        ("lalamove", {}, "adapter: must be one of kiriminaja, biteship"),
    ],
)
async def test_an_account_that_is_not_whole_is_refused(
    context: AppContext, owner: Company, adapter: str, credentials: dict[str, str], words: str
) -> None:
    provider = PROVIDERS.get(adapter, "aggregator_carrier")
    with pytest.raises(Invalid, match=words) as refusal:
        await connections.connect(context, owner, provider, adapter, credentials, verify=False)
    assert KEY not in str(refusal.value)
    assert await list_connected(context, owner) == {}


def reach(context: AppContext, address: str, adapter: str = "kiriminaja") -> AppContext:
    return msgspec.structs.replace(
        context, settings=msgspec.structs.replace(context.settings, upstreams={adapter: address})
    )


async def test_connecting_asks_the_carrier_first(context: AppContext, owner: Company) -> None:
    async with open_peer() as peer:
        live = reach(context, peer.address)
        peer.replies = [Reply(401, {"status": False, "text": f"unknown key {KEY}"})]
        with pytest.raises(Invalid, match="refuses the API key") as refusal:
            await connect(live, owner, verify=True)
        assert KEY not in str(refusal.value)
        peer.replies = [Reply(500, {"text": KEY})]
        with pytest.raises(CarrierUnavailable, match="--no-verify") as away:
            await connect(live, owner, verify=True)
        assert KEY not in str(away.value)
        assert await list_connected(live, owner) == {}
        peer.replies = [Reply(200, {"status": True})]
        await connect(live, owner, verify=True)
    info = (await list_infos(context, owner))["aggregator_carrier"]
    assert info.verified_at
    assert info.last_error is None


async def test_a_test_of_an_account_is_cached(context: AppContext, owner: Company) -> None:
    await connect(context, owner)
    async with open_peer() as peer:
        live = reach(context, peer.address)
        peer.replies = [Reply(500, {"text": KEY})]
        assert not (await connections.check(live, owner, "aggregator_carrier")).is_working
        info = (await list_infos(context, owner))["aggregator_carrier"]
        assert (info.status, info.verified_at, info.last_error) == ("connected", None, "it answered 500")
        peer.replies = [Reply(401, {"text": KEY})]
        assert not (await connections.check(live, owner, "aggregator_carrier")).is_working
        assert (await list_infos(context, owner))["aggregator_carrier"].status == "invalid"
        assert await find(context, owner, "aggregator_carrier") is None
        assert await list_connected(context, owner) == {}
        peer.replies = [Reply(200, {"status": True})]
        assert (await connections.check(live, owner, "aggregator_carrier")).is_working
    info = (await list_infos(context, owner))["aggregator_carrier"]
    assert (info.status, info.last_error, bool(info.verified_at)) == ("connected", None, True)


async def test_health_is_noted_and_cleared(context: AppContext, owner: Company) -> None:
    await connect(context, owner)
    id = (await list_infos(context, owner))["aggregator_carrier"].id
    for error in ("it answered 503", None):
        async with context.database.connection() as db:
            await connections.record_health(db, owner.id, id, error)
        assert (await list_infos(context, owner))["aggregator_carrier"].last_error == error


class Odd(Struct, frozen=True):
    """An outcome with more fields than may be logged."""

    order_no: str
    api_key: str
    driver: Driver


async def test_the_journal_keeps_what_it_knows_and_no_secret(
    context: AppContext, owner: Company, database: Database
) -> None:
    credentials = {"api_key": KEY}
    async with open_connection("kiriminaja", "https://carrier.example", credentials) as plain:
        connection = msgspec.structs.replace(plain, company=owner)
        driver = Driver("Agus", "+628990000001")
        outcomes: list[Struct | BaseException] = [
            Booked("confirmed", order_no="KA-1", tracking_url=f"https://x.example/?key={KEY}", driver=driver),
            Rejected("422", f"the key {KEY} is wrong"),
            Odd("KA-2", KEY, driver),
            RuntimeError(f"Authorization: Bearer {KEY} and Bearer abc"),
        ]
        for outcome in outcomes:
            await call_log.record(database, connection, "book", "SP1", outcome)
        assert KEY not in repr(connection)
    async with database.connection() as db:
        rows = await db.fetch(
            "SELECT outcome, details::text FROM carrier_calls WHERE company_id = $1 ORDER BY id", owner.id
        )
    assert [row[0] for row in rows] == ["Booked", "Rejected", "Odd", "RuntimeError"]
    written = " ".join(row[1] for row in rows)
    assert "KA-1" in written
    assert "KA-2" in written
    for secret in (KEY, "Agus", "+628990000001", "abc"):
        assert secret not in written


def test_the_installations_log_names_no_secret(installation: Installation, company: Environments) -> None:
    assert KEY not in installation.log.read_text()
