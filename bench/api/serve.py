"""Runs a yardstick with exactly the server of `sapa api`: python -m bench.api.serve MODULE PORT."""

import sys
from importlib import import_module

from sapa.runtime.http_server import HttpServer, open_listener
from sapa.settings import read_settings


def main() -> None:
    module, port = sys.argv[1:]
    settings = read_settings({"SAPA_PROCESSES": "1"}).server
    HttpServer(settings, import_module(module).app).run([open_listener("127.0.0.1", int(port))])


if __name__ == "__main__":
    main()
