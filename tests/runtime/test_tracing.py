"""One trace from the call over the database and the provider to the worker and the webhook, as a collector gets it."""

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import httpx
import pytest
from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from sapa.db.pool import Database, open_database
from sapa.runtime.processes import wait_until
from sapa.settings import read_settings
from sapa.values.sealing import Vault
from tests.conftest import Installation, free_port
from tests.db.scratch import migrated_database
from tests.factories import make_company, make_endpoint, make_key
from tests.faults.api_servers import run_api
from tests.webhooks.shop import open_shop

PATIENCE = 120

pytestmark = pytest.mark.processes


class Collector:
    """Takes what is sent over OTLP, and decodes it with OpenTelemetry's own definitions."""

    def __init__(self) -> None:
        self.url = ""
        self.spans: dict[bytes, Span] = {}

    async def receive(self, request: web.Request) -> web.Response:
        message = ExportTraceServiceRequest.FromString(await request.read())
        scopes = [scope for part in message.resource_spans for scope in part.scope_spans]
        self.spans |= {span.span_id: span for scope in scopes for span in scope.spans}
        return web.Response(content_type="application/x-protobuf")

    def path_to_root(self, id: bytes) -> list[str]:
        """The names of a span and of all that it is a part of."""
        names = []
        while id in self.spans:
            names.append(self.spans[id].name)
            id = self.spans[id].parent_span_id
        return names


def read(span: Span) -> dict[str, str]:
    """Its attributes."""
    return {attribute.key: attribute.value.string_value for attribute in span.attributes}


@contextmanager
def run_worker(environ: dict[str, str]) -> Iterator[None]:
    process = subprocess.Popen([sys.executable, "-m", "sapa", "worker"], env=os.environ | environ)
    try:
        yield
    finally:
        process.terminate()
        assert process.wait(PATIENCE) == 0


@asynccontextmanager
async def open_collector() -> AsyncIterator[Collector]:
    collector = Collector()
    app = web.Application(client_max_size=2**24)
    app.router.add_post("/v1/traces", collector.receive)
    runner = web.AppRunner(app)
    await runner.setup()
    port = free_port()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    collector.url = f"http://127.0.0.1:{port}"
    try:
        yield collector
    finally:
        await runner.cleanup()


@pytest.fixture
async def database(installation: Installation) -> AsyncIterator[Database]:
    async with migrated_database(installation.server) as scratch, open_database(scratch.app_url) as opened:
        yield opened


async def test_a_call_and_its_webhook_are_one_trace(installation: Installation, database: Database) -> None:
    company = await make_company(database)
    key = (await make_key(database, company.test)).raw
    async with open_collector() as collector, open_shop() as shop:
        await make_endpoint(database, Vault(installation.server.secret_key), company.test, shop.url)
        environ = {
            "SAPA_DATABASE_URL": database.url,
            "SAPA_SECRET_KEY": installation.server.secret_key,
            "SAPA_TRACES_URL": collector.url,
            "SAPA_TRACES_PERCENT": "100",
            "SAPA_WEBHOOK_ALLOW_INSECURE": "1",
            "OTEL_BSP_SCHEDULE_DELAY": "100",
        }
        with run_worker(environ), run_api(installation, **environ) as server:
            async with httpx.AsyncClient(base_url=server.address, headers={"x-api-key": key}) as api:
                response = await api.post("/customer/v1/customers", json={"email": "budi@example.com"})
            assert response.status_code == 201
            path = ["POST", "deliver webhook", "POST /customer/v1/customers"]
            assert await wait_until(
                lambda: any(map(path.__eq__, map(collector.path_to_root, collector.spans))), PATIENCE
            )
    delivery = next(id for id in collector.spans if collector.path_to_root(id) == path)
    trace = collector.spans[delivery].trace_id
    statements = [span for span in collector.spans.values() if span.trace_id == trace and "db.query.text" in read(span)]
    assert {"BEGIN;", "COMMIT;"} <= {span.name for span in statements}
    texts = [read(span)["db.query.text"] for span in statements]
    assert any("INSERT INTO events" in text for text in texts)
    assert not any("budi@example.com" in text for text in texts)


def test_nothing_is_imported_when_traces_are_off() -> None:
    assert read_settings({}).traces.url is None
    program = "import sys, sapa.cli, sapa.app; sys.exit(any(name.startswith('opentelemetry') for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
