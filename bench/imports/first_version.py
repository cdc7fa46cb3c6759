"""The import of the first version: what batches of orders are compared with."""

import asyncio
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

from bench.ground import plain_environment

COMMIT = "7e74f304937dad11058eea8e433974b699c479ee"
PROGRAM = Path(__file__).with_name("first_program.py")


async def time_first_version(tree: Path, customers: Path, orders: Path) -> float:
    """Seconds of its import of the orders, into a company that has the customers."""
    environment = plain_environment() | {"PYTHONPATH": f"{tree / 'src'}:{tree}"}
    # -P, because the program's own folder is not where the first version looks for modules.
    command = [sys.executable, "-P", str(PROGRAM), str(tree / "run"), str(customers), str(orders)]
    process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=PIPE, cwd=tree, env=environment)
    output, errors = await process.communicate()
    if process.returncode:
        raise RuntimeError(f"the first version failed: {errors.decode()[-2000:]}")
    return float(output.split()[-1])
