"""Child processes: their end is noticed at once, and waiting for it costs nothing."""

import asyncio
import signal
import subprocess

import pytest

from sapa.runtime.processes import ended


class CountedChild:
    """A real child, and how often somebody looked whether it has ended."""

    def __init__(self, command: str) -> None:
        self._child = subprocess.Popen(["sh", "-c", command])
        self.pid = self._child.pid
        self.looks = 0

    def poll(self) -> int | None:
        self.looks += 1
        return self._child.poll()

    def terminate(self) -> None:
        self._child.terminate()


async def test_the_exit_code_comes_without_looking_for_it_again_and_again() -> None:
    child = CountedChild("sleep 0.5; exit 3")
    assert await ended(child) == 3
    assert child.looks <= 2
    assert await ended(child) == 3


async def test_several_may_wait_for_one_child_and_one_of_them_may_stop() -> None:
    child = CountedChild("exec sleep 60")
    waiting = [asyncio.create_task(ended(child)) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting[0]
    child.terminate()
    assert await asyncio.gather(*waiting[1:]) == [-signal.SIGTERM, -signal.SIGTERM]
