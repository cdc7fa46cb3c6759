"""An id of another company, of the other environment, or of nothing at all: one and the same 404, on every route."""

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

import httpx
import msgspec
import pytest

from sapa.db.pool import Database
from sapa.domains import ROUTES
from sapa.http.endpoints import Endpoint
from sapa.values.ids import IdKind
from tests import depth
from tests.conftest import Installation, connect
from tests.factories import (
    Environments,
    add_points,
    make_company,
    make_customer,
    make_import,
    make_key,
    make_order,
    make_product,
    make_redemption,
    make_reservation,
    make_reward,
)
from tests.http.samples import (
    a_channel_event,
    a_difference,
    a_rating,
    a_scheduled_reply,
    a_settlement,
    a_shipment,
    a_ticket,
    a_webhook_delivery,
    a_webhook_endpoint,
    address_of,
    an_agent,
    root_of,
    sample_body,
)

UUID = "0199a1f0-7c3e-7d52-9b1a-4e6f2c8d0a35"

Maker = Callable[[httpx.AsyncClient], Awaitable[str]]


async def a_customer(api: httpx.AsyncClient) -> str:
    """With points, so that whatever asks for some gets them."""
    customer = await make_customer(api)
    await add_points(api, customer["id"], 1_000)
    return str(customer["id"])


async def a_product(api: httpx.AsyncClient) -> str:
    return str((await make_product(api))["id"])


async def an_order(api: httpx.AsyncClient) -> str:
    return str((await make_order(api))["id"])


async def a_draft_order(api: httpx.AsyncClient) -> str:
    body = {"lineItems": [{"title": "Kopi", "price": 75000, "quantity": 2}]}
    answer = await api.post("/draft-orders", json=body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["data"]["id"])


async def a_reservation(api: httpx.AsyncClient) -> str:
    return str((await make_reservation(api, await a_customer(api)))["id"])


async def a_reward(api: httpx.AsyncClient) -> str:
    return str((await make_reward(api))["id"])


async def a_redemption(api: httpx.AsyncClient) -> str:
    return str((await make_redemption(api, await a_customer(api), await make_reward(api)))["id"])


async def an_import(api: httpx.AsyncClient) -> str:
    return str((await make_import(api))["id"])


async def an_import_mapping(api: httpx.AsyncClient) -> str:
    body = {"resource": "customers", "name": uuid4().hex, "mapping": {"columns": {"HP": "phoneNumber"}}}
    answer = await api.post("/import-mappings", json=body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["data"]["id"])


async def a_file_of_labels(api: httpx.AsyncClient) -> str:
    """Made by the worker: only then does getting it succeed with a body."""
    answer = await api.post("/shipping/labels", json={"ids": [await a_shipment(api)]})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["data"]["id"])


async def a_store_location(api: httpx.AsyncClient) -> str:
    answer = await api.post("/shipping/store-locations", json={"name": "Gudang", "address": "Jl. Merdeka 17"})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["data"]["id"])


async def a_message(api: httpx.AsyncClient) -> str:
    """Needs a test key: there every channel is played."""
    body = {"to": "+628123456789", "message": "Halo", "sources": "MSGAPP_CLOUD"}
    answer = await api.post(f"{root_of(api)}/messaging/v1/messages/send", json=body)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["data"]["messageId2"])


async def a_template(api: httpx.AsyncClient) -> str:
    """One that takes the parameters of a sample."""
    body = {"name": f"t_{uuid4().hex}", "language": "id", "category": "UTILITY"}
    body["body"] = "Halo {{1}}, pesanan {{2}} sudah dikirim."
    answer = await api.post(f"{root_of(api)}/messaging/v1/templates", json=body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["data"]["id"])


OTHER_PATHS = {("by-external-id", "/customers/{id}/consents")}
"""Where a word is no id, because another endpoint has this path: here a customer whose own id is `consents`."""


MAX_PARTS = 4
ROUTE_WORDS = ("by-external-id",)
"""Tried on every endpoint: what they lead to depends on the other paths and not only on the kind of the id."""


async def a_key(api: httpx.AsyncClient) -> str:
    answer = await api.post("/api-keys", json={"name": "shop", "scopes": ["orders:READ"]})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["data"]["id"])


async def make_in_inbox(api: httpx.AsyncClient, path: str, body: Any) -> str:
    answer = await api.post(f"{root_of(api)}/messaging/v1{path}", json=body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["data"]["id"])


async def a_label(api: httpx.AsyncClient) -> str:
    return await make_in_inbox(api, "/labels", {"name": uuid4().hex})


async def a_team(api: httpx.AsyncClient) -> str:
    return await make_in_inbox(api, "/teams", {"name": uuid4().hex})


