"""A command's module is imported when it runs."""

import subprocess
import sys
from pathlib import Path

import pytest

from sapa.cli.command_table import COMMANDS
from sapa.domains import ROUTES
from sapa.events import CATALOGUE
from tests.cli.command import sapa, sapa_process


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_its_help(name: str, tmp_path: Path) -> None:
    shown = sapa(tmp_path, name, "--help")
    assert (shown.code, shown.err) == (0, "")
    assert f" {name} [OPTIONS]" in shown.out


def test_the_help_lists_every_command(tmp_path: Path) -> None:
    words = sapa(tmp_path, "--help").out.split()
    assert set(COMMANDS) <= set(words)


def test_an_unknown_command_suggests_one_that_exists(tmp_path: Path) -> None:
    refused = sapa(tmp_path, "srve")
    assert refused.code == 2
    assert "Did you mean 'serve'" in refused.err


def test_serve_imports_the_domains_once_for_all_its_processes() -> None:
    """They are forked from it, and share the memory of what it has imported."""
    look = "import sys, sapa.cli.serve; sys.exit('sapa.domains' not in sys.modules)"
    assert subprocess.run([sys.executable, "-c", look]).returncode == 0


def test_a_command_that_sends_nothing_loads_no_http_library() -> None:
    look = "import sys, sapa.cli.import_, sapa.wiring; sys.exit('aiohttp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", look]).returncode == 0


def test_a_command_of_its_own_process_knows_every_kind_of_event(tmp_path: Path) -> None:
    assert ROUTES, "the domains are imported here, and with them every kind is declared"
    shown = sapa_process(tmp_path, "webhook", "events", "--json").json()
    assert [row["event"] for row in shown] == sorted(CATALOGUE)
