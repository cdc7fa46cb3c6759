"""Turns traces on where the settings say so. OpenTelemetry is imported only then."""

from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from sapa import traces
from sapa.app import App
from sapa.http.exchange import Receive, Scope, Send
from sapa.settings import TraceSettings


@contextmanager
def record_traces(settings: TraceSettings, process: str) -> Iterator[None]:
    """For the length of a block. Call it in the process itself: the recorder has a thread, which a fork would lose."""
    if settings.url is None:
        yield
        return
    recorder = import_module("sapa.runtime.span_recorder").OtlpRecorder(settings.url, settings.percent, process)
    traces.install(recorder)
    try:
        yield
    finally:
        traces.install(None)
        recorder.close()


class TracedApp:
    """The app of a process that records traces."""

    def __init__(self, app: App) -> None:
        self._app = app

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        # Most calls are not sampled, and then pay for nothing else.
        span = None if scope["type"] == "lifespan" else traces.sample(scope["method"], "server")
        return self._app(scope, receive, send) if span is None else self._trace(span, scope, receive, send)

    async def _trace(self, span: traces.Span, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_traced(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                span.describe({"http.response.status_code": message["status"]})
            await send(message)

        with traces.activate(span):
            await self._app(scope, receive, send_traced)
            route = self._app.edge.find_route(scope) or "unknown"
            span.rename(f"{scope['method']} {route}")
            span.describe({"http.request.method": scope["method"], "http.route": route})
