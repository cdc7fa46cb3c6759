"""Logs: one JSON object per line on standard output."""

import atexit
import logging
import os
import threading
import time
from collections import deque
from datetime import UTC, datetime
from typing import TextIO, cast

import msgspec
import structlog

MAX_WAITING_BYTES = 16 * 1_048_576
RETRY_SECONDS = 0.2
FLUSH_SECONDS = 2.0


class LineWriter:
    """Writes to a file descriptor from a thread of its own, so that a full or broken pipe blocks nobody.

    Lines that cannot be written wait and are retried. Beyond a limit new lines are dropped; their number is logged
    once lines can be written again.
    """

    def __init__(self, descriptor: int, max_bytes: int = MAX_WAITING_BYTES) -> None:
        self._descriptor = descriptor
        self._most_bytes = max_bytes
        self._waiting: deque[bytes] = deque()
        self._size = 0
        self._dropped = 0
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def write(self, lines: bytes) -> None:
        with self._changed:
            if self._size + len(lines) > self._most_bytes:
                self._dropped += lines.count(b"\n")
            else:
                self._append(lines)

    def flush(self, seconds: float = FLUSH_SECONDS) -> bool:
        """Waits until everything is written, at most `seconds`; returns whether it is."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._waiting, seconds)

    def _append(self, lines: bytes) -> None:
        self._waiting.append(lines)
        self._size += len(lines)
        if self._thread is None or not self._thread.is_alive():  # a forked process does not have its parent's threads
            self._thread = threading.Thread(target=self._run, name="log writer", daemon=True)
            self._thread.start()
        self._changed.notify_all()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting)
                lines = self._waiting[0]
            self._write_all(lines)
            with self._changed:
                self._waiting.popleft()
                self._size -= len(lines)
                if self._dropped:
                    self._append(_build_report(self._dropped))
                    self._dropped = 0
                self._changed.notify_all()

    def _write_all(self, lines: bytes) -> None:
        remaining = memoryview(lines)
        while remaining:
            try:
                remaining = remaining[os.write(self._descriptor, remaining) :]
            except OSError:
                time.sleep(RETRY_SECONDS)


class LineStream:
    """A writer as the text file that structlog prints to."""

    def __init__(self, writer: LineWriter) -> None:
        self._writer = writer

    def write(self, text: str) -> None:
        self._writer.write(text.encode("utf-8", "backslashreplace"))

    def flush(self) -> None:
        """The thread writes as soon as it can."""


def _build_report(dropped: int) -> bytes:
    now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    report = {"event": "log lines dropped", "lines": dropped, "level": "warning", "time": now}
    return msgspec.json.encode(report) + b"\n"


STANDARD_OUTPUT = LineWriter(1)


def configure_logs(level: str) -> None:
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(ensure_ascii=False),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.WriteLoggerFactory(file=cast(TextIO, LineStream(STANDARD_OUTPUT))),
        cache_logger_on_first_use=True,
    )
    atexit.register(STANDARD_OUTPUT.flush)
