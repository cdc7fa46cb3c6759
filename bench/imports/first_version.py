"""The import of the first version: what batches of orders are compared with."""

import asyncio
from asyncio.subprocess import PIPE
from pathlib import Path

from bench.history import EarlierVersion

COMMIT = "7e74f304937dad11058eea8e433974b699c479ee"
PROGRAM = Path(__file__).with_name("first_program.py")


async def time_first_version(version: EarlierVersion, customers: Path, orders: Path) -> float:
    """Seconds of its import of the orders, into a company that has the customers."""
    command = version.build_command(PROGRAM, version.tree / "run", customers, orders)
    process = await asyncio.create_subprocess_exec(
        *command, stdout=PIPE, stderr=PIPE, cwd=version.tree, env=version.environment
    )
    output, errors = await process.communicate()
    if process.returncode:
        raise RuntimeError(f"the first version failed: {errors.decode()[-2000:]}")
    return float(output.split()[-1])
