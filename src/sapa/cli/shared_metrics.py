"""Gives the processes of a lone `sapa api` a folder in which they share their metrics.

Imported before everything else, because prometheus_client decides at its import whether metrics are shared.
"""

import atexit
import os
import sys
from tempfile import TemporaryDirectory

VARIABLE = "PROMETHEUS_MULTIPROC_DIR"

if sys.argv[1:2] == ["api"] and VARIABLE not in os.environ:
    folder = TemporaryDirectory(prefix="sapa-metrics-")
    os.environ[VARIABLE] = folder.name
    atexit.register(folder.cleanup)
