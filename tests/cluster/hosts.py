"""Hosts of a network of their own: each is a network namespace on one bridge, with processes in it."""

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from signal import SIGKILL

from sapa.runtime.processes import die_with_parent

BRIDGE = "lab"
OWN_SOCKETS = 'mount -t tmpfs -o mode=1777 tmpfs /run/postgresql && exec "$@"'
"""`ip netns exec` gives a process mounts of its own, but the hosts share their folders."""


class Host:
    def __init__(self, name: str, address: str, folder: Path) -> None:
        self.name = name
        self.address = address
        self.folder = folder / name
        self.folder.mkdir()
        self.folder.chmod(0o755)
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def space(self) -> str:
        return f"sapa-{self.name}"

    def open(self) -> None:
        _ip("netns", "add", self.space)
        _ip("link", "add", f"v-{self.name}", "type", "veth", "peer", "name", "eth0", "netns", self.space)
        _ip("link", "set", f"v-{self.name}", "master", BRIDGE, "up")
        for command in (["addr", "add", f"{self.address}/24", "dev", "eth0"], ["link", "set", "eth0", "up"],
                        ["link", "set", "lo", "up"]):  # fmt: skip
            _ip("-n", self.space, *command)

    def close(self) -> None:
        self.lose_power()
        for command in (["link", "del", f"v-{self.name}"], ["netns", "del", self.space]):
            with suppress(subprocess.CalledProcessError):
                _ip(*command)

    def start(
        self, name: str, command: Sequence[str], environ: Mapping[str, str], user: str | None = None
    ) -> subprocess.Popen[bytes]:
        """A process on this host, its output in a file of the host's folder."""
        as_user = ["sh", "-c", OWN_SOCKETS, "sh", "runuser", "-u", user, "--"] if user else []
        parent = os.getpid()
        with (self.folder / f"{name}.log").open("ab") as output:
            self.processes[name] = subprocess.Popen(
                ["ip", "netns", "exec", self.space, *as_user, *command],
                env={"PATH": os.environ["PATH"], "PYTHONPATH": os.environ.get("PYTHONPATH", ""), **environ},
                cwd="/",
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=lambda: die_with_parent(SIGKILL, parent),
            )
        return self.processes[name]

    def lose_power(self) -> None:
        """All its processes end at once, also those that nobody here started."""
        for number in subprocess.run(["ip", "netns", "pids", self.space], capture_output=True).stdout.split():
            with suppress(ProcessLookupError):
                os.kill(int(number), SIGKILL)
        for child in self.processes.values():
            child.wait()
        self.processes.clear()

    def unplug(self) -> None:
        """Nothing leaves it, nothing arrives, and nobody is told."""
        _ip("link", "set", f"v-{self.name}", "down")

    def plug_in(self) -> None:
        _ip("link", "set", f"v-{self.name}", "up")


@contextmanager
def open_network(address: str) -> Iterator[None]:
    """A bridge that this process is on, too; run it in a network namespace of its own."""
    _ip("link", "set", "lo", "up")
    _ip("link", "add", BRIDGE, "type", "bridge")
    _ip("addr", "add", f"{address}/24", "dev", BRIDGE)
    _ip("link", "set", BRIDGE, "up")
    try:
        yield
    finally:
        _ip("link", "del", BRIDGE)


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)
