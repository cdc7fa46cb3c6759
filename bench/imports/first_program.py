"""Runs inside the first version: imports customers and orders into a new company, prints the seconds of the orders.

Arguments: the folder of its database, the file of customers, the file of orders.
"""

import asyncio
import sys
import time
from asyncio.subprocess import DEVNULL
from pathlib import Path

from bench.ground import make_company, open_ground


async def run(folder: Path, *files: str) -> None:
    async with open_ground(folder) as ground:
        company = (await make_company(ground, f"Importer {time.monotonic_ns()}")).id
        for resource, file in zip(("customers", "orders"), files, strict=True):
            command = [sys.executable, "-m", "sapa", "import", resource, file, "--company", str(company)]
            started = time.monotonic()
            process = await asyncio.create_subprocess_exec(*command, env=ground.environment, stdout=DEVNULL)
            if await process.wait():
                sys.exit(f"the import of {resource} failed")
            seconds = time.monotonic() - started
    print(seconds)


asyncio.run(run(Path(sys.argv[1]), *sys.argv[2:]))
