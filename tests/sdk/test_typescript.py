"""The TypeScript SDK on a real server: a scenario over all domains, and the faults of networks."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from sapa.domains import ROUTES
from sdk.generator.text import camel
from tests.conftest import Installation, free_port
from tests.sdk.node import run_module, run_with_bun, run_with_deno
from tests.sdk.proxy import FaultyProxy, Step, answer, answer_page, drop, forward_and_drop, stall

SCENARIO = Path(__file__).with_name("scenario.ts").read_text()

CREATE = """
import { Sapa } from "@sapa/client";
const sapa = new Sapa();
const made = await sapa.customers.create({ email: "ayu@example.com" });
const { data } = await sapa.customers.list();
if (data.length !== 1 || data[0].id !== made.id) throw new Error(JSON.stringify(data));
"""

LIST = """
import * as sdk from "@sapa/client";
const sapa = new sdk.Sapa({ maxRetries: 0, ...JSON.parse(process.argv[2]) });
const options = process.argv[3] === "abort" ? { signal: AbortSignal.timeout(200) } : {};
try {
  await sapa.customers.list({}, options);
  console.log("no error");
} catch (error) {
  const names = [];
  for (let kind = error.constructor; kind.name !== "Error" && kind.name; kind = Object.getPrototypeOf(kind)) {
    names.push(kind.name);
  }
  console.log(JSON.stringify([names, error.name, error.status ?? null]));
}
"""

DOWNLOAD = """
const { Transport } = await import(`${process.env.SAPA_SOURCES}/transport.ts`);
const headers = { "content-type": "text/csv", "content-disposition": process.argv[2] };
const fetch = async () => new Response("a,b", { headers });
const transport = new Transport({ apiKey: "x", baseUrl: "http://x.test", timeoutMs: Infinity, maxRetries: 0, fetch });
const file = await transport.file({ method: "GET", path: "/costs" });
console.log(JSON.stringify([new TextDecoder().decode(file.content), file.contentType, file.filename]));
"""

WAIT = """
import { Sapa } from "@sapa/client";
const waits = [];
const later = globalThis.setTimeout;
const soon = new Date(Date.now() + 30_000).toUTCString();
for (const word of [...JSON.parse(process.argv[2]), soon]) {
  globalThis.setTimeout = (done, milliseconds) => (waits.push(milliseconds / 1000), later(done, 0));
  let calls = 0;
  const fetch = async () =>
    calls++ === 0
      ? new Response("<h1>Bad gateway</h1>", { status: 503, headers: word === null ? {} : { "retry-after": word } })
      : Response.json({ data: [], meta: { page: 1, hasNextPage: false } });
  const sapa = new Sapa({ apiKey: "x", baseUrl: "http://x.test", timeoutMs: Infinity, fetch });
  await sapa.customers.list().then(() => {}, (error) => waits.push([error.name, error.retryAfter]));
}
console.log(JSON.stringify(waits));
"""

STREAM = """
import { Sapa } from "@sapa/client";
let calls = 0;
const fetch = async () => (calls++, new Response());
const sapa = new Sapa({ apiKey: "x", baseUrl: "http://x.test", fetch });
try {
  await sapa.attachments.upload(new Blob(["x"]).stream());
} catch (error) {
  console.log(error.name, error.message.includes("cannot be sent again"), calls);
}
"""

BAD = """
import { Sapa } from "@sapa/client";
for (const options of JSON.parse(process.argv[2])) {
  try {
    new Sapa(options);
  } catch (error) {
    console.log(error.message);
  }
}
const sapa = new Sapa({ apiKey: "svc_test_x", baseUrl: "http://127.0.0.1:1" });
for (const call of [
  () => sapa.customers.get(""),
  () => sapa.customers.get(".."),
  () => sapa.customers.get(undefined),
  () => sapa.customers.list({ tags: ["a,b"] }).page(),
  () => sapa.imports.create("email", { resource: "customers" }),
  () => sapa.customers.create({ email: "ayu@example.com" }, { idempotencyKey: "order…" }),
]) {
  try {
    await call();
  } catch (error) {
    console.log(`${error.name}: ${error.message}`);
  }
}
"""


def test_a_day_of_a_shop(installation: Installation, key: str) -> None:
    assert run_module(SCENARIO, SAPA_API_KEY=key, SAPA_BASE_URL=installation.address) == "done\n"


@pytest.mark.long
@pytest.mark.parametrize("run", [run_with_deno, run_with_bun], ids=lambda run: run.__name__)
def test_a_day_of_a_shop_elsewhere(installation: Installation, key: str, run: Callable[..., str]) -> None:
    assert run(SCENARIO, SAPA_API_KEY=key, SAPA_BASE_URL=installation.address) == "done\n"


def test_the_scenario_uses_every_resource() -> None:
    resources = {camel(routes.resource) for routes in ROUTES} | {"redemptions"}
    assert {name for name in resources if f"sapa.{name}." not in SCENARIO} == set()


@pytest.mark.parametrize(
    "fault",
    [drop, forward_and_drop, answer(503, "SERVICE_UNAVAILABLE", retry_after="0"), answer_page(502)],
    ids=["dropped", "response lost", "busy", "bad gateway"],
)
def test_a_write_is_tried_again_and_happens_once(proxy: FaultyProxy, key: str, fault: Step) -> None:
    proxy.steps = [fault]
    run_module(CREATE, SAPA_API_KEY=key, SAPA_BASE_URL=proxy.address)
    written = [request["idempotency-key"] for request in proxy.requests if "idempotency-key" in request]
    assert len(written) == 2
    assert len(set(written)) == 1
    assert proxy.requests[0]["user-agent"].startswith("sapa-client-typescript/")


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (drop, '[["ConnectionFailed","SapaError"],"ConnectionFailed",null]'),
        (
            answer(503, "SERVICE_UNAVAILABLE"),
            '[["ServiceUnavailable","ServerError","ApiError","SapaError"],"ServiceUnavailable",503]',
        ),
        (answer(599, "NEW_CODE"), '[["ServerError","ApiError","SapaError"],"ServerError",599]'),
        (answer(404, "NEW_CODE"), '[["NotFound","ApiError","SapaError"],"NotFound",404]'),
        (answer(418, "TEAPOT"), '[["ApiError","SapaError"],"ApiError",418]'),
        (answer_page(502), '[["UnexpectedResponse","SapaError"],"UnexpectedResponse",502]'),
    ],
)
def test_errors_have_their_classes(proxy: FaultyProxy, key: str, fault: Step, expected: str) -> None:
    proxy.steps = [fault]
    assert run_module(LIST, "{}", SAPA_API_KEY=key, SAPA_BASE_URL=proxy.address) == expected + "\n"


def test_a_slow_server_times_out(proxy: FaultyProxy, key: str) -> None:
    proxy.steps = [stall]
    output = run_module(LIST, '{"timeoutMs": 200}', SAPA_API_KEY=key, SAPA_BASE_URL=proxy.address)
    assert output == '[["TimedOut","ConnectionFailed","SapaError"],"TimedOut",null]\n'


def test_a_call_can_be_aborted(proxy: FaultyProxy, key: str) -> None:
    proxy.steps = [stall]
    output = run_module(LIST, "{}", "abort", SAPA_API_KEY=key, SAPA_BASE_URL=proxy.address)
    assert '"TimeoutError"' in output
    assert "ConnectionFailed" not in output


def test_a_server_that_is_not_there(key: str) -> None:
    output = run_module(LIST, "{}", SAPA_API_KEY=key, SAPA_BASE_URL=f"http://127.0.0.1:{free_port()}")
    assert "ConnectionFailed" in output


@pytest.mark.parametrize(
    ("disposition", "name"),
    [
        ('attachment; filename="costs 2026.csv"', "costs 2026.csv"),
        (r'attachment; filename="a \"b\" \\c.csv"', r'a "b" \c.csv'),
        ("inline; filename*=UTF-8''na%C3%AFve%20%22x%22.csv", 'na\u00efve "x".csv'),
        ("inline; filename=\"plain.csv\"; filename*=UTF-8''%FF.csv", "plain.csv"),
        ("inline", None),
    ],
)
def test_a_file_has_its_name_and_type(disposition: str, name: str | None) -> None:
    assert json.loads(run_module(DOWNLOAD, disposition)) == ["a,b", "text/csv", name]


def test_it_waits_as_long_as_a_proxy_says() -> None:
    """Seconds or a time; a word that is neither counts as none, and a long wait is left to the caller."""
    ignored = [None, "", "-1", "soon", "1e9", "NaN"]
    seconds, past, *others = json.loads(
        run_module(WAIT, json.dumps(["7", "Wed, 21 Oct 2015 07:28:00 GMT", *ignored, "61", "9" * 400]))
    )
    *short, long, absurd, soon = others
    assert (seconds, past) == (7, 0)
    assert len(short) == len(ignored)
    assert all(0.25 <= wait <= 0.5 for wait in short)
    assert (long, absurd[0]) == (["UnexpectedResponse", 61], "UnexpectedResponse")
    assert 20 < soon <= 30


def test_a_stream_is_refused_before_it_is_used_up() -> None:
    assert run_module(STREAM) == "TypeError true 0\n"


def test_mistakes_are_explained() -> None:
    options = (
        '[{"baseUrl": "https://sapa.example.com"}, {"apiKey": "svc_test_…", "baseUrl": "https://sapa.example.com"},'
        ' {"apiKey": "svc_test_x"}, {"apiKey": "svc_test_x", "baseUrl": "x"},'
        ' {"apiKey": "svc_test_x", "baseUrl": "https://sapa.example.com/messaging/v1/"}]'
    )
    lines = run_module(BAD, options).splitlines()
    advice = ["SAPA_API_KEY", "not whole", "SAPA_BASE_URL", "SAPA_BASE_URL", "without /customer/v1"]
    assert [text in line for text, line in zip(advice, lines, strict=False)] == [True] * 5
    assert lines[5:] == [
        'TypeError: "" is not an id.',
        'TypeError: ".." is not an id.',
        "TypeError: undefined is not an id.",
        "TypeError: A value of tags contains a comma, which separates the values.",
        "TypeError: Pass contentType: one of text/csv, application/x-ndjson,"
        " application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.",
        "TypeError: idempotencyKey has to be 1 to 255 printable ASCII characters.",
    ]
