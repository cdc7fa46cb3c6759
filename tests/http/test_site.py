"""What is not the API itself: health and metrics."""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from shutil import copytree

import httpx
import pytest
from structlog.testing import capture_logs

from sapa.console.routes import COOKIE
from sapa.db.migrations import migrate
from sapa.db.migrations.files import FOLDER, list_migrations
from sapa.db.pool import Database, open_database
from sapa.http.metrics_page import CACHE_SECONDS
from tests.conftest import TLS, Installation
from tests.db.scratch import connect, migrated_database
from tests.factories import Environments, make_key
from tests.http.probe import open_app
from tests.http.wire import eventually, send


@pytest.fixture(scope="module")
def root(installation: Installation) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=installation.address, timeout=120, verify=TLS) as client:
        yield client


def read_metrics(installation: Installation) -> str:
    return httpx.get(installation.metrics, verify=TLS, timeout=120).text


def total(installation: Installation, name: str, **labels: str) -> float:
    """The sum of a metric's samples that have these labels."""
    lines = read_metrics(installation).splitlines()
    found = [re.fullmatch(rf"{name}(?:\{{(.*)\}})? (\S+)", line) for line in lines]
    samples = [(dict(re.findall(r'(\w+)="([^"]*)"', match[1] or "")), float(match[2])) for match in found if match]
    return sum(number for value, number in samples if labels.items() <= value.items())


def settled_total(installation: Installation, name: str, **labels: str) -> float:
    """After the calls of earlier tests are counted and shown."""
    time.sleep(CACHE_SECONDS + 1)
    return total(installation, name, **labels)


async def wait_for_total(installation: Installation, wanted: float, name: str, **labels: str) -> None:
    """Calls are counted some moments after they were answered, many together."""

    async def look() -> bool | None:
        return total(installation, name, **labels) >= wanted or None

    await eventually(look)


def test_healthz_says_that_the_process_runs(root: httpx.Client) -> None:
    response = root.get("/healthz")
    assert (response.status_code, response.json()) == (200, {"status": "ok"})


def test_readyz_says_that_database_and_schema_are_there(root: httpx.Client) -> None:
    response = root.get("/readyz")
    assert (response.status_code, response.json()) == (200, {"status": "ready"})


async def test_readyz_is_a_503_while_the_schema_is_another_version_s(installation: Installation) -> None:
    """In a schema of its own, which stands before the real one: a newer migration than this version knows."""
    async with open_database(installation.server.owner_url) as database, database.connection() as owner:
        await owner.execute("CREATE SCHEMA elsewhere")
        try:
            await owner.execute(
                "CREATE TABLE elsewhere.schema_migrations (number integer, runs_with_code_since integer)"
            )
            await owner.execute("INSERT INTO elsewhere.schema_migrations VALUES (9999, 9999)")
            await owner.execute("GRANT USAGE ON SCHEMA elsewhere TO sapa_app")
            await owner.execute("GRANT SELECT ON elsewhere.schema_migrations TO sapa_app")
            url = installation.server.app_url + "&search_path=elsewhere,public"
            async with open_app(installation, [], SAPA_DATABASE_URL=url) as client:
                response = await client.get("http://probe/readyz")
        finally:
            await owner.execute("DROP SCHEMA elsewhere CASCADE")
    assert (response.status_code, response.json()["error"]["code"]) == (503, "SERVICE_UNAVAILABLE")
    assert "too old" in response.json()["error"]["message"]


@pytest.mark.parametrize(("header", "status"), [("-- runs with code since: {own:04}\n", 200), ("", 503)])
async def test_readyz_after_a_newer_version_migrated_the_database(
    installation: Installation, tmp_path: Path, header: str, status: int
) -> None:
    """A rolling upgrade: this version runs on until a migration says that it no longer can."""
    own = len(list_migrations())
    newer = tmp_path / "newer"
    copytree(FOLDER, newer)
    text = (
        f"{header.format(own=own)}SET LOCAL lock_timeout = '5s';\n\nALTER TABLE customers ADD COLUMN nickname text;\n"
    )
    (newer / f"{own + 1:04}_nicknames.sql").write_text(text)
    async with migrated_database(installation.server) as scratch:
        async with open_app(installation, [], SAPA_DATABASE_URL=scratch.app_url) as client:
            assert (await client.get("http://probe/readyz")).status_code == 200
            assert await migrate(scratch.owner_url, scratch.app_url, newer) == [f"{own + 1:04}_nicknames"]
            assert (await client.get("http://probe/readyz")).status_code == status
        async with open_app(installation, [], SAPA_DATABASE_URL=scratch.app_url) as client:
            assert (await client.get("http://probe/readyz")).status_code == status


