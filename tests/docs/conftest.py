import fcntl
import subprocess
import sys
from pathlib import Path
from tempfile import gettempdir

import pytest

import sapa
from docs.generator.pages import ROOT, list_pages
from sapa.http.documentation import FOLDERS


@pytest.fixture(scope="session")
def site() -> Path:
    """The documentation that the installation serves, built by the first process that needs it. A broken link fails."""
    folder = FOLDERS[-1]
    with (Path(gettempdir()) / "sapa-documentation.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not is_current(folder):
            build_strictly(folder)
    return folder


def is_current(folder: Path) -> bool:
    package = Path(sapa.__file__).parent
    sources = [*(ROOT / file for file in list_pages(ROOT)), *(ROOT / "docs").rglob("*"), package / "__init__.py"]
    sources += package.rglob("api.py")  # errors.md links to the operations
    newest = max(path.stat().st_mtime for path in sources if path.is_file() and path.suffix != ".pyc")
    index = folder / "index.html"
    return index.exists() and index.stat().st_mtime > newest


def build_strictly(folder: Path, *options: str) -> None:
    command = [sys.executable, "-m", "docs.generator", str(folder), "--strict", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
