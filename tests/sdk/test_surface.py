"""Both SDKs are as the declarations say, have every operation, and send what the server's own validation accepts."""

import inspect
import re
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest

import sapa_client.types
from sapa.domains import ROUTES
from sapa_client import AsyncPagedList, AsyncSapa, File, PagedList, Sapa
from sapa_client._values import encode_json
from sdk.generator.files import list_stale_files
from sdk.generator.surface import Operation, name_method
from sdk.generator.text import camel
from tests.sdk.node import run_module
from tests.sdk.sample_calls import SDK, SampleCall, bind, get_sample_calls, get_surface

OPERATIONS = sorted(endpoint.handler.__name__ for routes in ROUTES for endpoint in routes.endpoints)

pytestmark = pytest.mark.processes


def build_clients() -> tuple[Sapa, AsyncSapa]:
    return Sapa("svc_test_x", base_url="http://sapa.test"), AsyncSapa("svc_test_x", base_url="http://sapa.test")


def get_method(client: Sapa | AsyncSapa, operation: Operation) -> Any:
    return getattr(getattr(client, operation.resource), operation.name)


def test_the_generated_files_are_current() -> None:
    assert list_stale_files() == [], "run `make sdks`"


def test_every_operation_is_a_method() -> None:
    table = (SDK / "METHODS.md").read_text()
    rows = re.findall(r"^\| `\w+ [^`]+` \| (\w+) \| `([\w.]+)` \| `([\w.]+)` \|$", table, re.MULTILINE)
    assert sorted(id for id, _, _ in rows) == OPERATIONS
    source = (SDK / "typescript" / "src" / "resources.ts").read_text()
    classes = dict(
        re.findall(r"^export class (\w+)Resource extends Resource \{\n(.*?)^\}$", source, re.MULTILINE | re.DOTALL)
    )
    clients = build_clients()
    for _, python, typescript in rows:
        resource, method = python.split(".")
        for client in clients:
            assert callable(getattr(getattr(client, resource), method))
        resource, method = typescript.split(".")
        assert re.search(rf"^  {method}\(", classes[resource[0].upper() + resource[1:]], re.MULTILINE)


@pytest.mark.parametrize(
    ("operation", "resource", "expected"),
    [
        ("list_customers", "customers", "customers.list"),
        ("list_reward_redeemers", "rewards", "rewards.list_redeemers"),
        ("get_store_location", "store_locations", "store_locations.get"),
        ("adjust_points", "loyalty", "loyalty.adjust_points"),
        ("reply_to_ticket", "tickets", "tickets.reply"),
        ("get_redemption_summary", "rewards", "redemptions.summary"),
    ],
)
def test_a_method_is_named_after_its_operation(operation: str, resource: str, expected: str) -> None:
    assert ".".join(name_method(operation, resource)) == expected


def test_models_have_the_fields_of_the_wire() -> None:
    for model in get_surface().models:
        struct = getattr(sapa_client.types, model.name)
        assert set(struct.__struct_encode_fields__) == {field.name for field in model.fields}, model.name


def test_every_list_says_how_it_is_continued() -> None:
    for operation in get_surface().operations:
        example = operation.example if isinstance(operation.example, dict) else {}
        part = example.get("meta") or example.get("pagination") or {}
        is_continued = not part.keys().isdisjoint({"hasNextPage", "hasMore"})
        assert (operation.paging is not None) == is_continued, operation.id
        if operation.paging:
            assert operation.paging in [field.name for field in operation.query], operation.id


def test_both_python_clients_take_the_same_arguments() -> None:
    clients = build_clients()
    for operation in get_surface().operations:
        sync, awaited = (inspect.signature(get_method(client, operation)) for client in clients)
        assert sync.parameters == awaited.parameters, operation.id


FILE_HEADERS = {"content-type": "application/pdf", "content-disposition": 'inline; filename="label.pdf"'}


