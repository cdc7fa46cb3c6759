"""Child processes that cannot outlive us, and the port they listen on."""

import asyncio
import ctypes
import errno
import math
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

from msgspec import Struct

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_ARGUMENTS = slice(45, 49)
"""The fields arg_start, arg_end, env_start and env_end of /proc/self/stat, counted from the one after the name."""
_libc = ctypes.CDLL(None)


class CannotStart(Exception):
    """Why Sapa cannot start; the text says how to fix it."""


class ProcessUser(Struct, frozen=True):
    """Another user for a child process, and the capability it needs where file permissions are not enough."""

    uid: int
    gid: int
    capability: str | None = None


def die_with_parent(death: signal.Signals, parent: int) -> None:
    """Called at a child's start: the kernel sends it `death` when the thread that started it ends."""
    if sys.platform != "linux":
        return
    _libc.prctl(_PR_SET_PDEATHSIG, int(death), 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


@contextmanager
def adopt_orphans() -> Iterator[None]:
    """Inside the block a process below us whose parent ends becomes our child."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        _libc.prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def name_process(name: str) -> None:
    """What `ps` shows of a forked process, instead of its parent's command line, which must be longer. The environment
    that the parent was started with is wiped."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    start, end, environment, environment_end = map(int, fields[_ARGUMENTS])
    # A last byte other than NUL tells the kernel that the line was replaced, and ends at the first NUL.
    ctypes.memmove(start, name.encode().ljust(end - start - 1, b"\0") + b"\1", end - start)
    ctypes.memset(environment, 0, environment_end - environment)


class ChildProcess(Protocol):
    pid: int

    def poll(self) -> int | None: ...

    def terminate(self) -> None: ...


def spawn(
    command: Sequence[str],
    death: signal.Signals,
    *,
    account: ProcessUser | None = None,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    stdin: int | None = subprocess.DEVNULL,
    output: int | None = None,
) -> subprocess.Popen[bytes]:
    """A child in its own session, so that only we signal it; it gets `death` when we die."""
    parent = os.getpid()
    # With a capability, setpriv changes the user: a plain change would lose it.
    user, group = (account.uid, account.gid) if account and not account.capability else (None, None)
    return subprocess.Popen(
        [*_setpriv(account, death), *command],
        stdin=stdin,
        stdout=output,
        stderr=None if output is None else subprocess.STDOUT,
        env=env,
        cwd=cwd,
        user=user,
        group=group,
        extra_groups=None if user is None else [],
        start_new_session=True,
        preexec_fn=lambda: die_with_parent(death, parent),
    )


def _setpriv(account: ProcessUser | None, death: signal.Signals) -> list[str]:
    if not (account and account.capability):
        return []
    return [
        "setpriv", f"--reuid={account.uid}", f"--regid={account.gid}", "--clear-groups",
        # Without this bit access(2) ignores capabilities, and PostgreSQL's programs find themselves with it.
        "--securebits=+no_setuid_fixup",
        f"--inh-caps=+{account.capability}", f"--ambient-caps=+{account.capability}",
        # A change of user clears the parent-death signal that was set before it.
        f"--pdeathsig={death.name.removeprefix('SIG')}", "--",
    ]  # fmt: skip


async def ended(process: ChildProcess) -> int:
    """The exit code, once there is one."""
    while (code := process.poll()) is None:
        await _wait_for_end(process.pid)
    return code


async def _wait_for_end(pid: int) -> None:
    """The kernel says when: looking ten times a second is most of what an idle supervisor would cost."""
    try:
        handle = os.pidfd_open(pid)
    except (AttributeError, OSError):  # another system, or the process was reaped meanwhile
        await asyncio.sleep(0.1)
        return
    loop, has_ended = asyncio.get_running_loop(), asyncio.Event()
    try:
        loop.add_reader(handle, has_ended.set)
        await has_ended.wait()
    finally:
        loop.remove_reader(handle)
        os.close(handle)


async def wait_until(
    condition: Callable[[], bool | Awaitable[bool]], seconds: float = math.inf, every: float = 0.02
) -> bool:
    """Returns whether the condition became true in time."""
    deadline = time.monotonic() + seconds
    while True:
        is_met = condition()
        if is_met if isinstance(is_met, bool) else await is_met:
            return True
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(every)


def signal_group(leader: int, what: signal.Signals) -> None:
    """Signals every remaining process of a child's session, even when the child itself has ended."""
    with suppress(ProcessLookupError):
        os.killpg(leader, what)


async def check_port(host: str, port: int, setting: str = "SAPA_HOST or SAPA_PORT") -> str:
    """The numeric address to listen on; raises CannotStart when another program listens there.

    Our own processes that are ending get three seconds to release the port.
    """
    found = _addresses(host, port, setting)
    if not await wait_until(lambda: all(_can_bind(family, address, setting) for family, address in found), 3):
        raise CannotStart(f"Port {port} on {host} is taken by another program; stop it, or set {setting}.")
    return str(found[0][1][0])


def _addresses(host: str, port: int, setting: str) -> list[tuple[int, tuple[object, ...]]]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except socket.gaierror as error:
        raise CannotStart(f"{host} is not an address of this machine ({error.strerror}); set {setting}.") from None
    return [(family, address) for family, _, _, _, address in found]


def _can_bind(family: int, address: tuple[object, ...], setting: str) -> bool:
    # SO_REUSEADDR ignores connections in TIME_WAIT, never a listener; SO_REUSEPORT would share with one.
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(address)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return False
            raise CannotStart(
                f"Cannot listen on {address[0]} port {address[1]} ({error.strerror}); set {setting}."
            ) from None
    return True
