"""Records spans with OpenTelemetry and sends them over OTLP. Only imported when traces are on."""

import os
import random

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span as OtelSpan
from opentelemetry.trace import SpanKind as OtelKind
from opentelemetry.trace import Status, StatusCode, Tracer, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from sapa import __version__
from sapa.traces import Attributes, SpanKind

EXPORT_SECONDS = 5
"""How long one batch may take: a process that stops waits for the last one."""

_KINDS = {"server": OtelKind.SERVER, "client": OtelKind.CLIENT, "consumer": OtelKind.CONSUMER}
_PROPAGATOR = TraceContextTextMapPropagator()


class OtlpSpan:
    def __init__(self, tracer: Tracer, span: OtelSpan) -> None:
        self._tracer = tracer
        self._span = span
        context = span.get_span_context()
        self.traceparent = f"00-{context.trace_id:032x}-{context.span_id:016x}-01"

    def start(self, name: str, kind: SpanKind, attributes: Attributes, started_at: int | None = None) -> "OtlpSpan":
        parent = set_span_in_context(self._span)
        span = self._tracer.start_span(name, parent, _KINDS[kind], attributes, start_time=started_at)
        return OtlpSpan(self._tracer, span)

    def rename(self, name: str) -> None:
        self._span.update_name(name)

    def describe(self, attributes: Attributes) -> None:
        self._span.set_attributes(attributes)

    def end(self, error: BaseException | None = None) -> None:
        if error is not None:
            self._span.set_attribute("error.type", type(error).__name__)
            self._span.set_status(Status(StatusCode.ERROR))
        self._span.end()


class OtlpRecorder:
    def __init__(self, url: str, percent: int, process: str) -> None:
        resource = Resource.create(
            {"service.name": process, "service.version": __version__, "service.instance.id": str(os.getpid())}
        )
        self._share = percent / 100
        self._provider = TracerProvider(resource=resource)
        exporter = OTLPSpanExporter(f"{url}/v1/traces", timeout=EXPORT_SECONDS)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("sapa")

    def sample(self, name: str, kind: SpanKind) -> OtlpSpan | None:
        if random.random() >= self._share:  # noqa: S311
            return None
        return OtlpSpan(self._tracer, self._tracer.start_span(name, kind=_KINDS[kind]))

    def resume(self, traceparent: str, name: str, kind: SpanKind, attributes: Attributes) -> OtlpSpan:
        parent = _PROPAGATOR.extract({"traceparent": traceparent})
        return OtlpSpan(self._tracer, self._tracer.start_span(name, parent, _KINDS[kind], attributes))

    def close(self) -> None:
        self._provider.shutdown()