class CheckingServer:
    """Validates each request as the server does and responds with the documented example."""

    def __init__(self, call: SampleCall) -> None:
        self.call = call
        self.requests: list[httpx2.Request] = []

    def respond(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        media_type = request.headers.get("content-type", "")
        endpoint, _ = bind(request.method, str(request.url), media_type, request.read())
        assert endpoint.handler.__name__ == self.call.operation.id
        example = self.call.operation.example
        if self.call.operation.returns_file:
            return httpx2.Response(200, headers=FILE_HEADERS, content=b"file")
        content = b"" if example is None else msgspec.json.encode(example)
        return httpx2.Response(self.call.operation.status, content=content)

    def check(self, result: Any) -> None:
        """The request had the sample's values, and the result has everything that the response had."""
        (request,) = self.requests
        sent = request.read()
        if self.call.body is not None:
            assert _plain_times(msgspec.json.decode(sent)) == _plain_times(self.call.body)
        assert ("idempotency-key" in request.headers) == self.call.operation.writes
        if self.call.operation.returns_file:
            assert result == File(b"file", FILE_HEADERS["content-type"], "label.pdf")
            return
        if self.call.operation.example is None:
            assert result is None
            return
        example = self.call.operation.example
        expected = example if self.call.operation.paging else example["data"]
        assert _without_rest(msgspec.json.decode(encode_json(result)), expected) == _plain_times(expected)


def _without_rest(result: Any, expected: Any) -> Any:
    """The result without fields that the response did not have: optional ones, which are null then."""
    if isinstance(expected, dict):
        return {name: _without_rest(result.get(name), value) for name, value in expected.items()}
    if isinstance(expected, list) and len(result) == len(expected):
        return [_without_rest(item, value) for item, value in zip(result, expected, strict=True)]
    return result


def _plain_times(value: Any) -> Any:
    """Times without the fraction .000, as msgspec writes them."""
    return msgspec.json.decode(re.sub(rb"(T\d\d:\d\d:\d\d)\.000Z", rb"\1Z", msgspec.json.encode(value)))


@pytest.fixture
def call(operation: str) -> SampleCall:
    return get_sample_calls()[operation]


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_call_is_what_the_server_expects(call: SampleCall) -> None:
    server = CheckingServer(call)
    http = httpx2.Client(transport=httpx2.MockTransport(server.respond))
    client = Sapa("svc_test_x", base_url="http://sapa.test", max_retries=0, http_client=http)
    positional, named = call.python_arguments
    result = get_method(client, call.operation)(*positional, **named)
    server.check(result.page() if isinstance(result, PagedList) else result)


@pytest.mark.parametrize("operation", OPERATIONS)
async def test_an_awaited_call_is_what_the_server_expects(call: SampleCall) -> None:
    server = CheckingServer(call)
    http = httpx2.AsyncClient(transport=httpx2.MockTransport(server.respond))
    client = AsyncSapa("svc_test_x", base_url="http://sapa.test", max_retries=0, http_client=http)
    positional, named = call.python_arguments
    result = get_method(client, call.operation)(*positional, **named)
    server.check(await (result.page() if isinstance(result, AsyncPagedList) else result))


CALL_ALL = """
import { readFileSync } from "node:fs";
import { Sapa } from "@sapa/client";

const calls = JSON.parse(readFileSync(process.argv[2], "utf8"));
for (const { resource, method, args, status, body } of calls) {
  let request;
  const fetch = async (url, init) => {
    request = { url, method: init.method, headers: init.headers, body: init.body ?? "" };
    return new Response(body === null ? null : JSON.stringify(body), { status });
  };
  const sapa = new Sapa({ apiKey: "svc_test_x", baseUrl: "http://sapa.test", maxRetries: 0, fetch });
  const result = await sapa[resource][method](...args);
  console.log(JSON.stringify({ ...request, result: result ?? null }));
}
"""


def test_calls_of_typescript_are_what_the_server_expects(tmp_path: Path) -> None:
    sample_calls = list(get_sample_calls().values())
    calls = [
        {
            "resource": camel(call.operation.resource),
            "method": camel(call.operation.name),
            "args": call.typescript_arguments,
            "status": call.operation.status,
            "body": call.operation.example,
        }
        for call in sample_calls
    ]
    file = tmp_path / "calls.json"
    file.write_bytes(msgspec.json.encode(calls))
    lines = run_module(CALL_ALL, str(file)).splitlines()
    for call, line in zip(sample_calls, lines, strict=True):
        seen = msgspec.json.decode(line)
        media_type = seen["headers"].get("content-type", "")
        endpoint, _ = bind(seen["method"], seen["url"], media_type, seen["body"].encode())
        assert endpoint.handler.__name__ == call.operation.id
        if call.body is not None:
            assert msgspec.json.decode(seen["body"]) == call.body
        assert ("idempotency-key" in seen["headers"]) == call.operation.writes
        if not call.operation.returns_file:
            example = call.operation.example
            assert seen["result"] == (example and (example if call.operation.paging else example["data"]))
