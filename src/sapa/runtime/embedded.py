"""The embedded PostgreSQL: a real server from a wheel, run as our own child in the data folder."""

import asyncio
import fcntl
import hashlib
import os
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import cached_property
from pathlib import Path
from signal import SIGINT, SIGQUIT
from types import MappingProxyType
from typing import Literal
from urllib.parse import quote

import asyncpg
import msgspec

from sapa.runtime.cluster import (
    CLUSTER,
    ENVIRONMENT,
    Secrets,
    bundled_binaries,
    find_account,
    make_cluster,
    make_private,
    make_secrets,
    refuse_other_version,
    write_rules,
    write_secrets,
)
from sapa.runtime.processes import (
    CannotStart,
    ProcessUser,
    ended,
    spawn,
    wait_until,
)
from sapa.runtime.wal_archive import build_archive_settings, has_changes, make_archive

SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "shared_buffers": "128MB",
    "fsync": "on",
    "synchronous_commit": "on",
    # Only commits that do not wait for the disk, such as beats, leave it to the WAL writer.
    "wal_writer_delay": "500ms",
    "full_page_writes": "on",
    "random_page_cost": "1.1",
    "jit": "off",
    "timezone": "UTC",
    # The API reports refused statements; their details would put customers' data into this log.
    "log_min_messages": "log",
    "log_checkpoints": "off",
    "log_line_prefix": "%m [%p] ",
}
MIN_CONNECTIONS = 120
_LOG_LIMIT = 10 * 1024 * 1024
_SOCKET_LIMIT = 107


