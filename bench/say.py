"""What a run is doing now, for whoever watches it."""

import time

_started = time.monotonic()


def say(what: str) -> None:
    print(f"{time.monotonic() - _started:6.0f} s  {what}", flush=True)
