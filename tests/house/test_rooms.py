"""The import contracts hold, and a planted arrow in the wrong direction breaks them."""

import os
import subprocess
import sys
from pathlib import Path
from shutil import copytree

import pytest

from tests.house.source_tree import SOURCE

ROOT = SOURCE.parents[1]
CONTRACTS = ROOT / ".importlinter"


def check_contracts(source: Path) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("lint-imports")
    return subprocess.run(
        [program, "--config", CONTRACTS, "--no-cache"],
        cwd=source,
        env={**os.environ, "PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_contracts_are_kept() -> None:
    run = check_contracts(SOURCE.parent)
    assert run.returncode == 0, run.stdout


@pytest.mark.parametrize(
    ("module", "line", "broken"),
    [
        (
            "customers/actions.py",
            "from sapa.orders import types",
            "sapa.customers is not allowed to import sapa.orders",
        ),
        ("messaging/contacts/actions.py", "from sapa.messaging.sending import types", "sapa.messaging.contacts"),
        ("shipping/areas/actions.py", "from sapa.shipping.bookings import types", "sapa.shipping.areas"),
        ("orders/queries.py", "from sapa.orders import actions", "sapa.orders.queries"),
        ("outbound/client.py", "from sapa.http import errors", "sapa.outbound is not allowed to import sapa.http"),
    ],
)
def test_a_planted_arrow_is_seen(tmp_path: Path, module: str, line: str, broken: str) -> None:
    copied = copytree(
        SOURCE, tmp_path / "sapa", ignore=lambda _, names: [name for name in names if name == "__pycache__"]
    )
    path = copied / module
    path.write_text(path.read_text() + f"\n{line}  # noqa\n")
    run = check_contracts(tmp_path)
    assert run.returncode == 1
    assert broken in run.stdout
