"""Every adapter against its fixtures: requests, responses and outcomes."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from sapa.shipping.carriers.registry import CARRIERS
from tests.shipping.carriers.cases import CASES, CREDENTIALS, Case
from tests.shipping.carriers.peer import Reply, open_connection, open_peer

FIXTURES = Path(__file__).parent / "fixtures"


class Exchange(msgspec.Struct, frozen=True):
    request: dict[str, Any]
    response: Reply


class Fixture(msgspec.Struct, frozen=True):
    """The requests and responses, and their outcome."""

    exchanges: list[Exchange]
    outcome: Any


def read_fixture(case: Case) -> Fixture:
    path = FIXTURES / case.adapter / f"{case.name}.json"
    return msgspec.json.decode(path.read_bytes(), type=Fixture)


def to_json(outcome: Any) -> Any:
    """A value of the interface as JSON, with its type."""
    if not isinstance(outcome, msgspec.Struct):
        return msgspec.to_builtins(outcome)
    return {"type": type(outcome).__name__, **msgspec.json.decode(msgspec.json.encode(outcome))}


@pytest.mark.parametrize("case", CASES, ids=[case.title for case in CASES])
async def test_a_conversation_with_a_carrier(case: Case) -> None:
    fixture = read_fixture(case)
    async with (
        open_peer() as peer,
        open_connection(case.adapter, peer.address, CREDENTIALS[case.adapter]) as connection,
    ):
        peer.replies = [exchange.response for exchange in fixture.exchanges]
        outcome = await case.do(CARRIERS[case.adapter], connection)
        assert peer.asked == [exchange.request for exchange in fixture.exchanges]
        assert to_json(outcome) == fixture.outcome


def test_every_fixture_is_used() -> None:
    stored = {f"{path.parent.name}-{path.stem}" for path in FIXTURES.glob("*/*.json")}
    assert stored == {case.title for case in CASES}
