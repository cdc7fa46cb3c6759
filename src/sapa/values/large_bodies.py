"""Turns for large bodies of requests, which are held in memory."""

import asyncio
from collections.abc import Callable
from contextlib import ExitStack
from weakref import WeakValueDictionary

MAX_LARGE_BODIES = 2
MAX_WAITING_BODIES = 16
TURN_SECONDS = 30.0
"""How long a large body waits for its turn."""


class TooManyLargeBodies(Exception):
    def __init__(self) -> None:
        super().__init__("Too many large bodies are being received. Try again in a moment.")


class LargeBodies:
    """Two large bodies are in memory at once, and one of each owner: nobody's slow uploads keep all others waiting."""

    def __init__(self) -> None:
        self._places = asyncio.Semaphore(MAX_LARGE_BODIES)
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._waiting = 0

    async def take(self, owner: str) -> Callable[[], None]:
        """Waits for a place, and returns what gives it back."""
        if self._waiting >= MAX_WAITING_BODIES:
            raise TooManyLargeBodies
        turn = self._turns.setdefault(owner, asyncio.Lock())
        self._waiting += 1
        try:
            with ExitStack() as taken:
                async with asyncio.timeout(TURN_SECONDS):
                    await turn.acquire()
                    taken.callback(turn.release)
                    await self._places.acquire()
                    taken.callback(self._places.release)
                return taken.pop_all().close
        except TimeoutError:
            raise TooManyLargeBodies from None
        finally:
            self._waiting -= 1
