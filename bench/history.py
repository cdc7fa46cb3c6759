"""Earlier versions, taken from the repository's history: what today's is compared with."""

import shutil
import subprocess
import tarfile
from io import BytesIO
from pathlib import Path

from bench.machine import ROOT

SERVER = ROOT / "bench" / "first_server.py"


def unpack_version(commit: str, folder: Path) -> Path | None:
    """Its tree; None where the history is not at hand, as in an archive of the sources."""
    command = ["git", "archive", commit, "src", "bench"]
    archive = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    if archive.returncode:
        return None
    tree = folder / "first"
    with tarfile.open(fileobj=BytesIO(archive.stdout)) as opened:
        opened.extractall(tree, filter="data")
    shutil.copy(SERVER, tree / "bench")
    return tree