async def a_saved_reply(api: httpx.AsyncClient) -> str:
    return await make_in_inbox(api, "/saved-replies", {"shortcut": uuid4().hex, "text": "Halo {nama}"})


async def a_view(api: httpx.AsyncClient) -> str:
    return await make_in_inbox(api, "/views", {"name": uuid4().hex, "filters": {}})


async def an_sla_policy(api: httpx.AsyncClient) -> str:
    return await make_in_inbox(api, "/sla-policies", {"name": uuid4().hex, "resolutionMinutes": 60})


async def a_macro(api: httpx.AsyncClient) -> str:
    return await make_in_inbox(api, "/macros", {"name": uuid4().hex, "actions": {"priority": "high"}})


MAKERS: dict[str, Maker] = {
    "key_": a_key,
    "whe_": a_webhook_endpoint,
    "whd_": a_webhook_delivery,
    "message": a_message,
    "agent": an_agent,
    "tkt_": a_ticket,
    "lab_": a_label,
    "team_": a_team,
    "srep_": a_saved_reply,
    "sched_": a_scheduled_reply,
    "view_": a_view,
    "sla_": an_sla_policy,
    "rtg_": a_rating,
    "mac_": a_macro,
    "tpl_": a_template,
    "che_": a_channel_event,
    "shp_": a_shipment,
    "loc_": a_store_location,
    "lbl_": a_file_of_labels,
    "stl_": a_settlement,
    "cdf_": a_difference,
    "imp_": an_import,
    "imap_": an_import_mapping,
    "cust_": a_customer,
    "prod_": a_product,
    "order_": an_order,
    "dord_": a_draft_order,
    "rsv_": a_reservation,
    "rwd_": a_reward,
    "rdm_": a_redemption,
}
"""How to make one of each kind over HTTP, by id prefix: a new domain adds its line."""

OWN_NAMES = {("/customers/by-external-id/{externalId}", "external_id")}
"""Path parameters that are the caller's own words and not ids of ours."""

SHARED_NAMES = {"source", "provider"}
"""Path parameters that name a channel or a provider, the same for every company."""

REFUSED_TO_OWNERS = {
    "POST /shipping/shipments/{id}/sandbox/advance",
    "POST /orders/{id}/refunds",
    "POST /imports/{id}/preview",
    "POST /imports/{id}/start",
    "POST /shipping/shipments/{id}/return",
    "POST /webhook-endpoints/{id}/resume",
    "POST /messages/{messageId2}/read",
    "POST /tickets/{id}/merge",
    "POST /messages/{messageId2}/typing",
    "GET /agents/{id}/notification-settings",
    "PUT /agents/{id}/notification-settings",
}
"""What the makers' things are not ready for, and only that: a 409 instead of a success."""

WITH_IDS = [endpoint for routes in ROUTES for endpoint in routes.endpoints if any(endpoint.path_ids.values())]
WITH_BODIES = [endpoint for routes in ROUTES for endpoint in routes.endpoints if endpoint.body and not endpoint.uploads]


def name_of(endpoint: Endpoint) -> str:
    return f"{endpoint.method} {endpoint.path}"


def kinds_of(endpoint: Endpoint) -> dict[str, IdKind]:
    return {name: kind for name, kind in endpoint.path_ids.items() if kind}


async def call(client: httpx.AsyncClient, endpoint: Endpoint, ids: dict[str, str], body: Any = None) -> httpx.Response:
    base = root_of(client) + endpoint.routes.base
    url = base + address_of(endpoint, ids)
    return await client.request(endpoint.method, url, json=body or sample_body(endpoint))


async def make_ids(client: httpx.AsyncClient, endpoint: Endpoint) -> dict[str, str]:
    return {name: await MAKERS[kind.prefix](client) for name, kind in kinds_of(endpoint).items()}


async def make_body(client: httpx.AsyncClient, endpoint: Endpoint) -> Any:
    """The sample, with ids of things that are there in place of its examples."""
    body = sample_body(endpoint)
    for name, value in body.items() if isinstance(body, dict) else ():
        prefix = str(value).partition("_")[0] + "_"
        if prefix in MAKERS and value == IdKind(prefix).example:
            body[name] = await MAKERS[prefix](client)
        if name == "ticketId":
            body[name] = await a_ticket(client)
        if name == "agentId":
            body[name] = int(await an_agent(client))
    return body


