"""Retries: of transactions in conflict, and of outside parties that could not be reached."""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

Result = TypeVar("Result")
Failure = TypeVar("Failure", bound=Exception)


async def retry(
    work: Callable[[], Awaitable[Result]],
    on: type[Failure] | tuple[type[Failure], ...],
    *,
    tries: float = math.inf,
    seconds: float = math.inf,
    pause: float | Callable[[Failure], float | None] = 0.0,
    between: Callable[[], Awaitable[object]] | None = None,
) -> Result:
    """The first result of `work`; raises the failure when tries or seconds are used up. Other errors are not retried.

    `pause` may compute from the failure how long to wait before the next try; None means no further try.
    `between` runs before each pause.
    """
    ends, number = time.monotonic() + seconds, 0
    while True:
        number += 1
        try:
            return await work()
        except on as failure:
            wait = pause(failure) if callable(pause) else pause
            if wait is None or number >= tries or time.monotonic() + wait > ends:
                raise
        if between is not None:
            await between()
        if wait:
            await asyncio.sleep(wait)


class Backoff:
    """Pauses that double from the first to the longest."""

    def __init__(self, first: float, longest: float) -> None:
        self._first = self._next = first
        self._longest = longest

    def next(self) -> float:
        pause, self._next = self._next, min(2 * self._next, self._longest)
        return pause

    def reset(self) -> None:
        self._next = self._first
