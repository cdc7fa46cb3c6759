"""`sapa settlement import`: a statement from a file."""

from pathlib import Path

import httpx

from tests.cli.command import sapa
from tests.conftest import Installation
from tests.factories import Environments
from tests.shipping.settlements.test_api import deliver, differences


async def test_a_statement_from_a_file(
    installation: Installation, sandbox: httpx.AsyncClient, company: Environments, tmp_path: Path
) -> None:
    parcel = await deliver(sandbox)
    file = tmp_path / "januari.csv"
    file.write_text(f"resi,cod,biaya cod,dana cair\n{parcel['id']},100000,1000,98999\n")
    command = ["settlement", "import", str(file), "--company", str(company.test), "--provider", "custom"]
    dated = [*command, "--remitted-at", "2026-01-31"]
    settled = sapa(installation.data, *dated, "--json").json()
    assert (settled["reference"], settled["differing"], settled["difference"]) == ("januari.csv", 1, -1)
    assert settled["remittedAt"] == "2026-01-30T17:00:00.000Z", "in the company's time zone"
    assert settled["differences"] == await differences(sandbox)
    again = sapa(installation.data, *dated, "--json").json()
    assert again == settled, "the same statement changes nothing"
    shown = sapa(installation.data, *dated)
    assert "remitted_amount" in shown.out
    undated = sapa(installation.data, *command)
    assert undated.code == 2, "money has a date"
    other = sapa(installation.data, *command, "--remitted-at", "2026-02-01").sentence()
    assert "same reference" in other
