"""Forks the processes of `sapa serve` from one that has imported everything, so that they share its memory."""

import gc
import os
import socket
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from signal import SIGKILL, SIGTERM

import msgspec

from sapa.logs import STANDARD_OUTPUT
from sapa.runtime.processes import adopt_orphans, die_with_parent, name_process

_MAX_BYTES = 1_048_576
_FORK_SECONDS = 30


class ForkServerEnded(Exception):
    """The fork server has ended."""


class ForkRequest(msgspec.Struct, frozen=True):
    name: str
    environment: dict[str, str]


class ForkedProcess:
    """A process that the fork server made, as our own child."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._code: int | None = None

    def poll(self) -> int | None:
        if self._code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self._code = os.waitstatus_to_exitcode(status) if pid else None
        return self._code

    def terminate(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, SIGTERM)


class ForkServer:
    """Its processes outlive it."""

    def __init__(self, pid: int, requests: socket.socket) -> None:
        self._pid: int | None = pid
        self._requests = requests
        requests.settimeout(_FORK_SECONDS)

    def start(self, name: str, environment: Mapping[str, str]) -> ForkedProcess:
        """Runs `sapa <name>` in a session of its own; it gets SIGTERM when we die. Takes milliseconds, in which nothing
        interrupts it: no process is made that nobody knows."""
        try:
            with adopt_orphans():
                self._requests.send(msgspec.json.encode(ForkRequest(name, dict(environment))))
                return ForkedProcess(int(self._requests.recv(_MAX_BYTES)))
        except (OSError, ValueError) as error:
            self.close()
            raise ForkServerEnded from error

    def close(self) -> None:
        self._requests.close()
        if self._pid is not None:
            os.kill(self._pid, SIGKILL)
            os.waitpid(self._pid, 0)
            self._pid = None


@contextmanager
def start_fork_server(run: Callable[[], None]) -> Iterator[ForkServer | None]:
    """Call it before there are threads, an event loop or secrets: a fork loses the first two and copies the last. `run`
    is what each process runs, with its name as its argument.

    None where processes cannot be forked: other systems have no adoption, and a process must not inherit the password
    of the database's owner.
    """
    if sys.platform != "linux" or "SAPA_DATABASE_OWNER_URL" in os.environ:
        yield None
        return
    gc.collect()
    gc.freeze()  # the collector of a forked process leaves these objects, and the memory that they share, alone
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    parent = os.getpid()
    pid = os.fork()
    if not pid:
        ours.close()
        _serve(theirs, parent, run)
    theirs.close()
    forks = ForkServer(pid, ours)
    try:
        yield forks
    finally:
        forks.close()


def _serve(requests: socket.socket, parent: int, run: Callable[[], None]) -> None:
    die_with_parent(SIGKILL, parent)
    os.setsid()
    os.environ.clear()
    name_process("sapa fork-server")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    while message := requests.recv(_MAX_BYTES):
        if between := os.fork():
            os.waitpid(between, 0)
        else:
            _fork_orphan(requests, msgspec.json.decode(message, type=ForkRequest), parent, run)
    os._exit(0)


def _fork_orphan(requests: socket.socket, request: ForkRequest, parent: int, run: Callable[[], None]) -> None:
    """Ends at once, which makes its child a child of the supervisor."""
    between = os.getpid()
    if not os.fork():
        while os.getppid() == between:
            time.sleep(0.001)
        _run_forked(requests, request, parent, run)
    os._exit(0)


def _run_forked(requests: socket.socket, request: ForkRequest, parent: int, run: Callable[[], None]) -> None:
    code = 1
    try:
        die_with_parent(SIGTERM, parent)
        os.setsid()
        os.environ.clear()
        os.environ.update(request.environment)
        sys.argv = ["sapa", request.name]
        name_process(" ".join(sys.argv))
        requests.send(str(os.getpid()).encode())
        requests.close()
        run()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        STANDARD_OUTPUT.flush()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