class EmbeddedServer:
    """The PostgreSQL server of one data folder."""

    def __init__(
        self,
        data: Path,
        folder: str = CLUSTER,
        binaries: Path | None = None,
        options: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """`folder` has the server's files. `binaries` are another version's programs, for an upgrade; `options` further
        settings, for a recovery."""
        self.data = data.resolve()
        self.cluster = self.data / folder
        self._binaries = binaries or bundled_binaries()
        self._options = options
        self.max_connections = MIN_CONNECTIONS
        self._archive_file = self.data / "archive"
        self.log = self.data / "log" / "postgres.log"
        self.passwords = self.data / "secrets.json"
        self._process: subprocess.Popen[bytes] | None = None

    @cached_property
    def secrets(self) -> Secrets:
        return msgspec.json.decode(self.passwords.read_bytes(), type=Secrets)

    @property
    def secret_key(self) -> str:
        """The default of SAPA_SECRET_KEY: 32 bytes in base64."""
        return self.secrets.secret_key

    def use_secret_key(self, key: str) -> None:
        """For a database that was restored: its secrets are sealed with the key of another installation."""
        write_secrets(self.passwords, msgspec.structs.replace(self.secrets, secret_key=key))
        del self.secrets

    def write_secrets(self, content: str) -> None:
        """For files that were copied from another data folder, with the passwords of its roles."""
        write_secrets(self.passwords, msgspec.json.decode(content, type=Secrets))

    @property
    def owner_url(self) -> str:
        """Connects as the role that owns the database and runs migrations."""
        return self._url("sapa_owner", self.secrets.owner)

    @property
    def app_url(self) -> str:
        """Connects as the role that the product runs as."""
        return self._url("sapa_app", self.secrets.app)

    def _url(self, role: str, password: str) -> str:
        return f"postgresql://{role}:{password}@/sapa?host={quote(str(self.socket_folder))}&port=5432"

    @property
    def socket_folder(self) -> Path:
        folder = self.data / "socket"
        if len(os.fsencode(folder / ".s.PGSQL.5432")) <= _SOCKET_LIMIT and not set(str(folder)) & set(',"'):
            return folder
        # Not the environment's temp directory: every command must use the same one.
        return Path("/tmp") / f"sapa-{hashlib.sha256(os.fsencode(self.data)).hexdigest()[:16]}"  # noqa: S108

    async def start(self) -> None:
        """Starts the server, creating the cluster in an empty folder, and returns when it accepts connections."""
        with _report_unusable(self.data):
            account = self._prepare()
            await _stop_orphan(self.cluster)
            self._process = self._launch(account)
        await self.wait_until_accepting(seconds=300)

    def find_archive(self) -> Path | None:
        """Where the server archives its changes; None if it does not."""
        try:
            return Path(self._archive_file.read_text())
        except FileNotFoundError:
            return None

    def use_archive(self, archive: Path) -> None:
        """From the next start on. The data folder remembers it: a start without it would leave a gap in the archive."""
        make_archive(archive, find_account(self.data, self.cluster))
        self._archive_file.write_text(str(archive))

    def leave_archive(self) -> None:
        """The changes of a new database would have the same names as those in the archive."""
        self._archive_file.unlink(missing_ok=True)

    def _prepare(self) -> ProcessUser | None:
        account = find_account(self.data, self.cluster)
        refuse_other_version(self.cluster, self._binaries)
        make_secrets(self.passwords, self.cluster)
        if not self.cluster.exists():
            if self.cluster.name == CLUSTER and (archive := self.find_archive()) and has_changes(archive):
                self.leave_archive()
            make_cluster(self.cluster, self.secrets, account)
        write_rules(self.cluster)
        make_private(self.socket_folder, account)
        return account

    def _launch(self, account: ProcessUser | None) -> subprocess.Popen[bytes]:
        own = {"unix_socket_directories": str(self.socket_folder), "max_connections": str(self.max_connections)}
        settings = SETTINGS | own | dict(self._options)
        if self.cluster.name == CLUSTER and (archive := self.find_archive()):  # the archive is of that one only
            settings |= build_archive_settings(archive)
        command = [str(self._binaries / "postgres"), "-D", str(self.cluster)]
        command += [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        with _open_log(self.log) as log:
            return spawn(command, SIGINT, account=account, env=ENVIRONMENT, cwd="/", output=log)

    async def wait_until_accepting(self, seconds: float) -> None:
        """Returns when the server accepts connections; raises CannotStart when it does not in time."""
        if not await wait_until(self._accepts, seconds):
            raise CannotStart(f"The embedded PostgreSQL accepts no connections. See {self.log} for the reason.")

    async def _accepts(self) -> bool:
        try:
            connection = await asyncpg.connect(self.app_url, timeout=10)
        except asyncpg.InvalidPasswordError:
            raise CannotStart(
                f"The passwords in {self.passwords} are not those of the database beside it. "
                "Restore the file that belongs to it."
            ) from None
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError):
            self.refuse_ended()
            return False
        await connection.close()
        return True

    def refuse_ended(self) -> None:
        """Raises CannotStart if the server process that we started has ended."""
        if self._process and self._process.poll() is not None:
            raise CannotStart(f"The embedded PostgreSQL did not start. See the end of {self.log} for the reason.")

    async def ended(self) -> int:
        """The exit code of the server process, once there is one."""
        return await ended(self._process) if self._process else 0

    async def stop(self) -> None:
        """A fast shutdown: open transactions are rolled back, everything committed is kept."""
        if process := self._process:
            await _shut_down(process.pid, lambda: process.poll() is not None)

    def stop_at_once(self) -> None:
        """An immediate shutdown: safe, but the next start replays the write-ahead log."""
        if self._process and self._process.poll() is None:
            self._process.send_signal(SIGQUIT)


@asynccontextmanager
async def open_embedded(data: Path) -> AsyncIterator[EmbeddedServer]:
    """The folder's server for one command: that of a running `sapa serve`, else our own until the block ends."""
    server = EmbeddedServer(data)
    async with _lock(server.data, "cli") as is_held:
        if not is_held:
            await _wait_for_other(server)
            yield server
            return
        try:
            await server.start()
            yield server
        finally:
            await server.stop()


@asynccontextmanager
async def claim_folder(data: Path) -> AsyncIterator[EmbeddedServer]:
    """Holds the folder for `sapa serve`, its server not yet started; raises CannotStart when another one holds it."""
    server = EmbeddedServer(data)
    async with _lock(server.data, "serve") as is_held:
        if not is_held:
            raise CannotStart(
                f"Sapa already runs on the data folder {server.data}; "
                "stop it first, or choose another folder with --data or SAPA_DATA."
            )
        yield server


async def _wait_for_other(server: EmbeddedServer) -> None:
    if not await wait_until((server.data / "secrets.json").exists, 30):
        raise CannotStart(f"The server on {server.data} is not ready yet. Try again in a moment.")
    await server.wait_until_accepting(seconds=30)


@asynccontextmanager
async def _lock(data: Path, kind: Literal["serve", "cli"]) -> AsyncIterator[bool]:
    """Yields True while we hold the folder, or False when `sapa serve` holds it."""
    lock = _open_lock(data)
    try:
        is_held = await _acquire_lock(lock, data)
        if is_held:
            os.ftruncate(lock, 0)
            os.pwrite(lock, f"{kind} {os.getpid()}\n".encode(), 0)
        yield is_held
    finally:
        os.close(lock)


def _open_lock(data: Path) -> int:
    with _report_unusable(data):
        # Others may enter, not list: the server may run as another user.
        data.mkdir(mode=0o711, parents=True, exist_ok=True)
        return os.open(data / "lock", os.O_RDWR | os.O_CREAT, 0o600)


async def _acquire_lock(lock: int, data: Path) -> bool:
    """Waits while a short command holds the folder, not while `sapa serve` does."""
    deadline, last_holder = time.monotonic() + 30, b""
    while not _try_lock(lock):
        holder = os.pread(lock, 100, 0)
        # Read twice: a new holder may not have overwritten its predecessor's name yet.
        if holder.startswith(b"serve") and holder == last_holder:
            return False
        if holder != last_holder:  # several take turns
            deadline, last_holder = time.monotonic() + 30, holder
        if time.monotonic() > deadline:
            raise CannotStart(f"Another sapa command has used {data} for half a minute. Wait for it or stop it.")
        await asyncio.sleep(0.03)
    return True


def _try_lock(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def _report_unusable(data: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CannotStart(
            f"The data folder {data} cannot be used ({error.strerror}: {error.filename}); "
            "choose one of your own with --data or SAPA_DATA."
        ) from error


@contextmanager
def _open_log(path: Path) -> Iterator[int]:
    path.parent.mkdir(mode=0o700, exist_ok=True)
    if path.exists() and path.stat().st_size > _LOG_LIMIT:
        path.replace(path.with_suffix(".log.1"))
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        yield log
    finally:
        os.close(log)


async def _stop_orphan(cluster: Path) -> None:
    """Stops a server that outlived its parent; removes a stale pid file whose pid belongs to another process now."""
    pid = _read_pid(cluster)
    if pid is None:
        return
    if _serves(pid, cluster) and not await _shut_down(pid, lambda: not _serves(pid, cluster)):
        raise CannotStart(
            f"A PostgreSQL server of an earlier start (process {pid}) does not stop. End it and try again."
        )
    _remove_stale_pid(pid, cluster)


def _read_pid(cluster: Path) -> int | None:
    with suppress(FileNotFoundError, ValueError):
        return int((cluster / "postmaster.pid").read_text().split("\n", 1)[0])
    return None


def _remove_stale_pid(pid: int, cluster: Path) -> None:
    # PostgreSQL takes any living process with that pid for its predecessor, and refuses to start.
    if Path(f"/proc/{pid}").exists():
        (cluster / "postmaster.pid").unlink(missing_ok=True)


def _serves(pid: int, cluster: Path) -> bool:
    """Whether the process is a PostgreSQL server on this cluster, by its command line, which any user may read."""
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return Path(os.fsdecode(command[0])).name == "postgres" and os.fsencode(cluster) in command


async def _shut_down(pid: int, is_gone: Callable[[], bool]) -> bool:
    for request in (SIGINT, SIGQUIT):
        with suppress(ProcessLookupError):
            if not is_gone():
                os.kill(pid, request)
        if await wait_until(is_gone, 20):
            return True
    return False
