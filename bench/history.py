"""Earlier versions, taken from the repository's history: what today's is compared with."""

import asyncio
import shutil
import subprocess
import sys
import tarfile
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from hashlib import sha256
from importlib.metadata import version
from io import BytesIO
from pathlib import Path

from msgspec import Struct

from bench.ground import plain_environment
from bench.machine import OUT, ROOT
from bench.say import say

END_SECONDS = 60
LONGEST_LINE = 2**24


class EarlierVersion(Struct, frozen=True):
    """Its sources, and an interpreter with the packages that it pinned."""

    tree: Path
    python: Path

    @property
    def environment(self) -> dict[str, str]:
        return plain_environment() | {"PYTHONPATH": f"{self.tree / 'src'}:{self.tree}"}

    def build_command(self, program: Path, *arguments: object) -> list[str]:
        """With -P, because the program's own folder is not where that version looks for modules."""
        return [str(self.python), "-P", str(program), *map(str, arguments)]


def open_version(commit: str, folder: Path) -> EarlierVersion | None:
    tree = unpack_version(commit, folder)
    return None if tree is None else EarlierVersion(tree, prepare_python(commit))


def unpack_version(commit: str, folder: Path) -> Path | None:
    """Its tree; None where the history is not at hand, as in an archive of the sources."""
    command = ["git", "archive", commit, "src", "bench"]
    archive = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    if archive.returncode:
        return None
    tree = folder / "first"
    with tarfile.open(fileobj=BytesIO(archive.stdout)) as opened:
        opened.extractall(tree, filter="data")
    return tree


def prepare_python(commit: str) -> Path:
    """With the HTTP server that a version had. Installed once: later runs use it again."""
    pinned = _run(["git", "show", f"{commit}:requirements/run.txt"])
    folder = OUT / f"python-{sha256(pinned).hexdigest()[:12]}"
    if not folder.exists():
        say(f"installing the packages of {commit}")
        _install(pinned, folder)
    return folder / "bin" / "python"


def _install(pinned: bytes, folder: Path) -> None:
    unfinished = folder.with_name(f"{folder.name}-unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    _run([sys.executable, "-m", "venv", str(unfinished)])
    requirements = unfinished / "requirements.txt"
    requirements.write_bytes(pinned)
    pip = [str(unfinished / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    _run([*pip, "--require-hashes", "--requirement", str(requirements)])
    _run([*pip, f"httpx=={version('httpx')}"])  # not Sapa's: the benchmark waits with it until a server answers
    unfinished.rename(folder)


def _run(command: Sequence[str]) -> bytes:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed: {done.stderr.decode()[-2000:]}")
    return done.stdout


@asynccontextmanager
async def run_program(version: EarlierVersion, program: Path, *arguments: object) -> AsyncIterator[Process]:
    """Inside that version. It says in a line where it answers, and does so until its input ends."""
    process = await asyncio.create_subprocess_exec(
        *version.build_command(program, *arguments),
        stdin=PIPE, stdout=PIPE, cwd=version.tree, env=version.environment, limit=LONGEST_LINE,
    )  # fmt: skip
    try:
        yield process
    finally:
        await _end(process)


async def read_answer(process: Process) -> bytes:
    """The line that says where it answers: JSON."""
    assert process.stdout is not None
    async for line in process.stdout:
        if line.startswith(b"{"):
            return line
    raise RuntimeError("an earlier version failed")


async def _end(process: Process) -> None:
    assert process.stdin is not None
    process.stdin.close()
    try:
        async with asyncio.timeout(END_SECONDS):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
