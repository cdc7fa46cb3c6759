"""Schemathesis plays an inventive caller: valid, invalid and chained calls made from the documents alone."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sapa.db.pool import Database
from sapa.http.endpoints import Base
from tests import depth
from tests.conftest import Installation
from tests.factories import Environments, make_key
from tests.http.response_check import operations_of

# A schema cannot say what a phone number is, so most calls are given real ones. A valid body may still be refused: for
# an e-mail address that exists, or for fields that contradict each other.
CONFIGURATION = f"""
seed = 1
continue-on-failure = true
color = false

[auth.openapi.apiKey]
api_key = "${{SAPA_KEY}}"

[generation]
max-examples = {depth.examples(20)}
database = "none"
allow-x00 = false
with-security-parameters = false

# Calls at the limits of every field: about half of the time that a whole run takes.
[phases.coverage]
enabled = {str(depth.is_long()).lower()}

[phases.stateful.generation]
max-examples = {depth.examples(80)}

[dictionaries.phones]
values = {[f"+62812{number:07}" for number in range(5000)]}

[parameters]
"body.phoneNumber" = {{ dictionary = "phones", probability = 0.9 }}

[[operations]]
include-method = ["POST", "PUT", "PATCH"]
checks.positive_data_acceptance.expected-statuses = ["2xx", 400, 404, 409]

# Cursors are ours to make, and only one of them can be given.
[[operations]]
include-path = "/loyalty/customers/{{customerId}}/timeline"
checks.positive_data_acceptance.expected-statuses = ["2xx", 400, 404]

# Which places there are, only the carriers know; and whether cities need a province depends on the provider.
[[operations]]
include-path-regex = "^/shipping/coverage/"
checks.positive_data_acceptance.expected-statuses = ["2xx", 400, 404, 409]

# Where to go back from is ours to say, too.
[[operations]]
include-path = "/tickets/{{id}}"
checks.positive_data_acceptance.expected-statuses = ["2xx", 400, 404, 409]

# A window may end before it begins.
[[operations]]
include-path-regex = "^/analytics/"
checks.positive_data_acceptance.expected-statuses = ["2xx", 400, 404]
"""


@pytest.mark.parametrize("base", [base for base in Base if operations_of(base)])
async def test_no_response_is_a_500_or_outside_the_document(
    installation: Installation, database: Database, company: Environments, base: Base, tmp_path: Path
) -> None:
    key = await make_key(database, company.test)
    (tmp_path / "schemathesis.toml").write_text(CONFIGURATION)
    run = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "schemathesis.cli", "run", f"{installation.address}{base}/openapi.json", "--checks=all"],
        cwd=tmp_path,
        env={**os.environ, "SAPA_KEY": key.raw},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
