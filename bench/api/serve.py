"""Runs a yardstick with exactly the server settings of `sapa api`: python -m bench.api.serve MODULE PORT."""

import sys

from granian import Granian
from granian.constants import HTTPModes, Interfaces, Loops
from granian.log import LogLevels


def main() -> None:
    module, port = sys.argv[1:]
    Granian(
        f"{module}:app",
        address="127.0.0.1",
        port=int(port),
        interface=Interfaces.ASGI,
        workers=1,
        loop=Loops.uvloop,
        http=HTTPModes.auto,
        websockets=False,
        backlog=1024,
        backpressure=1024,
        log_level=LogLevels.warning,
        log_access=False,
        workers_kill_timeout=10,
    ).serve()


if __name__ == "__main__":
    main()
