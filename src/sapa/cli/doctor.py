"""`sapa doctor`: checks what the installation needs, and says what to fix."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator

import asyncpg
import msgspec
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sapa.backups.actions import get_state
from sapa.backups.types import BackupState
from sapa.cli.connect import AsJson, get_secret_key, reach_database
from sapa.db.connection import DatabaseAway
from sapa.db.migrations import BEHIND, OLDEST_POSTGRESQL, find_mismatch
from sapa.db.pool import Connection, Database
from sapa.db.pooler import REASON, shares_sessions
from sapa.domains import SEALED_TABLES
from sapa.outbound.bucket import Bucket, BucketFailed, parse_address
from sapa.runtime import metrics_address
from sapa.runtime.connection_budget import count_connections
from sapa.runtime.exposure import list_exposures
from sapa.settings import BackupSettings, BadSetting, Settings, read_settings
from sapa.values.sealing import BadSecretKey, ProbeVault
from sapa.work import rotation

EXTENSIONS = ("pg_trgm", "btree_gin")
NEWEST_POSTGRESQL = 18
MAX_SKEW_SECONDS = 2.0
PROBE_SECONDS = 10.0
_CONNECTION_LIMIT = """
    SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
           - coalesce(current_setting('reserved_connections', true)::int, 0)"""

# Each process has one listener, on whatever machine it runs.
_RUNNING = """
    SELECT count(*) FILTER (WHERE application_name = 'sapa api listener') AS processes,
           count(*) FILTER (WHERE application_name = 'sapa worker listener') AS workers
      FROM pg_stat_activity
     WHERE datname = current_database()"""


class Finding(msgspec.Struct, frozen=True, rename={"fix": "mend"}):
    """One check: its result, and what to do if it failed. Programs that read the JSON know `fix` by an older name."""

    what: str
    well: bool
    found: str
    fix: str = ""
    warning: bool = False
    """Works, but should be changed: the exit code stays 0."""


def doctor(json: AsJson = False) -> None:
    """Check the database, its version and extensions, the clock and the settings, and say what to fix."""
    findings = asyncio.run(_run_checks())
    if json:
        typer.echo(msgspec.json.format(msgspec.json.encode(findings), indent=2).decode())
    else:
        _print(findings)
    sys.exit(0 if all(finding.well or finding.warning for finding in findings) else 1)


async def _run_checks() -> list[Finding]:
    settings = read_settings()
    findings = [_check_settings(settings), await _check_metrics(settings)]
    findings += [Finding(each.what, False, each.found, each.fix, warning=True) for each in list_exposures(settings)]
    if settings.worker.listen is not None:
        findings.append(await _check_worker(*settings.worker.listen))
    if settings.files.url is not None:
        findings.append(await _check_bucket(Bucket(parse_address(settings.files.url))))
    try:
        async with reach_database() as database, database.connection() as db:
            findings += [finding async for finding in _check_database(db)]
            is_shared = await shares_sessions(database.url)
            found = "lent out by a connection pooler" if is_shared else "of its own"
            findings.append(Finding("sessions", not is_shared, found, REASON))
            if settings.database.url is not None:  # the embedded server's limit follows from the settings
                findings.append(await _check_connections(db, settings))
            if all(finding.well for finding in findings if finding.what in {"extensions", "schema"}):
                findings.append(_check_backups(settings.backups, await get_state(db)))
                findings.append(await _check_secrets(database))
    except (DatabaseAway, OSError, asyncpg.PostgresError) as error:
        outside = settings.database.url is not None
        advice = "Start PostgreSQL, or correct SAPA_DATABASE_URL." if outside else "See log/postgres.log."
        findings.append(Finding("database", False, str(error) or type(error).__name__, advice))
    return findings


def _check_settings(settings: Settings) -> Finding:
    where = "outside, SAPA_DATABASE_URL" if settings.database.url else f"embedded in {settings.data}"
    return Finding("settings", True, f"database {where}; address {settings.server.address}")


async def _check_metrics(settings: Settings) -> Finding:
    if running := await metrics_address.find_running(settings):
        return Finding("metrics address", True, f"http://{running}/metrics")
    expected = next(metrics_address.list_candidates(settings))
    return Finding(
        "metrics address", True, f"not running; http://{expected}/metrics when Sapa starts, if the port is free"
    )


async def _check_worker(host: str, port: int) -> Finding:
    """Asks the worker of this machine."""
    address = metrics_address.ListenAddress(host, port)
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            status = await metrics_address.read_status(address, "/readyz")
    except (OSError, asyncio.IncompleteReadError, TimeoutError):
        return Finding("worker address", True, f"not running; http://{address}/readyz when a worker starts")
    return Finding(
        "worker address", status == 200, f"http://{address}/readyz answers {status}", "See the worker's log."
    )


async def _check_bucket(bucket: Bucket) -> Finding:
    """Writes, reads and deletes an object."""
    try:
        await bucket.put("doctor/probe", b"probe")
        is_same = await bucket.get("doctor/probe") == b"probe"
        await bucket.delete_all("doctor/")
    except BucketFailed as error:
        advice = "Correct SAPA_FILES_URL, or what its key may do: read, write, list and delete objects."
        return Finding("files", False, str(error), advice)
    return Finding("files", is_same, "the bucket takes and returns objects" if is_same else "the bucket returns others")


async def _check_database(db: Connection) -> AsyncIterator[Finding]:
    number, version = await _version(db)
    yield Finding("database", True, "answers")
    fits = OLDEST_POSTGRESQL <= number <= NEWEST_POSTGRESQL
    yield Finding("version", fits, version, f"Use PostgreSQL {OLDEST_POSTGRESQL} to {NEWEST_POSTGRESQL}.")
    encoding = await db.fetchval("SHOW server_encoding")
    yield Finding("encoding", encoding == "UTF8", encoding, "Create the database with ENCODING 'UTF8'.")
    missing = [name for name in EXTENSIONS if not await _has_extension(db, name)]
    advice = "Install PostgreSQL's contrib package, then run `sapa migrate`."
    found = f"missing {', '.join(missing)}" if missing else ", ".join(EXTENSIONS)
    yield Finding("extensions", not missing, found, advice)
    skew = abs(time.time() - float(await db.fetchval("SELECT extract(epoch FROM clock_timestamp())::float8")))
    yield Finding("clock", skew <= MAX_SKEW_SECONDS, f"{skew:.3f} s apart", "Run NTP on both machines.")
    mismatch = BEHIND if missing else await find_mismatch(db)
    yield Finding("schema", mismatch is None, "not this version's" if mismatch else "up to date", mismatch or "")


async def _check_connections(db: Connection, settings: Settings) -> Finding:
    limit, running = await db.fetchval(_CONNECTION_LIMIT), await db.fetchrow(_RUNNING) or (0, 0)
    processes, workers = max(settings.server.processes, running[0]), max(1, running[1])
    needed = count_connections(settings, processes, workers)
    advice = "Raise max_connections of PostgreSQL, or lower SAPA_PROCESSES, SAPA_DATABASE_POOL or SAPA_WORKER_POOL."
    found = (
        f"{processes} API processes and {workers} workers, on all machines, may hold {needed} of the {limit} that"
        " PostgreSQL accepts"
    )
    return Finding("connections", needed <= limit, found, advice)


def _check_backups(settings: BackupSettings, state: BackupState) -> Finding:
    if settings.url is None and state.last is None:
        return Finding("backup", True, "none; the worker makes them when SAPA_BACKUP_URL is set")
    age = state.age_seconds
    found = "none yet" if age is None else f"the newest one is {age / 3600:.1f} hours old"
    if state.last is not None and state.last.status == "failed":
        advice = "Correct what the error says; the worker tries again within an hour."
        return Finding("backup", False, f"{found}; the last one failed: {state.last.error}", advice)
    advice = "Look for `backup` in the worker's log, or run `sapa backup`."
    return Finding(
        "backup", not state.is_late(settings.every_hours), found, advice, warning=age is None or settings.url is None
    )


async def _check_secrets(database: Database) -> Finding:
    """Opens what is sealed, for a few seconds."""
    try:
        vault = ProbeVault(get_secret_key())
    except BadSetting as error:  # doctor may run on a host that has no key
        return Finding("secrets", False, str(error), "Set SAPA_SECRET_KEY.", warning=True)
    except BadSecretKey as error:
        return Finding("secrets", False, str(error), "Correct SAPA_SECRET_KEY.")
    is_complete = await rotation.probe(database, SEALED_TABLES, vault, PROBE_SECONDS)
    if vault.unreadable:
        number, total = vault.unreadable, vault.opened + vault.unreadable
        advice = "Add the key that they were sealed with to SAPA_SECRET_KEY, after a comma."
        return Finding("secrets", False, f"no key opens {number:,} of {total:,} stored secrets", advice)
    extent = "all" if is_complete else "the first"
    return Finding("secrets", True, f"the secret key opens {extent} {vault.opened:,} stored secrets")


async def _version(db: Connection) -> tuple[int, str]:
    text: str = await db.fetchval("SHOW server_version")
    return int(await db.fetchval("SELECT current_setting('server_version_num')::int")) // 10_000, text


async def _has_extension(db: Connection, name: str) -> bool:
    return bool(await db.fetchval("SELECT true FROM pg_extension WHERE extname = $1", name))


def _print(findings: list[Finding]) -> None:
    table = Table("", "what", "found", "to fix")
    for finding in findings:
        mark = Text("✓", "green") if finding.well else Text("!", "yellow") if finding.warning else Text("✗", "red")
        table.add_row(mark, *map(Text, (finding.what, finding.found, "" if finding.well else finding.fix)))
    Console().print(table)
