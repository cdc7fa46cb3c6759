"""Every operation of both documents is called on the real installation, and every answer held against its document."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import httpx
import pytest

from sapa.access.types import Scope
from sapa.db.pool import Database
from sapa.events import DELIVERY_ID
from sapa.http.bodies import MAX_BYTES, MAX_UPLOADED
from sapa.http.endpoints import OR, Base
from sapa.imports.mappings.types import MAPPING_ID
from sapa.loyalty.rewards.types import OPTION_ID, REDEMPTION_ID
from sapa.messaging.channel_events.types import CHANNEL_EVENT_ID
from sapa.messaging.messages.types import MESSAGE_ID
from sapa.orders.pricing.types import LINE_ITEM_ID
from sapa.orders.types import ORDER_ID
from sapa.shipping.settlements.types import DIFFERENCE_ID
from sapa.shipping.types import SHIPMENT_ID
from sapa.support.macros.types import MACRO_ID
from sapa.support.ratings.types import RATING_ID
from sapa.support.saved_replies.types import SAVED_REPLY_ID
from sapa.support.scheduled_replies.types import SCHEDULED_REPLY_ID
from sapa.support.types import AGENT_ID, TICKET_ID
from sapa.values.ids import CUSTOMER_ID
from sapa.values.json import encode
from sapa.webhooks.types import ENDPOINT_ID
from tests.conftest import TLS, Installation
from tests.console.people import make_person
from tests.factories import Environments, add_points, make_customer, make_key, make_redemption, make_reward
from tests.http.response_check import Operation, check, check_answer, operations_of
from tests.http.samples import (
    FILE,
    FILES,
    UPLOADS,
    a_channel_event,
    a_difference,
    a_rating,
    a_scheduled_reply,
    a_shipment,
    a_ticket,
    a_webhook_delivery,
    an_agent,
    root_of,
    two_tickets,
)
from tests.http.wire import eventually
from tests.messaging.files.steps import drip
from tests.shipping.parcels import body_of, change

CASES = [pytest.param(base, operation, id=operation.id) for base in Base for operation in operations_of(base)]

# A body that stops half-way, a fault of ours and a database that is away are played elsewhere.
NOT_PROVOKED = {408, 500, 503}

# What only misbehaving carriers and channels, or other tickets, bring about: the tests of their domains hold it against
# the document.
PROVOKED_ELSEWHERE = {
    "create_shipment": {202, 502},
    "update_shipment": {202, 502},
    "cancel_shipment": {202, 502},
    "return_shipment": {202, 502},
    "quote_shipping": {502},
    "reply_to_ticket": {202, 502},
    "start_ticket": {202, 502},
    "reopen_ticket": {409},
    "search_shipping_areas": {409, 502},
    "get_shipment_label": {409, 502},
    "get_label_batch": {202, 409},
    "get_shipment_packing_slip": {409},
    "react_to_message": {502},
    "remove_message_reaction": {502},
    "mark_message_read": {409, 502},
    "show_typing_indicator": {409, 502},
    "sync_templates": {409},
    "open_sandbox_channel_accounts": {409},
    "open_sandbox_carrier_accounts": {409},
    "get_sandbox_cod_statement": {304},
    **{f"list_shipping_{level}": {404, 409, 502} for level in ("provinces", "cities", "districts", "sub_districts")},
    "pause_webhook_endpoint": {409},
    "resend_webhook_delivery": {409},
    "test_channel": {409},
    "test_carrier": {409},
    "connect_carrier": {502},
}

# Secrets that only the first of several equal responses has.
SHOWN_ONCE = {"key", "secret", "hookUrl", "generated", "snippet", "callbackUrl"}

# What must be asked along with a read.
QUERIES = {
    "list_shipping_cities": {"provinceId": "31"},
    "list_shipping_districts": {"cityId": "3171"},
    "list_shipping_sub_districts": {"districtId": "317106"},
    "get_sandbox_cod_statement": {"provider": "aggregator_carrier"},
    "search_shipping_areas": {"q": "sukajadi bandung"},
    "search_tickets": {"query": "kopi"},
    "list_carrier_scorecards": {"createdFrom": "2026-01-01T00:00:00Z", "createdTo": "2026-02-01T00:00:00Z"},
}


SHOPIFY_CUSTOMERS = b"Customer ID,First Name,Last Name,Email,Accepts Email Marketing,Total Spent,Zip\n"


class Caller:
    """Calls one operation in many ways, on resources that it makes itself, and remembers what was answered."""

    def __init__(self, base: Base, operation: Operation, client: httpx.AsyncClient) -> None:
        self.base = base
        self.operation = operation
        self.client = client
        self.made: dict[str, str] = {}
        self.agent_id: int | None = None
        """A number stands in many places; this one replaces the example of `agentId` alone."""
        self.seen: set[int] = set()

    @property
    def body(self) -> Any:
        media = self.operation.content.get("requestBody", {}).get("content", {}).get("application/json")
        body = media and self._with_made(media["example"])
        return {**body, "agentId": self.agent_id} if self.agent_id and body and "agentId" in body else body

    @property
    def uploads(self) -> bool:
        return "text/csv" in self.operation.content.get("requestBody", {}).get("content", {})

    @property
    def takes_file(self) -> bool:
        return "multipart/form-data" in self.operation.content.get("requestBody", {}).get("content", {})

    @property
    def path(self) -> str:
        return _path_of(self.operation)

    async def make_resources(self) -> None:
        if self.operation.path.startswith("/webhook-deliveries/"):
            self.made[DELIVERY_ID.example] = await a_webhook_delivery(self.client)
        if self.operation.path.startswith("/scheduled-replies/"):
            self.made[SCHEDULED_REPLY_ID.example] = await a_scheduled_reply(self.client)
        if self.operation.path.startswith("/shipping/labels"):
            self.made[SHIPMENT_ID.example] = await a_shipment(self.client)
        await self._make_resources_of(self.operation)
        if self.operation.id == "resume_webhook_endpoint":
            paused = await self.client.post(self._with_made(f"/webhook-endpoints/{ENDPOINT_ID.example}/pause"))
            assert paused.status_code == 200, paused.text
        if self.operation.id in {"test_channel", "disconnect_channel", "disconnect_carrier"}:
            connected = await self.client.put(self.path.removesuffix("/test"), json={})
            assert connected.status_code == 200, connected.text
        if self.operation.id == "get_label_batch":
            await eventually(self._find_labels)
        await self._make_order_lines()
        if "redeem" in self.operation.id or "redemption" in self.operation.id:
            await self._make_redemption()
        await self._make_messages()
        await self._make_shipments()
        await self._make_tickets()

    async def _make_tickets(self) -> None:
        if self.operation.path.startswith("/tickets/{id}"):
            self.made[TICKET_ID.example] = await a_ticket(self.client)
        if self.operation.id == "merge_tickets":
            self.made[TICKET_ID.example], self.made["tkt_01jc9y3q5me8w92v7x4t6r0n2m"] = await two_tickets(self.client)
        if self.operation.id in {"link_ticket_customer", "start_ticket"}:
            customers = f"{root_of(self.client)}/customer/v1/customers"
            created = await self.client.post(customers, json={"email": f"{uuid4().hex}@example.com"})
            self.made[CUSTOMER_ID.example] = created.json()["data"]["id"]
        if self.operation.path == "/ratings/{id}":
            self.made[RATING_ID.example] = await a_rating(self.client)
        if self.operation.id == "apply_macro":
            macro = await self.client.post("/macros", json={"name": "Penting", "actions": {"priority": "high"}})
            self.made[MACRO_ID.example] = macro.json()["data"]["id"]
        if self.operation.id == "fill_saved_reply":
            saved = await self.client.post("/saved-replies", json={"shortcut": "halo", "text": "Halo {nama}"})
            self.made[SAVED_REPLY_ID.example] = saved.json()["data"]["id"]
        if "/agents/{id}" in self.operation.path or "agentId" in (self.body or {}):
            self.agent_id = int(await an_agent(self.client))
            self.made[f"/agents/{AGENT_ID.example}"] = f"/agents/{self.agent_id}"
        if "/drafts/{agentId}" in self.operation.path:
            self.made[f"/drafts/{AGENT_ID.example}"] = f"/drafts/{await an_agent(self.client)}"
        if self.operation.id == "delete_agent_mention":
            self.made[TICKET_ID.example] = await a_ticket(self.client)

    async def _find_labels(self) -> bool | None:
        """The worker makes the file."""
        return (await self.client.get(self._with_made(self.path))).status_code == 200 or None

    async def _make_order_lines(self) -> None:
        if self.operation.id in {"refund_order", "fulfill_order"}:
            place = self._with_made(f"/orders/{ORDER_ID.example}")
            order = (await self.client.get(place)).json()["data"]
            self.made[LINE_ITEM_ID.example] = order["lineItems"][0]["id"]
            payment = {"amount": order["outstanding"], "method": "cash"}
            assert (await self.client.post(f"{place}/payments", json=payment)).status_code == 201

    async def _make_messages(self) -> None:
        if self.operation.id == "get_channel_event":
            self.made[CHANNEL_EVENT_ID.example] = await a_channel_event(self.client)
        if self.operation.id == "update_shipping_notification_settings":
            template = {"name": "parcel_update", "language": "id", "category": "UTILITY"}
            template["body"] = "Halo {{1}}, paket {{2}} sedang diantar: {{3}} (Sapa)."
            made = await self.client.post(f"{root_of(self.client)}/messaging/v1/templates", json=template)
            assert made.status_code == 201, made.text
        if "{messageId2}" in self.operation.path:
            sent = await self.client.post("/messages/send", json={"to": "+12015550100", "message": "Halo"})
            self.made[MESSAGE_ID.example] = sent.json()["data"]["messageId2"]
        if self.operation.id in {"mark_message_read", "show_typing_indicator"}:
            ticket_id = await a_ticket(self.client, "MSGAPP_CLOUD")
            ticket = (await self.client.get(f"/tickets/{ticket_id}")).json()["data"]
            received = next(one for one in ticket["messages"] if one["direction"] == "in")
            self.made[MESSAGE_ID.example] = received["messageId2"]
        if self.operation.id == "send_message_template":
            body = "Halo {{1}}, pesanan {{2}} sudah dikirim."
            template = {"name": "order_update", "language": "id", "category": "UTILITY", "body": body}
            assert (await self.client.post("/templates", json=template)).status_code == 201

    async def _make_shipments(self) -> None:
        if self.operation.id == "advance_sandbox_shipment":
            booked = await self.client.post("/shipping/shipments", json=body_of("aggregator_carrier", autoBook=True))
            self.made[SHIPMENT_ID.example] = booked.json()["data"]["id"]
        if self.operation.id == "return_shipment":
            sent = await self.client.post("/shipping/shipments", json=body_of("custom"))
            self.made[SHIPMENT_ID.example] = sent.json()["data"]["id"]
            for status in ("confirmed", "delivered"):
                await change(self.client, sent.json()["data"]["id"], shippingStatus=status)
        if "/cod-differences/{id}" in self.operation.path:
            self.made[DIFFERENCE_ID.example] = await a_difference(self.client)

    async def _make_redemption(self) -> None:
        """Redeeming answers 200, and so is no creation that the document could link from."""
        reward = await make_reward(self.client)
        customer = await make_customer(self.client)
        await add_points(self.client, customer["id"], 1_000)
        self.made[OPTION_ID.example] = reward["id"]
        self.made[REDEMPTION_ID.example] = (await make_redemption(self.client, customer["id"], reward))["id"]

    async def _make_resources_of(self, operation: Operation) -> None:
        """Whatever creates a resource is called with its own example; later examples then name the real ids."""
        for creator in operations_of(self.base):
            created = creator.content["responses"].get("201", {})
            linked = {link["operationId"] for link in created.get("links", {}).values()}
            if creator.id != operation.id and operation.id in linked and creator.method == "post":
                example_id = created["content"]["application/json"]["example"]["data"]["id"]
                if example_id not in self.made:
                    await self._make_resources_of(creator)
                    self.made[example_id] = await self._make(creator)

    async def _make(self, creator: Operation) -> str:
        media = creator.content["requestBody"]["content"].get("application/json")
        options = UPLOADS[creator.path] if media is None else {"json": self._with_made(media["example"])}
        if self.operation.id in {"preview_import", "start_import"} and creator.id == "create_import":
            options = {**options, "params": {**options["params"], "start": "false"}, "content": SHOPIFY_CUSTOMERS}
        response = await self.client.post(self._with_made(_path_of(creator)), **options)
        assert response.status_code == 201, response.text
        id = str(response.json()["data"]["id"])
        if creator.id == "create_customer" and self.operation.path.startswith("/loyalty/"):
            await add_points(self.client, id, 1_000)
        return id

    async def call(
        self, client: httpx.AsyncClient | None = None, path: str | None = None, **options: Any
    ) -> httpx.Response:
        if self.uploads:
            usual = UPLOADS[self.operation.path]
            options = {
                **{name: options.get(name, sample) for name, sample in usual.items()},
                **options,
                "headers": {**usual["headers"], **options.get("headers", {})},
            }
        if self.body is not None and not {"content", "json"} & options.keys():
            options["json"] = self.body
        if self.takes_file:
            options.setdefault("content", FILES.get(self.operation.path, FILE))
        method = options.pop("method", self.operation.method)
        options["params"] = QUERIES.get(self.operation.id, {}) | options.get("params", {})
        path = self._with_made(self.path) if path is None else path
        response = await (client or self.client).request(method, path, **options)
        self.seen.add(response.status_code)
        return response

    def _with_made(self, example: Any) -> Any:
        text = json.dumps(example)
        for example_id, id in self.made.items():
            text = text.replace(example_id, id)
        return json.loads(text)


def _path_of(operation: Operation) -> str:
    """With the examples of its parameters in it."""
    path = operation.path
    for parameter in operation.content["parameters"]:
        path = path.replace(f"{{{parameter['name']}}}", str((parameter["schema"].get("examples") or [""])[0]))
    return path


@pytest.mark.parametrize(("base", "operation"), CASES)
async def test_every_response_is_documented_and_every_documented_response_occurs(
    installation: Installation, database: Database, company: Environments, base: Base, operation: Operation
) -> None:
    @asynccontextmanager
    async def connect(**key: Any) -> AsyncIterator[httpx.AsyncClient]:
        # In the test environment every channel and carrier is played.
        is_played = base is Base.MESSAGING or operation.path.startswith(("/shipping/", "/carriers"))
        made = await make_key(database, company.test if is_played else company.live, **key)
        async with open_client(installation, base, made.raw) as client:
            yield client

    async with connect() as client:
        caller = Caller(base, operation, client)
        await caller.make_resources()
        if operation.id.endswith("agent_notification_settings"):
            await give_user(caller, database, company)
        async with open_client(installation, base, None) as stranger:
            await provoke_refusals_of_keys(caller, stranger)
        others = set(Scope) - set(operation.content["x-sapa-scope"].split(OR))
        async with connect(scopes=list(others)) as lesser:
            assert (await caller.call(lesser)).status_code in {401, 403}
        async with connect(allow_list=["192.0.2.7"]) as outsider:
            assert (await caller.call(outsider)).status_code == 403
        async with connect(rate_limit=1) as hasty:  # three times: a new minute may begin after the first
            answers = [await caller.call(hasty, params={"no-such-parameter": "1"}) for _ in range(3)]
            assert 429 in {answer.status_code for answer in answers}
        await provoke_refusals_of_requests(caller)
        if operation.id == "create_import":
            unknown = {**UPLOADS["/imports"]["params"], "source": "spreadsheet", "mapping": MAPPING_ID.example}
            assert (await caller.call(params=unknown)).status_code == 404
        if operation.id.startswith("send_message"):
            await provoke_refusals_of_channels(caller)
        await (succeed_reading(caller) if operation.method == "get" else succeed_writing(caller))

    documented = operation.statuses - NOT_PROVOKED - PROVOKED_ELSEWHERE.get(operation.id, set())
    if operation.method == "delete":
        documented.discard(409)
    assert caller.seen >= documented


async def give_user(caller: Caller, database: Database, company: Environments) -> None:
    """Until then the agent has nobody who could be notified."""
    assert (await caller.call()).status_code == 409
    email = await make_person(database, company)
    async with database.connection() as db:
        user_id = await db.fetchval("SELECT id FROM users WHERE email = $1", email)
    linked = await caller.client.put(f"/agents/{caller.agent_id}", json={"userId": user_id})
    assert linked.status_code == 200, linked.text


async def provoke_refusals_of_keys(caller: Caller, stranger: httpx.AsyncClient) -> None:
    assert (await caller.call(stranger)).status_code == 401
    assert (await caller.call(stranger, headers={"x-api-key": "svc_live_unknown"})).status_code == 401


async def provoke_refusals_of_requests(caller: Caller) -> None:
    assert (await caller.call(params={"no-such-parameter": "1"})).status_code == 400
    if "{" in caller.operation.path:
        assert (await caller.call(path=caller.operation.path.split("{")[0])).status_code == 404
        assert (await caller.call(path=f"{caller.path}/no/such/path")).status_code == 404
    if caller.body is not None:
        assert (await caller.call(content=b"{", headers={"content-type": "application/json"})).status_code == 400
        assert (await caller.call(content=b"{}", headers={"content-type": "text/plain"})).status_code == 415
        large = b'"' + b"x" * MAX_BYTES + b'"'
        assert (await caller.call(content=large, headers={"content-type": "application/json"})).status_code == 413
    if caller.uploads:
        assert (await caller.call(content=b"{}", headers={"content-type": "text/plain"})).status_code == 415
        assert (await caller.call(content=b"x" * (MAX_UPLOADED + 1))).status_code == 413
    if caller.takes_file:
        assert (await caller.call(headers={"content-encoding": "gzip"})).status_code == 415
        assert (await caller.call(content=drip(26, bytes(1_048_576)))).status_code == 413


async def provoke_refusals_of_channels(caller: Caller) -> None:
    """By whom it is sent to: a channel that refuses, one that breaks, one that is not there for such messages."""
    expected = {"+12015550110": 502, "+12015550117": 202}
    for to, status in expected.items():
        assert (await caller.call(json={**caller.body, "to": to, "sources": "MSGAPP_CLOUD"})).status_code == status
    wrong = {"template_name": "no_such_template"} if "template_name" in caller.body else {"to": "+12015550122"}
    assert (await caller.call(json={**caller.body, "sources": "MSGAPP_CLOUD", **wrong})).status_code == 409


async def succeed_reading(caller: Caller) -> None:
    response = await caller.call()
    assert response.status_code == 200
    assert (await caller.call(method="HEAD")).status_code == 200
    # A statement is made at the instant of the call.
    if "etag" in response.headers and caller.operation.id != "get_sandbox_cod_statement":
        same = await caller.call(headers={"if-none-match": response.headers["etag"]})
        if same.status_code == 200:  # it has just changed, as a message does when it is delivered
            same = await caller.call(headers={"if-none-match": same.headers["etag"]})
        assert same.status_code == 304


def without_secrets(response: httpx.Response) -> bytes:
    data = response.json().get("data") if response.content else None
    if not isinstance(data, dict) or SHOWN_ONCE.isdisjoint(data):
        return response.content
    return encode({"data": {name: None if name in SHOWN_ONCE else value for name, value in data.items()}})


async def succeed_writing(caller: Caller) -> None:
    once = {"Idempotency-Key": "once"}
    first = await caller.call(headers=once)
    assert first.is_success, first.text
    replayed = await caller.call(headers=once)
    assert (replayed.status_code, replayed.content) == (first.status_code, without_secrets(first))
    assert replayed.headers["idempotency-replayed"] == "true"
    if isinstance(caller.body, dict):
        other = json.dumps(caller.body).encode() + b" "
        typed = {**once, "content-type": "application/json"}
        assert (await caller.call(headers=typed, content=other)).status_code == 409
    if caller.uploads:
        assert (await caller.call(headers=once, content=b"firstName\n")).status_code == 409
    if caller.takes_file:
        other_file = FILES.get(caller.operation.path, FILE) + b" teh"
        assert (await caller.call(headers=once, content=other_file)).status_code == 409
    await caller.call()


@pytest.mark.parametrize("base", Base)
async def test_what_no_document_knows_is_refused_in_the_error_envelope(
    installation: Installation, database: Database, company: Environments, base: Base
) -> None:
    key = await make_key(database, company.live)
    async with open_client(installation, base, key.raw) as client:
        assert (await client.get("/no-such-path")).status_code == 404
        for path in {operation.path for operation in operations_of(base)}:
            assert (await client.request("TRACE", path)).status_code == 405
            assert (await client.options(path)).status_code == 204


@pytest.mark.parametrize(
    ("status", "headers", "body"),
    [
        (200, {}, {"data": [], "meta": {"page": 1, "limit": 20, "total": 0}}),
        (200, {}, {"data": [], "meta": {"page": 1, "limit": 20, "total": 0, "hasNextPage": False, "pages": 1}}),
        (200, {"x-request-id": "1"}, {"data": [], "meta": {"page": 1, "limit": 20, "total": 0, "hasNextPage": False}}),
        (200, {"x-colour": "red"}, {"data": [], "meta": {"page": 1, "limit": 20, "total": 0, "hasNextPage": False}}),
        (202, {}, {"data": [], "meta": {"page": 1, "limit": 20, "total": 0, "hasNextPage": False}}),
        (400, {}, {"error": {"code": "NOT_FOUND", "message": "wrong code"}}),
        (400, {}, {"message": "no envelope"}),
    ],
    ids=["field missing", "field unknown", "header malformed", "header unknown", "status unknown", "code", "envelope"],
)
def test_the_check_finds_a_response_outside_the_document(status: int, headers: dict[str, str], body: Any) -> None:
    request = httpx.Request("GET", "http://127.0.0.1/customer/v1/customers")
    usual = {"x-request-id": f"req_{'0' * 24}"} | {f"ratelimit-{name}": "1" for name in ("limit", "remaining", "reset")}
    good = {"data": [], "meta": {"page": 1, "limit": 20, "total": 0, "hasNextPage": False}}
    check(request, httpx.Response(200, headers=usual, json=good))
    with pytest.raises(AssertionError, match="outside its document"):
        check(request, httpx.Response(status, headers={**usual, **headers}, json=body))


def open_client(installation: Installation, base: Base, key: str | None) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        base_url=installation.address + base,
        headers={} if key is None else {"x-api-key": key},
        event_hooks={"response": [check_answer]},
        timeout=120,
        verify=TLS,
    )