def garbage(prefix: str) -> list[str]:
    tail = "01jc9y3q5me8w92v7x4t6r0n1k"
    return [
        "x", "0", "-1", "null", "undefined", "%20", "%7B%7D", "{}", "{id}", "by-external-id", "'; SELECT 1 --", "%25",
        prefix, prefix + tail[:-1], prefix + tail + "0", prefix.upper() + tail, prefix + tail.upper(), tail,
        prefix + "8" + tail[1:], prefix + "u" * 26, prefix + tail + "%0A", "%0A" + prefix + tail, prefix + tail + "%00",
        "%00", "evt_" + tail, prefix + "é" * 26, prefix + "%EF%BC%90" * 26, "x" * 5000, f"{prefix}{tail},{tail}",
        prefix + tail + "%3F", prefix + tail + "%23", " " + prefix + tail, prefix + tail + "%2520",
        UUID.upper(), UUID[:-1], UUID + "0", UUID.replace("-", ""), f"{{{UUID}}}", f"urn:uuid:{UUID}", UUID + "%0A",
        UUID.replace("0", "٠"),
    ]  # fmt: skip


def choose_garbage(endpoint: Endpoint, name: str, kind: IdKind) -> list[str]:
    """All of it in the long run. Otherwise endpoints with ids of one kind share it: one parser reads them all."""
    malformed = [id for id in garbage(kind.prefix) if (id, endpoint.path) not in OTHER_PATHS]
    if depth.is_long():
        return malformed
    sharing = [(each, other) for each in WITH_IDS for other, its in kinds_of(each).items() if its.prefix == kind.prefix]
    parts = min(len(sharing), MAX_PARTS)
    own = malformed[sharing.index((endpoint, name)) % parts :: parts]
    return [*own, *(word for word in ROUTE_WORDS if word in malformed and word not in own)]


def test_every_kind_of_id_in_a_path_has_a_maker() -> None:
    prefixes = {kind.prefix for endpoint in WITH_IDS for kind in kinds_of(endpoint).values()}
    assert prefixes <= set(MAKERS), "add a maker for each new kind, so that the tests below cover it"


def test_every_path_parameter_is_an_id_or_a_known_word_of_the_caller() -> None:
    plain = {
        (endpoint.path, name)
        for routes in ROUTES
        for endpoint in routes.endpoints
        for name, kind in endpoint.path_ids.items()
        if kind is None and name not in SHARED_NAMES
    }
    assert plain == OWN_NAMES


@pytest.mark.parametrize("endpoint", WITH_BODIES, ids=name_of)
def test_sample_bodies_are_valid(endpoint: Endpoint) -> None:
    msgspec.convert(sample_body(endpoint), endpoint.body)


@pytest.mark.parametrize("endpoint", WITH_IDS, ids=name_of)
async def test_foreign_and_unknown_ids_get_the_same_response(
    installation: Installation, database: Database, company: Environments, endpoint: Endpoint
) -> None:
    keys = [await make_key(database, id) for id in (company.live, company.test, (await make_company(database)).test)]
    async with connect(installation, keys[0].raw) as ours, connect(installation, keys[1].raw) as sandbox:
        unknown = await call(ours, endpoint, {name: kind.new() for name, kind in kinds_of(endpoint).items()})
        assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, "NOT_FOUND")
        async with connect(installation, keys[2].raw) as theirs:
            for owner in (sandbox, theirs):
                ids = await make_ids(owner, endpoint)
                refused = await call(ours, endpoint, ids)
                assert (refused.status_code, refused.content) == (404, unknown.content)
                assert set(refused.headers) == set(unknown.headers)
                done = await call(owner, endpoint, ids, await make_body(owner, endpoint))
                allowed = done.status_code < 300 or (name_of(endpoint) in REFUSED_TO_OWNERS and done.status_code == 409)
                assert allowed, f"the owner can, so the id was good: {done.text}"


@pytest.mark.parametrize("endpoint", WITH_IDS, ids=name_of)
async def test_malformed_ids_get_the_same_response(api: httpx.AsyncClient, endpoint: Endpoint) -> None:
    for name, kind in kinds_of(endpoint).items():
        unknown = await call(api, endpoint, {name: kind.new()})
        assert unknown.status_code == 404
        answers = {id: await call(api, endpoint, {name: id}) for id in choose_garbage(endpoint, name, kind)}
        others = {id: answer.text for id, answer in answers.items() if answer.content != unknown.content}
        assert others == {}
        assert {answer.status_code for answer in answers.values()} == {404}


async def test_another_company_s_own_word_for_a_customer_is_free_for_us(
    installation: Installation, database: Database, api: httpx.AsyncClient
) -> None:
    other = await make_key(database, (await make_company(database)).live)
    async with connect(installation, other.raw) as theirs:
        customer = await make_customer(theirs, externalId="shop-1", firstName="Theirs")
        answer = await api.put("/customers/by-external-id/shop-1", json={"email": "ours@example.com"})
        assert answer.status_code == 201
        assert answer.json()["data"]["id"] != customer["id"]
        assert (await theirs.get(f"/customers/{customer['id']}")).json()["data"] == customer
