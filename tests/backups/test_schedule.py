"""Backups that the worker makes: when they are due, how many stay, and how an operator knows."""

import os
import re
import shutil
import sys
import time
from asyncio import create_subprocess_exec
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapa.backups.actions import NOT_THE_OWNER
from sapa.backups.jobs import RETRY_SECONDS, is_due
from sapa.backups.types import BackupRun, BackupState
from tests.backups.conftest import PASSPHRASE, Source
from tests.cli.command import sapa
from tests.conftest import Installation, start_installation, stop_installation
from tests.db.scratch import connect, migrated_database
from tests.http.wire import eventually

DAY = 86_400.0
SECONDS = 120
DONE = BackupRun(1, "2027-01-31T00:00:00.000Z", "2027-01-31T00:01:00.000Z", "done", "backups", 1, 1, None)
FAILED = BackupRun(2, "2027-01-31T00:00:00.000Z", "2027-01-31T00:01:00.000Z", "failed", "backups", 0, 0, "full")


@given(age=st.floats(0, 10 * DAY), every=st.integers(1, 720))
def test_a_backup_is_due_when_the_newest_one_is_old_enough(age: float, every: int) -> None:
    assert is_due(BackupState(DONE, DONE, age, age), every * 3600.0) == (age >= every * 3600.0)


@given(age=st.floats(0, 10 * DAY), since=st.floats(0, 10 * DAY))
def test_a_backup_that_failed_is_tried_again_within_an_hour(age: float, since: float) -> None:
    assert is_due(BackupState(DONE, FAILED, age, since), DAY) == (since >= RETRY_SECONDS)


def test_the_first_backup_is_due_at_once() -> None:
    assert is_due(BackupState(None, None, None, None), DAY)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A parent that the user of the embedded server can reach."""
    parent = Path(mkdtemp(prefix="sapa-scheduled-"))
    parent.chmod(0o755)
    yield parent
    shutil.rmtree(parent)


def read_metric(address: str, name: str) -> float | None:
    found = re.search(rf"^{name} (\S+)$", httpx.get(address, timeout=120).text, re.MULTILINE)
    return float(found[1]) if found else None


def test_the_worker_makes_a_backup_and_reports_its_age(folder: Path) -> None:
    variables = {"SAPA_BACKUP_URL": str(folder / "backups"), "SAPA_BACKUP_PASSPHRASE": PASSPHRASE}
    running = start_installation(folder / "data", None, **variables)
    try:
        ends = time.monotonic() + SECONDS
        while read_metric(running.metrics, "sapa_backup_failed") != 0:
            assert time.monotonic() < ends, "the metrics do not have the backup"
            time.sleep(0.2)
        assert 0 <= (read_metric(running.metrics, "sapa_backup_age_seconds") or -1) < 3600
        findings = {each["what"]: each for each in sapa(folder / "data", "doctor", "--json", **variables).json()}
        assert findings["backup"]["found"] == "the newest one is 0.0 hours old"
        assert findings["secrets"]["well"]
    finally:
        assert stop_installation(running) == 0
    (stored,) = sapa(folder / "data", "backup", "list", str(folder / "backups"), "--json").json()
    assert stored["rows"] > 0


@pytest.mark.long
def test_older_backups_are_deleted(source: Source, tmp_path: Path) -> None:
    abandoned = tmp_path / "sapa-20200101T000000000000Z" / "orders" / "000000.gz"
    abandoned.parent.mkdir(parents=True)
    abandoned.write_bytes(b"")
    (tmp_path / "notes").mkdir()
    names = [source.run("backup", str(tmp_path), "--keep", "2", "--json").json()["name"] for _ in range(3)]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["notes", *names[1:]]


def test_backups_are_not_listed_where_there_is_no_folder(source: Source, tmp_path: Path) -> None:
    assert "cannot be read" in source.run("backup", "list", str(tmp_path / "nowhere")).sentence()
    assert source.run("backup", "list", str(tmp_path), "--json").json() == []


async def test_a_backup_that_failed_is_reported(source: Source, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert "cannot be stored" in source.run("backup", str(tmp_path / "file")).sentence()
    outcome = source.run("doctor", "--json")
    assert outcome.code == 1
    assert "the last one failed: The backup cannot be stored" in outcome.out
    assert source.run("backup", str(tmp_path / "good"), "--json").code == 0
    assert source.run("doctor", "--json").code == 0
    async with connect(source.database.owner_url) as db:
        await db.execute("DELETE FROM backup_runs")


@pytest.mark.long
async def test_a_backup_that_cannot_begin_is_recorded_and_tried_again_later(
    installation: Installation, tmp_path: Path
) -> None:
    """The worker knows the database as the product's role only, which may not read everything."""
    async with migrated_database(installation.server) as scratch, connect(scratch.owner_url) as db:
        variables = {
            "SAPA_DATABASE_URL": scratch.app_url,
            "SAPA_SECRET_KEY": installation.server.secret_key,
            "SAPA_BACKUP_URL": str(tmp_path),
            "SAPA_BACKUP_PASSPHRASE": PASSPHRASE,
        }
        worker = await create_subprocess_exec(sys.executable, "-m", "sapa", "worker", env=os.environ | variables)
        try:
            run = await eventually(lambda: db.fetchrow("SELECT place, error FROM backup_runs WHERE status = 'failed'"))
        finally:
            worker.terminate()
            assert await worker.wait() == 0
        assert tuple(run) == (str(tmp_path), NOT_THE_OWNER)
        assert f"the last one failed: {NOT_THE_OWNER}" in sapa(tmp_path, "doctor", "--json", **variables).out


def test_doctor_notices_a_key_that_opens_nothing(source: Source) -> None:
    outcome = source.run("doctor", "--json", SAPA_SECRET_KEY="b3RoZXIgb3RoZXIgb3RoZXIgb3RoZXIgb3RoZXIgISE=")
    assert outcome.code == 1
    assert "no key opens 2 of 2 stored secrets" in outcome.out
