"""`sapa api`: starts the API processes, restarts those that die, and stops them together."""

import asyncio
import resource
import signal
import sys
import time
from multiprocessing import get_context
from multiprocessing.context import ForkProcess

from sapa.app import prepare
from sapa.runtime.api_process import run_process
from sapa.runtime.metrics_address import open_listener
from sapa.runtime.metrics_server import MetricsProcess
from sapa.runtime.processes import check_port
from sapa.settings import ServerSettings, Settings

_STOP_SECONDS = 20
HEALTHY_SECONDS = 3.5
"""A process that dies sooner would die again: `sapa api` ends."""
_SIGNALS = {signal.SIGTERM, signal.SIGINT, signal.SIGCHLD}


def run(settings: Settings) -> int:
    """Serves until SIGTERM or SIGINT; returns 1 when its processes keep failing."""
    address = asyncio.run(check_port(settings.server.host, settings.server.port))
    metrics = MetricsProcess(settings, asyncio.run(open_listener(settings)))
    raise_file_limit()
    prepare()
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    return ApiProcesses(settings.server, address, metrics).run()


def raise_file_limit() -> None:
    """Each connection is a file: as many as the system allows."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class ApiProcesses:
    """Forked, so that the application is imported once. Nothing here starts a thread: a fork would lose it."""

    def __init__(self, server: ServerSettings, address: str, metrics: MetricsProcess) -> None:
        self._server = server
        self._address = address
        self._metrics = metrics
        self._started: dict[ForkProcess, float] = {}

    def run(self) -> int:
        self._metrics.start()
        for _ in range(self._server.processes):
            self._start()
        while signal.sigwait(_SIGNALS) is signal.SIGCHLD:
            self._metrics.restart_if_dead()
            if not self._restart_dead():
                self._stop()
                return 1
        self._stop()
        return 0

    def _start(self) -> None:
        process = get_context("fork").Process(target=_run_unblocked, args=(self._server, self._address))
        process.start()
        self._started[process] = time.monotonic()

    def _restart_dead(self) -> bool:
        """Returns False when a process died too soon."""
        for process in [each for each in self._started if each.exitcode is not None]:
            print(f"An API process ended with exit code {process.exitcode}.", file=sys.stderr, flush=True)  # noqa: T201
            if time.monotonic() - self._started.pop(process) < HEALTHY_SECONDS:
                return False
            self._start()
        return True

    def _stop(self) -> None:
        self._metrics.stop()
        deadline = time.monotonic() + _STOP_SECONDS
        for process in self._started:
            process.terminate()
        for process in self._started:
            process.join(max(0.0, deadline - time.monotonic()))
            if process.exitcode is None:
                process.kill()
                process.join()


def _run_unblocked(server: ServerSettings, address: str) -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    run_process(server, address)
