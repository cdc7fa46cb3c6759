"""Every table by carrier has a row for every carrier."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from sapa.sandbox.carriers.scenarios import Kind
from sapa.sandbox.carriers.simulators import SIMULATORS
from sapa.shipping.carriers.interface import Carrier
from sapa.shipping.carriers.registry import CARRIERS
from sapa.shipping.providers import PROVIDERS
from tests.shipping.carriers import test_callbacks, test_reading, test_refusals, test_scenarios, test_statuses
from tests.shipping.carriers.cases import CASES, CREDENTIALS, SHIPPED
from tests.shipping.carriers.simulated import SERVICES

TABLES: dict[str, Iterable[str]] = {
    "CASES in cases.py": {case.adapter for case in CASES},
    "CREDENTIALS in cases.py": CREDENTIALS,
    "SHIPPED in cases.py": SHIPPED,
    "SERVICES in simulated.py": SERVICES,
    "HEADERS in test_callbacks.py": test_callbacks.HEADERS,
    "BODIES in test_callbacks.py": test_callbacks.BODIES,
    "CHANGED in test_callbacks.py": test_callbacks.CHANGED,
    "UNKNOWN in test_callbacks.py": test_callbacks.UNKNOWN,
    "TAKEN in test_reading.py": test_reading.TAKEN,
    "ALIVE (or BY_AWB) in test_refusals.py": {*test_refusals.ALIVE, *test_refusals.BY_AWB},
    "NO (or BY_AWB) in test_refusals.py": {*test_refusals.NO, *test_refusals.BY_AWB},
    "ENDS in test_scenarios.py": test_scenarios.ENDS,
}
OPERATIONS = {"verify", "quote", "quote_refused", "book", "book_refused", "track", "cancel", "cancel_refused"}
SCENARIOS: dict[Kind, set[str]] = {
    "instant": {"no_driver", "driver_cancels", "reassign", "delivery_failed", "returned", "lost"},
    "express": {"delivery_failed", "returned", "lost"},
}


@pytest.mark.parametrize("table", TABLES)
def test_a_table_has_every_carrier(table: str) -> None:
    assert sorted(set(CARRIERS) - set(TABLES[table])) == [], f"add a row for these carriers to {table}"


def test_the_statuses_of_every_carrier_are_tested() -> None:
    text = Path(test_statuses.__file__).read_text()
    missing = [name for name in CARRIERS if f"sapa.shipping.carriers.{name}.statuses" not in text]
    assert missing == [], "test the table of these carriers' statuses in test_statuses.py"


@pytest.mark.parametrize("carrier", CARRIERS.values(), ids=CARRIERS)
def test_a_carrier_has_a_case_for_every_operation(carrier: Carrier) -> None:
    needed = OPERATIONS | ({"find", "find_nothing", "find_unclear"} if carrier.finds_by_reference else set())
    cases = {case.name for case in CASES if case.adapter == carrier.name}
    missing = sorted(needed - cases)
    assert missing == [], f"add these cases to CASES in cases.py, each with its file in fixtures/{carrier.name}"


@pytest.mark.parametrize("adapter", CARRIERS)
def test_the_end_of_every_scenario_is_known(adapter: str) -> None:
    missing = sorted(SCENARIOS[SIMULATORS[adapter].kind] - set(test_scenarios.ENDS.get(adapter, {})))
    assert missing == [], f"add the last status of these scenarios to ENDS[{adapter!r}] in test_scenarios.py"


@pytest.mark.parametrize("carrier", CARRIERS.values(), ids=CARRIERS)
def test_a_carrier_that_collects_cash_says_what_it_keeps(carrier: Carrier) -> None:
    collects = PROVIDERS[carrier.provider].collects_cash
    assert bool(carrier.cod_deductions) is collects, "cod_deductions of the carrier, or collects_cash of its provider"
    has_statement = SIMULATORS[carrier.name].build_statement_line is not None
    assert has_statement is collects, "add build_statement_line to its simulator"
