"""Commands in processes of their own, one of each group that no other test starts so; the rest run in this process."""

import msgspec
import pytest

from tests.cli.command import sapa, sapa_process
from tests.conftest import Installation
from tests.factories import Environments


@pytest.mark.parametrize(
    "command",
    [
        "key list",
        "analytics rebuild",
        *(
            pytest.param(command, marks=pytest.mark.long)
            for command in ("clock show", "loyalty reconcile", "token list", "channel list", "user list", "agent list")
        ),
    ],
)
def test_a_command_prints_the_same_in_a_process_of_its_own(
    installation: Installation, company: Environments, command: str
) -> None:
    arguments = [*command.split(), "--company", str(company.test), "--json"]
    assert sapa_process(installation.data, *arguments).json() == sapa(installation.data, *arguments).json()


def test_doctor_in_a_process_of_its_own(installation: Installation) -> None:
    """All is well, except that other tests store secrets of keys which the installation does not have."""
    outcome = sapa_process(installation.data, "doctor", "--json")
    unwell = [finding["what"] for finding in msgspec.json.decode(outcome.out) if not finding["well"]]
    assert (outcome.code, unwell) in [(0, []), (1, ["secrets"])]


@pytest.mark.long
def test_demo_in_a_process_of_its_own_reports_a_database_that_is_away(installation: Installation) -> None:
    outcome = sapa_process(installation.data, "demo", SAPA_DATABASE_URL="postgresql://sapa@127.0.0.1:1/sapa")
    assert outcome.code == 1
    assert "The database cannot be used: " in outcome.err
    assert "Traceback" not in outcome.err
