"""Where the API process spends the time of a send: a table of what py-spy recorded while the benchmark sent messages.

py-spy record --format raw --rate 250 --output stacks.raw --pid <the API process>
.venv/bin/python -m bench.messaging.profile stacks.raw
"""

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.findings import Table
from bench.report import build_markdown

GROUPS: Sequence[tuple[str, Sequence[str]]] = (
    ("log of calls, access log, metrics", ("sapa/access/calls/", "sapa/http/access_log", "sapa/logs", "metrics")),
    ("statements: driver and pool", ("asyncpg/", "sapa/db/")),
    ("call of the provider", ("aiohttp/", "sapa/outbound/", "sapa/messaging/channels/")),
    ("history: snapshots, sealed", ("sapa/messaging/history/", "sapa/values/sealing")),
    ("message: checks, plan, rows, event", ("sapa/messaging/", "sapa/support/", "sapa/events")),
    ("HTTP of the caller, key, rate limit", ("sapa/runtime/", "sapa/http/")),
)
"""The first group that a frame of the stack belongs to, from the innermost frame on, gets its samples."""
OTHER = "event loop and the rest"
IDLE = ("Runner.run", "sigwait", "Condition.wait")


def build_profile(stacks: str) -> Table:
    samples = Counter(_list_groups(stacks))
    total = samples.total()
    rows = [[name, f"{count / total:.0%}"] for name, count in samples.most_common()]
    return Table(["time of the API process", f"of {total:,} samples"], rows)


def _list_groups(stacks: str) -> Iterator[str]:
    """One for each sample in which the process worked. A line has the frames, outermost first, and a count."""
    for line in stacks.splitlines():
        text, _, count = line.rpartition(" ")
        frames = text.split(";")
        if "Runner.run" in text and not frames[-1].startswith(IDLE):
            yield from [_find_group(frames)] * int(count)


def _find_group(frames: Sequence[str]) -> str:
    for frame in reversed(frames):
        for name, places in GROUPS:
            if any(place in frame for place in places):
                return name
        if "Runner.run" in frame:
            break
    return OTHER


if __name__ == "__main__":
    print(build_markdown(build_profile(Path(sys.argv[1]).read_text())))
