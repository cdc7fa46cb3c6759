"""Commands without a server: each starts the data folder's database while it runs."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import psutil
import pytest

from sapa import __version__
from tests.cli.command import sapa, sapa_process
from tests.conftest import Installation, free_port

EVERYWHERE = "0.0.0.0"  # noqa: S104

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("alone") / "data"
    yield folder
    assert not running_on(folder), "no command leaves a database behind"


def running_on(folder: Path) -> list[str]:
    lines = (" ".join(process.info["cmdline"] or []) for process in psutil.process_iter(["cmdline"]))
    return [line for line in lines if str(folder) in line and "postgres" in line]


def test_the_first_command_makes_the_database_and_the_next_finds_what_it_left(data: Path) -> None:
    created = sapa_process(data, "company", "create", "Toko", "--json").json()
    assert not running_on(data)
    options = ["--company", str(created["testCompanyId"]), "--name", "k", "--all-scopes", "--json"]
    key = sapa(data, "key", "create", *options).json()
    assert [row["id"] for row in sapa(data, "key", "list", "--json").json()] == [key["id"]]
    assert not running_on(data)


def test_a_command_in_the_wrong_folder_says_so_and_makes_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    for command in (["company", "list"], ["key", "list"], ["doctor"], ["backup", "create", str(tmp_path / "backups")]):
        assert sapa(folder, *command).sentence().startswith(f"There is no installation in {folder}.")
    assert not folder.exists()


@pytest.mark.long
def test_migrate_says_what_it_did_and_then_that_there_is_nothing_to_do(tmp_path: Path) -> None:
    first, second = sapa_process(tmp_path / "data", "migrate"), sapa(tmp_path / "data", "migrate")
    assert (first.code, second.code) == (0, 0)
    assert first.out.startswith("applied 0001_")
    assert second.out == "The schema is up to date.\n"


@pytest.mark.long
def test_commands_at_the_same_time_take_turns(data: Path) -> None:
    with ThreadPoolExecutor(3) as pool:
        runs = [pool.submit(sapa_process, data, "company", "create", f"Toko {n}", "--json") for n in range(3)]
    assert {run.result().json()["name"] for run in runs} == {"Toko 0", "Toko 1", "Toko 2"}


def test_doctor_finds_everything_well(data: Path) -> None:
    outcome = sapa(data, "doctor", "--json")
    findings = {finding["what"]: finding for finding in outcome.json()}
    assert {"settings", "database", "version", "extensions", "clock", "schema"} <= set(findings)
    assert all(finding["well"] for finding in findings.values())
    assert str(data) in findings["settings"]["found"]


def test_doctor_shows_people_a_table(data: Path) -> None:
    outcome = sapa(data, "doctor")
    assert outcome.code == 0
    assert "✓" in outcome.out
    assert "✗" not in outcome.out


def test_doctor_shows_addresses_in_brackets_whole(data: Path) -> None:
    assert "http://[fd00::1]:9100/metrics" in sapa(data, "doctor", SAPA_METRICS_LISTEN="[fd00::1]:9100").out


def test_doctor_warns_of_what_is_open_to_a_network(data: Path) -> None:
    variables = {"SAPA_PUBLIC_URL": "http://sapa.example.com", "SAPA_METRICS_LISTEN": f"{EVERYWHERE}:9100"}
    outcome = sapa(data, "doctor", "--json", SAPA_HOST=EVERYWHERE, **variables)
    findings = {finding["what"]: finding for finding in outcome.json()}
    for what in ("network", "metrics", "public URL"):
        assert (findings[what]["well"], findings[what]["warning"]) == (False, True)
        assert findings[what]["mend"]
    assert "!" in sapa(data, "doctor", SAPA_HOST=EVERYWHERE).out


def test_doctor_looks_at_connections_and_the_workers_address(data: Path, installation: Installation) -> None:
    variables = {
        "SAPA_DATABASE_URL": installation.server.app_url,
        "SAPA_SECRET_KEY": installation.server.secret_key,
        "SAPA_WORKER_LISTEN": f"127.0.0.1:{free_port()}",
    }
    outcome = sapa(data, "doctor", "--json", SAPA_PROCESSES="1", **variables)  # may find what other tests left
    findings = {one["what"]: one for one in msgspec.json.decode(outcome.out)}
    assert findings["connections"]["well"]
    assert findings["worker address"]["found"].startswith("not running")
    outcome = sapa(data, "doctor", "--json", SAPA_PROCESSES="60", **variables)
    (connections,) = [one for one in msgspec.json.decode(outcome.out) if one["what"] == "connections"]
    assert (outcome.code, connections["well"]) == (1, False)
    assert "SAPA_DATABASE_POOL" in connections["mend"]


def test_the_fields_of_each_channel_are_listed(data: Path) -> None:
    fields = {row["source"]: row["fields"] for row in sapa(data, "channel", "sources", "--json").json()}
    assert {"phone_number_id", "access_token", "verify_token?"} <= set(fields["MSGAPP_CLOUD"])


def test_the_size_of_each_table_is_listed(data: Path) -> None:
    sizes = {row["table"]: row for row in sapa(data, "database", "size", "--json").json()}
    assert {"orders", "messages", "events", "audit_entries"} <= set(sizes)
    assert all(row["bytes"] > 0 for row in sizes.values())


def test_doctor_says_what_to_fix_when_the_database_is_away(data: Path) -> None:
    outcome = sapa(data, "doctor", "--json", SAPA_DATABASE_URL="postgresql://sapa@127.0.0.1:1/sapa")
    assert outcome.code == 1
    assert "Traceback" not in outcome.err
    findings = {finding["what"]: finding for finding in msgspec.json.decode(outcome.out)}
    assert findings["database"]["well"] is False
    assert findings["database"]["mend"] == "Start PostgreSQL, or correct SAPA_DATABASE_URL."


@pytest.mark.parametrize("url", ["postgresql://sapa@127.0.0.1:1/sapa", "postgresql://sapa@no.such.host.invalid/sapa"])
def test_a_database_that_is_away_is_one_sentence(data: Path, url: str) -> None:
    for command in (["company", "list", "--json"], ["migrate"]):
        message = sapa(data, *command, SAPA_DATABASE_URL=url).sentence()
        assert message.startswith("The database cannot be used: ")
        assert message.endswith("Run `sapa doctor` for details.")


@pytest.mark.parametrize("url", ["nonsense", "mysql://x/y", "postgresql://[::1/x", "postgresql://h:port/x"])
def test_an_invalid_address_is_one_sentence(data: Path, url: str) -> None:
    for command in (["company", "list"], ["migrate"]):
        assert sapa(data, *command, SAPA_DATABASE_URL=url).sentence()


def test_an_unusable_setting_is_one_sentence(data: Path) -> None:
    message = sapa_process(data, "company", "list", SAPA_PORT="none").sentence()
    assert message == "SAPA_PORT must be a whole number from 1 to 65535, not 'none'."


def test_an_unusable_data_folder_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert "cannot be used" in sapa(tmp_path / "file" / "data", "company", "create", "Toko").sentence()
    assert "cannot be used" in sapa(tmp_path / "file", "company", "list").sentence()


@pytest.mark.parametrize("command", ["api", "worker"])
def test_processes_that_need_a_database_address_say_so(data: Path, command: str) -> None:
    assert "SAPA_DATABASE_URL" in sapa(data, command).sentence()


def test_version_and_help_need_nothing(tmp_path: Path) -> None:
    for way in ("version", "--version"):
        assert sapa(tmp_path / "unused", way).out == f"{__version__}\n"
    help_text = sapa(tmp_path / "unused", "--help")
    assert help_text.code == 0
    for noun in ("company", "key", "clock", "serve", "api", "worker", "migrate", "doctor"):
        assert noun in help_text.out
    assert not (tmp_path / "unused").exists()
