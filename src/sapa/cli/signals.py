"""How a command that runs until it is stopped ends."""

import asyncio
import signal
from collections.abc import Awaitable


async def run_until_signal(work: Awaitable[None]) -> None:
    """Ctrl-C and SIGTERM end it without an error."""
    task = asyncio.ensure_future(work)
    for signum in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(signum, task.cancel)
    await asyncio.wait([task])
    if not task.cancelled():
        task.result()
