import asyncio
import os
import pty
import stat
from io import StringIO
from pathlib import Path

import pytest

from sapa.access.actions import list_companies, list_keys
from sapa.access.types import DATA_SCOPES
from sapa.db.pool import open_database
from sapa.runtime.first_start import find_file, prepare
from sapa.runtime.processes import CannotStart
from sapa.settings import read_settings
from tests.conftest import Installation
from tests.db.scratch import migrated_database

EVERYWHERE = "0.0.0.0"  # noqa: S104


async def test_of_several_first_starts_at_once_one_makes_the_demo_company(installation: Installation) -> None:
    async with migrated_database(installation.server) as scratch:
        output = await asyncio.gather(*(prepare(scratch.app_url, read_settings({})) for _ in range(5)))
        assert await prepare(scratch.app_url, read_settings({})) is None
        async with open_database(scratch.app_url) as database, database.connection() as db:
            scopes = [set(key.scopes) for key in await list_keys(db, None)]
    assert scopes == [{*DATA_SCOPES}] * 2, "without those of management"
    (welcome,) = [text for text in output if text is not None]
    assert welcome.count("svc_live_") == 1
    assert "curl http://127.0.0.1:8000/customer/v1/customers -H 'x-api-key: svc_test_" in welcome


@pytest.mark.parametrize("host", [EVERYWHERE, "::", "192.0.2.1", "sapa.example.com"])
def test_keys_are_printed_on_the_loopback_or_to_a_terminal_only(host: str, tmp_path: Path) -> None:
    settings = read_settings({"SAPA_HOST": host, "SAPA_DATA": str(tmp_path)})
    assert find_file(settings, StringIO()) == tmp_path / "first-start.txt"
    primary, secondary = pty.openpty()
    with os.fdopen(secondary, "w") as terminal:
        assert find_file(settings, terminal) is None
    os.close(primary)
    assert find_file(read_settings({"SAPA_DATA": str(tmp_path)}), StringIO()) is None


async def test_keys_in_a_file_are_readable_by_its_owner_only(installation: Installation, tmp_path: Path) -> None:
    file = tmp_path / "data" / "first-start.txt"
    async with migrated_database(installation.server) as scratch:
        printed = await prepare(scratch.app_url, read_settings({}), file)
        assert await prepare(scratch.app_url, read_settings({}), file) is None
    assert printed is not None
    assert str(file) in printed
    assert "svc_" not in printed
    assert "/console/link/" not in printed
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    written = file.read_text()
    assert (written.count("svc_live_"), written.count("/console/link/")) == (1, 1)


async def test_a_file_that_others_made_before_is_replaced(installation: Installation, tmp_path: Path) -> None:
    file, elsewhere = tmp_path / "first-start.txt", tmp_path / "elsewhere"
    elsewhere.write_text("")
    file.symlink_to(elsewhere)
    async with migrated_database(installation.server) as scratch:
        await prepare(scratch.app_url, read_settings({}), file)
    assert elsewhere.read_text() == ""
    assert not file.is_symlink()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


async def test_without_a_place_for_the_keys_nothing_is_made(installation: Installation, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    async with migrated_database(installation.server) as scratch:
        with pytest.raises(CannotStart, match="Choose another folder with --data"):
            await prepare(scratch.app_url, read_settings({}), tmp_path / "taken" / "first-start.txt")
        async with open_database(scratch.app_url) as database, database.connection() as db:
            assert await list_companies(db) == []