async def test_readyz_is_a_503_while_the_database_is_behind(installation: Installation) -> None:
    async with migrated_database(installation.server) as scratch:
        async with connect(scratch.owner_url) as owner:
            await owner.execute("DELETE FROM schema_migrations WHERE number = $1", len(list_migrations()))
        async with open_app(installation, [], SAPA_DATABASE_URL=scratch.app_url) as client:
            response = await client.get("http://probe/readyz")
    assert response.status_code == 503
    assert "sapa migrate" in response.json()["error"]["message"]


async def test_readyz_is_a_503_while_there_is_no_schema_at_all(installation: Installation) -> None:
    url = installation.server.app_url + "&search_path=pg_temp"
    async with open_app(installation, [], SAPA_DATABASE_URL=url) as client:
        response = await client.get("http://probe/readyz")
    assert (response.status_code, response.json()["error"]["code"]) == (503, "SERVICE_UNAVAILABLE")


@pytest.mark.parametrize("path", ["/console", f"/hooks/channels/hook_1_{43 * 'a'}"])
async def test_the_log_line_of_a_page_that_failed_has_the_request_id_of_the_response(
    installation: Installation, path: str
) -> None:
    """On a database without tables, where every page that reads one fails."""
    url = installation.server.app_url + "&search_path=pg_temp"
    async with open_app(installation, [], SAPA_DATABASE_URL=url) as client:
        with capture_logs() as lines:
            response = await client.get(f"http://probe{path}", headers={"cookie": f"{COOKIE}=stale"})
    assert response.status_code == 500
    (line,) = [line for line in lines if line["log_level"] == "error"]
    assert line["exc_info"]
    assert line["request_id"] == response.headers["x-request-id"]


async def test_metrics_count_calls_by_route_and_status_over_all_processes(
    installation: Installation, database: Database, company: Environments
) -> None:
    key = await make_key(database, company.live)
    place = {"method": "GET", "route": "/customer/v1/customers/{id}"}
    before = settled_total(installation, "sapa_http_requests_total", **place, status="404")
    timed = total(installation, "sapa_http_request_seconds_count", **place)
    for number in range(20):
        send(installation, "GET", f"/customers/unknown-{number}", [("x-api-key", key.raw)])
    await wait_for_total(installation, timed + 20, "sapa_http_request_seconds_count", **place)
    assert total(installation, "sapa_http_requests_total", **place, status="404") == before + 20
    assert total(installation, "sapa_http_request_seconds_count", **place) == timed + 20


def test_metrics_have_histograms_pool_and_queue_ages(installation: Installation) -> None:
    response = httpx.get(installation.metrics, verify=TLS)
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/plain")
    for name in (
        "sapa_http_request_seconds_bucket", "sapa_database_up", "sapa_pool_connections", "sapa_pool_idle",
        "sapa_counter_oldest_seconds", "sapa_counter_waiting", "sapa_worker_unseen_seconds",
    ):  # fmt: skip
        assert re.search(rf"^{name}[ {{]", response.text, re.MULTILINE), name
    assert total(installation, "sapa_database_up") == 1


def test_no_sample_appears_twice(installation: Installation) -> None:
    lines = read_metrics(installation).splitlines()
    samples = [line.rpartition(" ")[0] for line in lines if not line.startswith("#")]
    assert sorted(samples) == sorted(set(samples))


def test_every_metric_is_described_once(installation: Installation) -> None:
    described = [line for line in read_metrics(installation).splitlines() if line.startswith(("# TYPE", "# HELP"))]
    assert sorted(described) == sorted(set(described))


async def test_what_callers_make_up_does_not_become_a_label(installation: Installation) -> None:
    """Else anybody could fill the memory of the processes, and of whoever collects."""
    unknown = {"route": "unknown", "status": "401"}
    before = total(installation, "sapa_http_requests_total", **unknown)
    for number in range(30):
        send(installation, f"BREW{number}", f"/nowhere-{number}", [("x-api-key", f"key-{number}")])
    await wait_for_total(installation, before + 30, "sapa_http_requests_total", **unknown)
    text = read_metrics(installation)
    assert "nowhere-" not in text
    assert "BREW" not in text
    assert "key-1" not in text


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_pages_allow_get_and_head_only(root: httpx.Client, path: str) -> None:
    assert root.head(path).status_code == 200
    refused = root.post(path)
    assert (refused.status_code, refused.json()["error"]["code"]) == (405, "METHOD_NOT_ALLOWED")
    assert set(re.split(r",\s*", refused.headers["allow"])) == {"GET", "HEAD"}


async def test_a_page_that_needs_a_missing_secret_key_says_so(installation: Installation) -> None:
    async with open_app(installation, []) as client:
        response = await client.get("http://probe/media/QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo")
    assert response.status_code == 503
    assert "SAPA_SECRET_KEY" in response.json()["error"]["message"]
