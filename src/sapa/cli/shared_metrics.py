"""Gives the processes of `sapa api` and `sapa serve` a folder in which they share their metrics.

Imported before everything else, because prometheus_client decides at its import whether metrics are shared.
"""

import atexit
import os
import sys
from tempfile import TemporaryDirectory

VARIABLE = "PROMETHEUS_MULTIPROC_DIR"

folder: TemporaryDirectory[str] | None = None

if sys.argv[1:2] in (["api"], ["serve"]) and VARIABLE not in os.environ:
    folder = TemporaryDirectory(prefix="sapa-metrics-")
    os.environ[VARIABLE] = folder.name
    atexit.register(folder.cleanup)


def drop_folder() -> None:
    """For `sapa serve`, whose processes get another folder: each opens its files when it first counts something."""
    if folder is not None:
        folder.cleanup()
