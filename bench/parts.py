"""The one list of parts. A part is a function that measures something on a folder of its own."""

from collections.abc import Awaitable, Callable
from pathlib import Path

from msgspec import Struct

from bench.analytics.part import measure_analytics
from bench.api.part import measure_api
from bench.calls.part import measure_calls
from bench.console.part import measure_console
from bench.findings import Findings
from bench.idle.part import measure_idle
from bench.imports.part import measure_imports
from bench.loyalty.part import measure_loyalty
from bench.mcp.part import measure_mcp
from bench.messaging.part import measure_messaging
from bench.shipping.part import measure_shipping
from bench.traces.part import measure_traces
from bench.webhooks.part import measure_webhooks


class Part(Struct, frozen=True):
    name: str
    what: str
    run: Callable[[Path, bool], Awaitable[Findings]]
    """Gets a folder that is removed afterwards, and whether the run is a quick one."""


PARTS = [
    Part("api", "requests, against the bare ceiling and the usual stack", measure_api),
    Part("webhooks", "deliveries, against a bare loop of POSTs", measure_webhooks),
    Part("shipping", "quotes, places and new shipments, against the bare ceiling", measure_shipping),
    Part("messaging", "sends, against a bare process that passes them on, and the history", measure_messaging),
    Part("imports", "files in and out, against a bare COPY", measure_imports),
    Part("loyalty", "points, against a bare statement and a short history", measure_loyalty),
    Part("analytics", "figures of agents, against a plain aggregate of the same samples", measure_analytics),
    Part("calls", "the log of API calls, against a get and a short log", measure_calls),
    Part("console", "pages, against the calls behind them", measure_console),
    Part("idle", "an installation without anything to do", measure_idle),
    Part("traces", "calls that are traced, against calls that are not", measure_traces),
    Part("mcp", "tool calls, against the same calls of the API", measure_mcp),
]
