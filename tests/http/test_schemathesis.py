"""Schemathesis plays an inventive caller: valid, invalid and chained calls made from the documents alone."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from sapa.access.types import Scope
from sapa.db.pool import Database
from sapa.http.endpoints import Base
from tests import depth
from tests.conftest import Installation
from tests.factories import Environments, make_key
from tests.http.response_check import operations_of

HOOKS = str(Path(__file__).with_name("refused_requests.py"))

# A schema cannot say what a phone number is, so most calls are given real ones. Our own check says which refusals of
# valid requests are right, in place of Schemathesis's by status.
CONFIGURATION = f"""
seed = 1
continue-on-failure = true
color = false

[auth.openapi.apiKey]
api_key = "${{SAPA_KEY}}"

[generation]
max-examples = {20 if depth.is_long() else 1}
database = "none"
allow-x00 = false
with-security-parameters = false

# Calls at the limits of every field: about half of the time that a whole run takes.
[phases.coverage]
enabled = {str(depth.is_long()).lower()}

[phases.stateful]
enabled = {str(depth.is_long()).lower()}
generation.max-examples = 80

[dictionaries.phones]
values = {[f"+62812{number:07}" for number in range(5000)]}

[parameters]
"body.phoneNumber" = {{ dictionary = "phones", probability = 0.9 }}

[checks]
positive_data_acceptance.expected-statuses = ["2xx", "4xx"]
"""


async def introduce(installation: Installation, key: str) -> None:
    """Schemathesis tries many unknown keys. A process that saw no good one before them would refuse this network."""
    for _ in range(20):  # each connection reaches one of the processes
        async with httpx.AsyncClient(base_url=installation.address, headers={"x-api-key": key}, timeout=120) as client:
            response = await client.get("/customer/v1/customers", params={"limit": 1})
            assert response.status_code == 200, response.text


def choose_paths(base: Base) -> list[str]:
    """All of them in `make test-long`, every eighth otherwise."""
    paths = sorted({operation.path for operation in operations_of(base)})
    return paths if depth.is_long() else paths[::8]


@pytest.mark.parametrize("base", [base for base in Base if operations_of(base)])
async def test_no_response_is_a_500_or_outside_the_document(
    installation: Installation, database: Database, company: Environments, base: Base, tmp_path: Path
) -> None:
    # For every product. Without the right to revoke, because it would soon revoke itself.
    key = await make_key(database, company.test, scopes=[str(scope) for scope in Scope if scope != Scope.KEYS_DELETE])
    await introduce(installation, key.raw)
    (tmp_path / "schemathesis.toml").write_text(CONFIGURATION)
    command = [sys.executable, "-m", "schemathesis.cli", "run", f"{installation.address}{base}/openapi.json"]
    run = await asyncio.to_thread(
        subprocess.run,
        [*command, "--checks=all", *(f"--include-path={path}" for path in choose_paths(base))],
        cwd=tmp_path,
        env={**os.environ, "SAPA_KEY": key.raw, "SCHEMATHESIS_HOOKS": HOOKS},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
