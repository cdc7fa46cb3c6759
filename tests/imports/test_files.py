"""Files that the commands read and write: none is lost, and errors name the file."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sapa.db.pool import Database
from tests.cli.command import Outcome, sapa, sapa_process
from tests.conftest import Installation
from tests.factories import Environments
from tests.imports.files import read, read_errors, run_import, write
from tests.imports.test_command import build_file, end_out_of_reach, start_import, wait_for_progress

CONTENT = "email\na@example.com\nnobody\n"
OURS = "line,field,reason\r\n7,email,is wrong\r\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write(tmp_path / "customers.csv", CONTENT)


def start(installation: Installation, company: Environments, file: Path | str, *options: str) -> Outcome:
    arguments = ("import", "customers", str(file), "--company", str(company.live), *options)
    return sapa(installation.data, *arguments)


async def count_imports(database: Database, company: Environments) -> int:
    async with database.connection() as db:
        return int(await db.fetchval("SELECT count(*) FROM imports WHERE company_id = $1", company.live))


def list_names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def is_null_a_device() -> bool:
    return Path("/dev/null").is_char_device()


@pytest.mark.parametrize("link", ["itself", "hard", "symbolic"])
async def test_the_file_to_import_is_never_the_error_file(
    installation: Installation, company: Environments, database: Database, file: Path, link: str
) -> None:
    errors = file if link == "itself" else file.with_name("link.csv")
    if link == "hard":
        errors.hardlink_to(file)
    elif link == "symbolic":
        errors.symlink_to(file)
    assert "is the file to import" in start(installation, company, file, "--errors", str(errors)).sentence()
    assert read(file) == read(errors) == CONTENT.encode()
    assert await count_imports(database, company) == 0


@pytest.mark.parametrize("content", ["dear diary\n", "", "line,field,reasons\n", "line,field"])
async def test_a_file_that_is_not_an_error_file_is_not_overwritten(
    installation: Installation, company: Environments, database: Database, file: Path, content: str
) -> None:
    errors = write(file.with_name("notes.txt"), content)
    assert "not an error file" in start(installation, company, file, "--errors", str(errors)).sentence()
    assert read(errors) == content.encode()
    assert await count_imports(database, company) == 0


async def test_an_earlier_error_file_is_replaced_and_removed_also_through_links(
    installation: Installation, company: Environments, file: Path
) -> None:
    errors, link = write(file.with_name("errors.csv"), OURS), file.with_name("link.csv")
    link.symlink_to(errors)
    assert start(installation, company, file, "--errors", str(link)).code == 2
    assert link.is_symlink()
    assert [line for line, _, _ in read_errors(str(errors))] == [3]
    write(file, "email\nb@example.com\n")
    assert start(installation, company, file, "--errors", str(link)).code == 0
    assert not errors.exists()
    assert list_names(file.parent) == ["customers.csv", "link.csv"]


@pytest.mark.parametrize("errors", ["missing/errors.csv", "customers.csv/errors.csv", ".", "/proc/errors.csv"])
async def test_an_unwritable_error_file_is_refused_before_the_first_row(
    installation: Installation, company: Environments, database: Database, file: Path, errors: str
) -> None:
    sentence = start(installation, company, file, "--errors", str(file.parent / errors)).sentence()
    assert "rror" in sentence or "cannot be used" in sentence
    assert "database" not in sentence
    assert await count_imports(database, company) == 0


async def test_errors_may_go_to_a_device(installation: Installation, company: Environments, file: Path) -> None:
    assert start(installation, company, file, "--errors", "/dev/null").code == 2
    assert is_null_a_device()


async def test_only_a_file_can_be_imported(installation: Installation, company: Environments, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    assert "a file is needed" in start(installation, company, tmp_path / "pipe.csv").sentence()
    for folder in (".", str(tmp_path), "/"):
        assert "is a folder" in start(installation, company, folder, "--format", "csv").sentence()


async def test_exports_are_written_to_devices_and_through_links_and_not_over_folders(
    installation: Installation, company: Environments, tmp_path: Path
) -> None:
    target, link = write(tmp_path / "old.csv", "old"), tmp_path / "link.csv"
    link.symlink_to(target)
    (tmp_path / "null").symlink_to("/dev/null")
    for output in (link, tmp_path / "null", Path("/dev/null")):
        done = export(installation, company, output)
        assert done.code == 0, done.err
    assert "folder" in export(installation, company, tmp_path).sentence()
    assert link.is_symlink()
    assert read(target).startswith(b"id,externalId")
    assert is_null_a_device()
    assert list_names(tmp_path) == ["link.csv", "null", "old.csv"]


def export(installation: Installation, company: Environments, output: Path) -> Outcome:
    return sapa(installation.data, "export", "customers", "--company", str(company.live), "--output", str(output))


@pytest.mark.long
async def test_an_export_to_a_full_device_is_reported(installation: Installation, company: Environments) -> None:
    done = sapa_process(
        installation.data, "export", "customers", "--company", str(company.live), "--output", "/dev/full"
    )
    assert "cannot be written" in done.sentence()


async def test_an_interrupted_import_says_how_to_resume(
    installation: Installation, company: Environments, database: Database, tmp_path: Path
) -> None:
    path, _ = build_file(tmp_path / "many.csv", 20_000, 0)
    async with end_out_of_reach(database, company.live, 19_500):
        process = start_import(installation, company.live, path)
        await wait_for_progress(database, company.live, 0)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, b"", b"sapa: Stopped. Run the same command again to resume.\n")
    assert run_import(installation, company.live, path, "customers").counts == (20_000, 0, 0, 0)


async def test_the_same_file_in_another_format_is_another_import(
    installation: Installation, company: Environments, database: Database, tmp_path: Path
) -> None:
    path = write(tmp_path / "some", '{"email": "a@example.com"}\n')
    async with database.transaction() as tx:
        await tx.execute(
            """INSERT INTO imports (company_id, id, resource, format, dry_run, is_upload, fingerprint, size, position)
               SELECT $1, 'imp_left', 'customers', 'csv', false, false, sha256($2), length($2), length($2)""",
            company.live,
            path.read_bytes(),
        )
    assert run_import(installation, company.live, path, "customers", "--format", "ndjson").counts == (1, 0, 0, 0)


@pytest.mark.long
def test_an_export_into_a_closed_pipe_ends_without_a_trace(installation: Installation, company: Environments) -> None:
    command = f"{sys.executable} -m sapa export customers --company {company.live} | true; exit ${{PIPESTATUS[0]}}"
    env = {**os.environ, "SAPA_DATA": str(installation.data), "PYTHONUNBUFFERED": "1"}
    done = subprocess.run(["bash", "-c", command], env=env, capture_output=True, text=True, timeout=60)
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    assert "database" not in done.stderr
