"""The helpers for tests of programs that use the SDKs."""

import pytest

from sapa_client import errors
from sapa_client.testing import FakeServer, sign_delivery
from tests.sdk.node import run_module
from tests.sdk.sample_calls import get_surface

pytestmark = pytest.mark.processes


HEADERS = """
import { FakeServer } from "@sapa/client/testing";
const server = new FakeServer();
const headers = { "Idempotency-Key": "order-1042", "User-Agent": "shop/1.0" };
await server.client().customers.create({ email: "ayu@example.com" }, { headers });
await server.client().customers.create({ email: "ayu@example.com" }, { headers, idempotencyKey: "order-1043" });
for (const request of server.requests) {
  const sent = new Headers(request.headers);
  console.log(sent.get("idempotency-key"), sent.get("user-agent"));
}
"""


def test_a_call_gets_the_documented_example() -> None:
    customer = FakeServer().client().customers.get("cust_1")
    example = next(one.example for one in get_surface().operations if one.id == "get_customer")
    assert customer.id == example["data"]["id"]


def test_answers_come_in_their_order_and_the_last_one_stays() -> None:
    server = FakeServer()
    client = server.client()
    first = client.agents.get(1)
    server.answer("agents.get", first)
    server.answer("agents.get", {"id": 2, "name": "Budi", "type": "ai", "active": True} | _times())
    assert [client.agents.get(1).id for _ in range(3)] == [first.id, 2, 2]


def _times() -> dict[str, str]:
    return {"createdAt": "2026-01-31T09:30:00Z", "updatedAt": "2026-01-31T09:30:00Z"}


async def test_a_list_has_the_items_that_it_is_given() -> None:
    server = FakeServer()
    client = server.async_client()
    customer = await client.customers.get("cust_1")
    server.answer("customers.list", [customer, customer])
    server.answer("loyalty.list_history", [])
    assert [one.id async for one in client.customers.list(limit=2)] == [customer.id] * 2
    assert [one async for one in client.loyalty.list_history("cust_1")] == []
    assert server.requests[1].query == {"limit": "2"}


def test_an_error_is_raised_and_the_request_recorded() -> None:
    server = FakeServer()
    server.fail("customers.create", 409, "CUSTOMER_EXISTS", "Taken.", retry_after=3)
    with pytest.raises(errors.CustomerExists) as caught:
        server.client().customers.create(email="ayu@example.com")
    assert (caught.value.message, caught.value.retry_after) == ("Taken.", 3)
    (request,) = server.requests
    assert (request.method, request.path) == ("POST", "/customer/v1/customers")
    assert request.body == {"email": "ayu@example.com"}


def test_a_fixed_path_is_preferred_to_a_parameter() -> None:
    server = FakeServer()
    server.client().messages.list_requests().page()
    assert server.requests[0].path == "/messaging/v1/messages/requests"


def test_headers_of_the_caller_replace_those_of_the_client() -> None:
    server = FakeServer()
    client = server.client().with_options(headers={"Idempotency-Key": "order-1042", "User-Agent": "shop/1.0"})
    client.customers.create(email="ayu@example.com")
    client.customers.create(email="ayu@example.com", idempotency_key="order-1043")
    sent = [request.headers for request in server.requests]
    assert [headers["idempotency-key"] for headers in sent] == ["order-1042", "order-1043"]
    assert {headers["user-agent"] for headers in sent} == {"shop/1.0"}


def test_headers_of_the_caller_replace_those_of_the_typescript_client() -> None:
    assert run_module(HEADERS).split() == ["order-1042", "shop/1.0", "order-1043", "shop/1.0"]


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(ValueError, match=r"no method customers\.fetch"):
        FakeServer().answer("customers.fetch", {})
    with pytest.raises(ValueError, match=r"moon\.landed"):
        sign_delivery("moon.landed", secret="whsec_c2VjcmV0LW9mLXRoZS1zaG9wLWZvci10ZXN0cw==")


TYPESCRIPT = """
import { CustomerExists } from "@sapa/client";
import { FakeServer } from "@sapa/client/testing";
import assert from "node:assert/strict";

const server = new FakeServer();
const sapa = server.client();
const customer = await sapa.customers.get("cust_1");
server.answer("customers.list", [customer, customer]);
const found = [];
for await (const one of sapa.customers.list({ limit: 2, tags: ["a", "b"] })) found.push(one.id);
assert.deepEqual(found, [customer.id, customer.id]);
assert.deepEqual(server.requests[1].query, { limit: "2", tags: "a,b" });
server.fail("customers.create", 409, "CUSTOMER_EXISTS", "Taken.", 3);
await assert.rejects(sapa.customers.create({ email: "ayu@example.com" }), (error) => {
  assert(error instanceof CustomerExists);
  assert.deepEqual([error.name, error.message, error.retryAfter], ["CustomerExists", "Taken.", 3]);
  return true;
});
assert.deepEqual(server.requests[2].body, { email: "ayu@example.com" });
assert.throws(() => server.answer("customers.fetch", {}), /no method customers.fetch/);
await sapa.messages.listRequests();
assert.equal(server.requests[3].path, "/messaging/v1/messages/requests");
console.log("done");
"""


def test_typescript_has_the_same_helpers() -> None:
    assert run_module(TYPESCRIPT) == "done\n"
