"""The `sapa` command as people and programs run it."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec

from sapa.cli import main
from tests.citus.cluster import build_settings


class Outcome(msgspec.Struct, frozen=True):
    code: int
    out: str
    err: str

    def json(self) -> Any:
        """The JSON on standard output; anything else is an error."""
        assert self.code == 0, self.err
        return msgspec.json.decode(self.out)

    def sentence(self) -> str:
        """The error message: one sentence, no traceback, exit code 1."""
        assert self.code == 1, (self.code, self.out, self.err)
        assert "Traceback" not in self.err
        assert self.err.startswith("sapa: ")
        assert self.err.count("\n") == 1
        return self.err.removeprefix("sapa: ").rstrip("\n")


def environment(data: Path, variables: dict[str, str]) -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("SAPA_")}
    return own | build_settings(data) | {"SAPA_DATA": str(data), "COLUMNS": "200", **variables}


def sapa(data: Path, *arguments: str, **variables: str) -> Outcome:
    """Runs a command through its entry point, in this process, because starting Python takes longer than the rest.

    It runs on a thread of its own, because a command has its own event loop.
    """
    out, err = StringIO(), StringIO()
    with (
        patch.dict(os.environ, environment(data, variables), clear=True),
        patch.object(sys, "argv", ["sapa", *arguments]),
        redirect_stdout(out),
        redirect_stderr(err),
        ThreadPoolExecutor(1) as thread,
    ):
        code = thread.submit(_exit_code).result()
    return Outcome(code, out.getvalue(), err.getvalue())


def _exit_code() -> int:
    try:
        main()
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


def sapa_process(data: Path, *arguments: str, **variables: str) -> Outcome:
    """The same in a separate process, without a terminal and without input."""
    done = subprocess.run(
        [sys.executable, "-m", "sapa", *arguments],
        env=environment(data, variables),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )
    return Outcome(done.returncode, done.stdout, done.stderr)
