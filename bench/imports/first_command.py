"""`sapa` of the first version. The server that it had is not installed any more, and an import needs none."""

import runpy
import sys
from unittest.mock import MagicMock

sys.modules |= {name: MagicMock() for name in ("granian", "granian.constants", "granian.log")}
runpy.run_module("sapa", run_name="__main__")
