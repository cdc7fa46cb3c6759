"""Traces: what one call led to, in every process that worked for it.

Nothing is recorded until a recorder is installed, and then only for the calls that it samples.
"""

import asyncio
import time
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal, Protocol, TypeVar
from urllib.parse import urlsplit

SpanKind = Literal["server", "client", "consumer"]
Attributes = Mapping[str, str | int]
Result = TypeVar("Result")

MAX_QUERY_CHARACTERS = 1_000


class Span(Protocol):
    """One piece of work in a trace."""

    traceparent: str
    """Names it for other processes, in the form of W3C Trace Context."""

    def start(self, name: str, kind: SpanKind, attributes: Attributes, started_at: int | None = None) -> "Span":
        """A piece of it, since now or since an instant in nanoseconds."""
        ...

    def rename(self, name: str) -> None: ...

    def describe(self, attributes: Attributes) -> None: ...

    def end(self, error: BaseException | None = None) -> None: ...


class Recorder(Protocol):
    def sample(self, name: str, kind: SpanKind) -> Span | None:
        """The first span of a new trace; None for most calls."""
        ...

    def resume(self, traceparent: str, name: str, kind: SpanKind, attributes: Attributes) -> Span: ...

    def close(self) -> None:
        """Sends what it has."""
        ...


CURRENT: ContextVar[Span | None] = ContextVar("span", default=None)
"""What the running task records to."""

_recorder: Recorder | None = None


def install(recorder: Recorder | None) -> None:
    global _recorder
    _recorder = recorder


def sample(name: str, kind: SpanKind) -> Span | None:
    """The first span of a new trace; None for most calls."""
    return _recorder.sample(name, kind) if _recorder is not None else None


@contextmanager
def resume_trace(traceparent: str | None, name: str, kind: SpanKind, attributes: Attributes) -> Iterator[None]:
    """A block that continues the trace of another process, if there is one."""
    span = None
    if _recorder is not None and traceparent is not None:
        span = _recorder.resume(traceparent, name, kind, attributes)
    with activate(span):
        yield


@contextmanager
def open_request(method: str, url: str) -> Iterator[Span | None]:
    """A request to another server, within the current trace if there is one."""
    current = CURRENT.get()
    if current is None:
        yield None
        return
    attributes = {"http.request.method": method, "server.address": urlsplit(url).hostname or ""}
    span = current.start(method, "client", attributes)
    with activate(span):
        yield span


def create_shared_task(work: Coroutine[Any, Any, Result], name: str | None = None) -> asyncio.Task[Result]:
    """A task that does not belong to the call that starts it, and so is not in its trace."""
    if CURRENT.get() is None:
        return asyncio.create_task(work, name=name)
    with leave():
        return asyncio.create_task(work, name=name)


def work_for(spans: Sequence[Span | None]) -> None:
    """From now on the running task works for these calls: in the trace of a lone one, in none for several."""
    CURRENT.set(spans[0] if len(spans) == 1 else None)


@contextmanager
def leave() -> Iterator[None]:
    """What happens inside the block is another server's part, and in no trace."""
    before = CURRENT.set(None)
    try:
        yield
    finally:
        CURRENT.reset(before)


@contextmanager
def activate(span: Span | None) -> Iterator[None]:
    """A block that the span is about; it ends with the block."""
    if span is None:
        yield
        return
    before = CURRENT.set(span)
    try:
        yield
    except BaseException as error:
        span.end(error)
        raise
    else:
        span.end()
    finally:
        CURRENT.reset(before)


def record_query(query: Any) -> None:
    """Is called by asyncpg after a statement, in the context of the task that ran it."""
    current = CURRENT.get()
    if current is None:
        return
    text = " ".join(query.query.split())
    attributes = {"db.system.name": "postgresql", "db.query.text": text[:MAX_QUERY_CHARACTERS]}
    started_at = time.time_ns() - int(query.elapsed * 1e9)
    current.start(text.partition(" ")[0], "client", attributes, started_at).end(query.exception)
