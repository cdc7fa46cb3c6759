"""One trace from the call over the database and the provider to the worker and the webhook, as a collector gets it."""

import asyncio
import os
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

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
SIDE_BY_SIDE = 20
QUERY = "db.query.text"
CALL = "POST /messaging/v1/messages/send"
DELIVERY = ["POST", "deliver webhook"]

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

    def find(self, path: list[str]) -> list[Span]:
        """The spans with this path."""
        return [span for id, span in self.spans.items() if self.path_to_root(id) == path]


def read(span: Span) -> dict[str, str]:
    """Its attributes."""
    return {attribute.key: attribute.value.string_value for attribute in span.attributes}


@asynccontextmanager
async def run_worker(environ: dict[str, str]) -> AsyncIterator[None]:
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "sapa", "worker", env=os.environ | environ)
    try:
        yield
    finally:
        process.terminate()
        assert await process.wait() == 0


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
        async with run_worker(environ):
            with run_api(installation, **environ) as server:
                async with httpx.AsyncClient(base_url=server.address, headers={"x-api-key": key}) as api:
                    body = {"to": "+12015550100", "sources": "MSGAPP_CLOUD", "message": "Halo Budi"}
                    response = await api.post("/messaging/v1/messages/send", json=body, timeout=PATIENCE)
                    assert response.status_code == 200, response.text
                    calls = [api.get("/customer/v1/orders", timeout=PATIENCE) for _ in range(SIDE_BY_SIDE)]
                    assert {response.status_code for response in await asyncio.gather(*calls)} == {200}
                # The call to the provider, and the one to the receiver of the webhook.
                assert await wait_until(lambda: bool(collector.find(["POST", CALL])), PATIENCE)
                assert await wait_until(lambda: bool(collector.find([*DELIVERY, CALL])), PATIENCE)
    trace = collector.find([CALL])[0].trace_id
    assert {span.trace_id for span in collector.find(["POST", CALL])} == {trace}
    assert trace in {span.trace_id for span in collector.find([*DELIVERY, CALL])}
    statements = [span for span in collector.spans.values() if span.trace_id == trace and QUERY in read(span)]
    assert {"BEGIN;", "COMMIT;"} <= {span.name for span in statements}
    texts = [read(span)[QUERY] for span in statements]
    assert any("INSERT INTO rate_windows" in text for text in texts)
    assert not any("Halo Budi" in text for text in texts)
    counted = Counter(span.trace_id for span in collector.spans.values() if "rate_windows" in read(span).get(QUERY, ""))
    assert set(counted.values()) == {1}


@pytest.mark.long
def test_nothing_is_imported_when_traces_are_off() -> None:
    assert read_settings({}).traces.url is None
    program = "import sys, sapa.cli, sapa.app; sys.exit(any(name.startswith('opentelemetry') for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
