"""`sapa carrier` as people and programs run it."""

import asyncio
from pathlib import Path

import pytest

from tests.cli.command import Outcome, sapa, sapa_process
from tests.conftest import Installation
from tests.factories import Environments
from tests.shipping.carriers.peer import Reply, open_peer

KEY = "kiriminaja-secret-77ab"


def carrier(installation: Installation, verb: str, company: int, *arguments: str, **variables: str) -> Outcome:
    return sapa(installation.data, "carrier", verb, "--company", str(company), *arguments, **variables)


def test_a_test_environment_lists_its_simulators(installation: Installation, company: Environments) -> None:
    listed = carrier(installation, "list", company.test, "--json").json()
    assert {(row["provider"], row["adapter"], row["status"]) for row in listed} == {
        ("instant_carrier", "gosend", "connected"),
        ("aggregator_carrier", "kiriminaja", "connected"),
        ("ev_courier", "dash", "connected"),
    }
    assert carrier(installation, "list", company.live, "--json").json() == []


@pytest.mark.parametrize("provider", ["instant_carrier", "aggregator_carrier", "ev_courier"])
def test_a_simulator_can_be_tested(installation: Installation, company: Environments, provider: str) -> None:
    health = carrier(installation, "test", company.test, "--provider", provider, "--json").json()
    assert (health["isWorking"], health["error"]) == (True, None)


def test_another_aggregator_is_connected_and_disconnected(installation: Installation, company: Environments) -> None:
    chosen = ("--provider", "aggregator_carrier")
    created = carrier(installation, "connect", company.test, *chosen, "--adapter", "biteship", "--json").json()
    assert (created["adapter"], created["isSandbox"], bool(created["verifiedAt"])) == ("biteship", True, True)
    assert "/hooks/carriers/sbx_" in created["callbackUrl"]
    shown = carrier(installation, "connect", company.test, *chosen, "--adapter", "biteship", SAPA_PORT="8123")
    assert "http://127.0.0.1:8123/hooks/carriers/sbx_" in shown.out
    assert "SAPA_PUBLIC_URL is not set" in shown.out
    public = {"SAPA_PORT": "8123", "SAPA_PUBLIC_URL": "https://sapa.example.com"}
    shown = carrier(installation, "connect", company.test, *chosen, "--adapter", "biteship", **public)
    assert "  https://sapa.example.com/hooks/carriers/sbx_" in shown.out
    assert "SAPA_PUBLIC_URL" not in shown.out
    gone = carrier(installation, "disconnect", company.test, *chosen, "--json").json()
    assert gone == {"provider": "aggregator_carrier", "disconnected": True}
    again = carrier(installation, "disconnect", company.test, *chosen)
    assert "simulated" in again.sentence()


async def test_a_live_account_from_connecting_to_disconnecting(
    installation: Installation, company: Environments, tmp_path: Path
) -> None:
    async def meanwhile(verb: str, company_id: int, *arguments: str, **variables: str) -> Outcome:
        return await asyncio.to_thread(lambda: carrier(installation, verb, company_id, *arguments, **variables))

    secret = tmp_path / "key"
    secret.write_text(f"{KEY}\n")
    chosen = ("--provider", "aggregator_carrier")
    async with open_peer() as peer:
        upstream = {"SAPA_UPSTREAM_KIRIMINAJA": peer.address}
        peer.replies = [Reply(401, {"status": False, "text": KEY})]
        refused = await meanwhile("connect", company.live, *chosen, "--set", f"api_key=@{secret}", **upstream)
        assert "refuses the API key" in refused.sentence()
        peer.replies = [Reply(200, {"status": True, "datas": []})]
        created = await meanwhile("connect", company.live, *chosen, SAPA_CARRIER_API_KEY=KEY, **upstream)
        assert created.code == 0, created.err
        assert peer.asked[-1]["headers"]["authorization"] == f"Bearer {KEY}"
        assert "/hooks/carriers/" in created.out
        token = created.out.partition("/hooks/carriers/")[2].split()[0]
        listed = await meanwhile("list", company.live)
        tested = await meanwhile("test", company.live, *chosen, **upstream)
        assert tested.code == 0
        peer.replies = [Reply(500, {"text": KEY})]
        broken = await meanwhile("test", company.live, *chosen, "--json", **upstream)
        assert broken.code == 1
        health = await meanwhile("list", company.live, "--json")
        assert health.json()[0]["lastError"] == "it answered 500"
    gone = await meanwhile("disconnect", company.live, *chosen)
    assert (await meanwhile("list", company.live, "--json")).json() == []
    for outcome in (refused, created, listed, tested, broken, health, gone):
        assert KEY not in outcome.out + outcome.err
    for outcome in (listed, tested, broken, health, gone):
        assert token not in outcome.out + outcome.err
    assert KEY not in installation.log.read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--provider", "pigeon"], "provider: must be one of"),
        (["--provider", "aggregator_carrier", "--adapter", "gosend"], "adapter: must be one of kiriminaja, biteship"),
        (["--provider", "aggregator_carrier", "--json"], "api_key: is required"),
        (["--provider", "instant_carrier", "--set", "client_id=a", "--set", f"pin={KEY}"], "pin: is not a field"),
    ],
)
def test_a_connection_error_is_one_sentence(
    installation: Installation, company: Environments, arguments: list[str], words: str
) -> None:
    outcome = carrier(installation, "connect", company.live, *arguments)
    assert words in outcome.sentence()
    assert KEY not in outcome.err


@pytest.mark.parametrize("pairs", [[KEY], ["=x"], ["api_key=a", "api_key=b"], ["api_key=@/nowhere/key"]])
def test_a_credential_that_cannot_be_read_is_not_repeated(
    installation: Installation, company: Environments, pairs: list[str]
) -> None:
    options = [part for text in pairs for part in ("--set", text)]
    outcome = carrier(installation, "connect", company.live, "--provider", "aggregator_carrier", *options)
    assert outcome.code == 2
    assert KEY not in outcome.out + outcome.err


@pytest.mark.long
def test_the_command_in_a_process_of_its_own(installation: Installation, company: Environments) -> None:
    """Without a terminal nothing is asked for."""
    arguments = ("carrier", "connect", "--company", str(company.live), "--provider", "ev_courier")
    assert "client_key: is required" in sapa(installation.data, *arguments).sentence()
    options = ("--set", "client_key=dash-1", "--no-verify", "--json")
    variables = {"SAPA_CARRIER_CLIENT_SECRET": KEY}
    created = sapa_process(installation.data, *arguments, *options, **variables)
    assert created.json()["publicFields"] == {"client_key": "dash-1"}
    assert created.json()["verifiedAt"] is None
    assert KEY not in created.out + created.err
