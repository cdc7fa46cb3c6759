"""`sapa database distribute` on a filled database: killed in the middle and run again, it loses nothing."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from unittest.mock import patch

import pytest

from sapa.db.pool import open_database
from sapa.demo import shop
from tests.backups.test_restore import read_everything
from tests.citus.cluster import URL, build_url, plain_database
from tests.cli.command import environment, sapa, sapa_process
from tests.conftest import Installation

pytestmark = pytest.mark.skipif(URL is None, reason="no Citus cluster was given")

DISTRIBUTE = ("database", "distribute", "--shards", "4")


@pytest.fixture
async def filled() -> AsyncIterator[str]:
    """The name of a database with a shop, on one server."""
    async with plain_database() as name:
        async with open_database(build_url(name, "sapa_app")) as database:
            with patch.object(shop, "CUSTOMERS", 1_000), patch.object(shop, "ORDERS", 3_000):
                await shop.fill(database, lambda *_: None)
        yield name


async def test_a_distribution_that_was_killed_goes_on_and_no_row_is_lost(filled: str, tmp_path: Path) -> None:
    urls = {
        "SAPA_DATABASE_URL": build_url(filled, "sapa_app"),
        "SAPA_DATABASE_OWNER_URL": build_url(filled, "sapa_owner"),
    }
    before = await read_everything(urls["SAPA_DATABASE_OWNER_URL"])
    assert len(before["orders"]) == 3_000
    reported = await asyncio.to_thread(kill_in_the_middle, environment(tmp_path, urls))
    assert 20 <= len(reported) < 100

    second = await asyncio.to_thread(sapa_process, tmp_path, *DISTRIBUTE, **urls)
    assert second.code == 0, second.err
    distributed = [line for line in second.out.splitlines() if line.startswith("distributed ")]
    assert distributed
    assert not {read_table(line) for line in distributed} & {read_table(line) for line in reported}
    assert await read_everything(urls["SAPA_DATABASE_OWNER_URL"]) == before
    third = await asyncio.to_thread(sapa_process, tmp_path, *DISTRIBUTE, **urls)
    assert third.out == "All tables are distributed.\n"


def kill_in_the_middle(variables: dict[str, str]) -> list[str]:
    """What it had reported by then."""
    command = [sys.executable, "-m", "sapa", *DISTRIBUTE]
    with subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, text=True, bufsize=1) as process:
        assert process.stdout is not None
        reported = [process.stdout.readline() for _ in range(20)]
        process.kill()
        return reported + process.stdout.readlines()


def read_table(line: str) -> str:
    return line.removeprefix("distributed ").partition(",")[0]


def test_a_database_without_citus_is_refused(installation: Installation, tmp_path: Path) -> None:
    urls = {"SAPA_DATABASE_URL": build_url("template1", "sapa_app")}
    assert "The database has no Citus" in sapa(tmp_path, *DISTRIBUTE, **urls).sentence()


def test_the_embedded_database_is_not_distributed(tmp_path: Path) -> None:
    assert "one machine" in sapa(tmp_path, *DISTRIBUTE).sentence()
