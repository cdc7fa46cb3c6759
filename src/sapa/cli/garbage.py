"""Python's garbage collector while a command handles many rows."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

ALLOCATIONS = 100_000
"""Between two collections. The rows of a batch have no cycles, and the usual 700 would look through all of them again
and again."""


@contextmanager
def collect_rarely() -> Iterator[None]:
    """Inside the block, what exists already is never looked through."""
    usual = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(ALLOCATIONS, *usual[1:])
    try:
        yield
    finally:
        gc.set_threshold(*usual)
        gc.unfreeze()
