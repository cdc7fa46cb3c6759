"""Paths and methods: what exists, what does not, and how that is said."""

import httpx
import pytest

from sapa.db.pool import Database
from sapa.http.endpoints import RouteTable
from tests.conftest import TLS, Installation
from tests.factories import Environments, make_customer, make_key
from tests.http.probe import Stage, build_probe, build_shipping, open_app
from tests.http.wire import send

ID = "cust_01jc9y3q5me8w92v7x4t6r0n1k"
METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
UNKNOWN = [
    "/", "/nowhere", "/customer", "/Customers", "/CUSTOMERS", "/customers/", "//customers", "/customers//", "/{}",
    f"/customers/{ID}/", f"/customers/{ID}/orders", "/customers/a/b/c/d", "/customers;x=1", "/customers.json",
    "/%7B%7D", "/customers/by-external-id", "/customers/by-external-id/", "/%2e%2e/metrics", "/customers%2F",
    "/customers%3Fpage=1", "/customers%00",
]  # fmt: skip


@pytest.mark.parametrize("path", UNKNOWN)
async def test_an_unknown_path_is_a_404_for_every_method(
    installation: Installation, database: Database, company: Environments, path: str
) -> None:
    key = await make_key(database, company.live)
    headers = [("x-api-key", key.raw), ("content-type", "application/json")]
    replies = {method: send(installation, method, path, headers, b"{}") for method in METHODS}
    found = {method: (reply.status, reply.code) for method, reply in replies.items()}
    assert found == dict.fromkeys(METHODS, (404, "NOT_FOUND"))


@pytest.mark.parametrize(
    "path", ["/metrics", "/nowhere", "/customer/v1", "/customer/v2/customers", "/healthz/", "//healthz", "/favicon.ico"]
)
def test_outside_the_two_bases_errors_have_the_same_envelope(installation: Installation, path: str) -> None:
    response = httpx.get(installation.address + path, verify=TLS)
    assert response.status_code == 404
    assert response.json() == {"error": {"code": "NOT_FOUND", "message": "resource not found"}}
    assert response.headers["content-type"] == "application/json"


def test_an_unknown_path_does_not_tell_a_caller_without_a_key_what_exists(installation: Installation) -> None:
    existing, unknown = send(installation, "GET", "/customers"), send(installation, "GET", "/nowhere")
    assert (existing.status, existing.body) == (unknown.status, unknown.body)


def test_the_other_base_is_served_too(installation: Installation) -> None:
    response = httpx.get(f"{installation.address}/messaging/v1/nowhere", verify=TLS)
    assert (response.status_code, response.json()["error"]["code"]) == (401, "MISSING_API_KEY")


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("PATCH", "/customers", "GET, HEAD, POST, OPTIONS"),
        ("DELETE", "/customers", "GET, HEAD, POST, OPTIONS"),
        ("POST", f"/customers/{ID}", "GET, HEAD, PUT, DELETE, OPTIONS"),
        ("GET", "/customers/by-external-id/x", "PUT, OPTIONS"),
        ("HEAD", "/customers/by-external-id/x", "PUT, OPTIONS"),
        ("get", "/customers", "GET, HEAD, POST, OPTIONS"),
        ("BREW", "/customers", "GET, HEAD, POST, OPTIONS"),
        ("TRACE", "/customers", "GET, HEAD, POST, OPTIONS"),
    ],
)
async def test_a_wrong_method_is_a_405_that_lists_the_right_ones(
    installation: Installation, database: Database, company: Environments, method: str, path: str, allow: str
) -> None:
    key = await make_key(database, company.live)
    reply = send(installation, method, path, [("x-api-key", key.raw)])
    assert reply.status == 405
    assert set(reply.headers["allow"].split(", ")) == set(allow.split(", "))
    if method != "HEAD":
        assert reply.code == "METHOD_NOT_ALLOWED"


async def test_allow_lists_head_whatever_order_methods_were_declared_in(
    installation: Installation, database: Database, company: Environments
) -> None:
    key = await make_key(database, company.live)
    async with open_app(installation, [build_probe(Stage())]) as client:
        client.headers["x-api-key"] = key.raw
        assert (await client.head("/probe/things")).status_code == 200
        allow = (await client.put("/probe/things", json={})).headers["allow"]
    assert set(allow.split(", ")) == {"GET", "HEAD", "POST", "OPTIONS"}


async def test_head_is_get_without_a_body(api: httpx.AsyncClient) -> None:
    place = f"/customers/{(await make_customer(api))['id']}"
    for path in (place, "/customers"):
        full, bare = await api.get(path), await api.head(path)
        assert bare.status_code == 200
        assert bare.content == b""
        ignored = {"x-request-id", "ratelimit-remaining", "ratelimit-reset", "date"}
        assert {k: v for k, v in bare.headers.items() if k not in ignored} == {
            k: v for k, v in full.headers.items() if k not in ignored
        }


async def test_head_of_something_unknown_is_a_404_without_a_body(api: httpx.AsyncClient) -> None:
    response = await api.head("/customers/unknown")
    assert (response.status_code, response.content) == (404, b"")


def test_options_needs_no_key_and_lists_methods(installation: Installation) -> None:
    reply = send(installation, "OPTIONS", f"/customers/{ID}")
    assert (reply.status, reply.body) == (204, b"")
    assert set(reply.headers["allow"].split(", ")) == {"GET", "HEAD", "PUT", "DELETE", "OPTIONS"}
    assert "x-request-id" in reply.headers


def test_options_of_an_unknown_path_is_a_404(installation: Installation) -> None:
    assert send(installation, "OPTIONS", "/nowhere").code == "NOT_FOUND"


async def test_an_empty_or_dotted_segment_is_no_id(
    installation: Installation, database: Database, company: Environments
) -> None:
    key = await make_key(database, company.live)
    for path in ("/customers/../customers", "/customers/.", "/./customers", "/customers/%2E%2E"):
        reply = send(installation, "GET", path, [("x-api-key", key.raw)])
        assert (reply.status, reply.code) == (404, "NOT_FOUND"), path


def test_a_fixed_segment_is_preferred_to_a_parameter() -> None:
    table = RouteTable([build_probe(Stage()), build_shipping()])
    route, values = table.match("customer/v1/shipping/shipments/abc".split("/"))
    assert route is not None
    assert (route.template, values) == ("/customer/v1/shipping/shipments/{id}", ["abc"])
