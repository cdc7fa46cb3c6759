"""Webhook endpoints that a program manages, delivered to for real."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
import standardwebhooks

from sapa.db.pool import Database
from tests.conftest import Installation, connect
from tests.factories import Environments, make_customer, make_key
from tests.http.wire import eventually
from tests.webhooks.station import Arrival, Station, answer_with, until


@pytest.fixture
async def caller(post_office: Installation, post: Database, client: Environments) -> AsyncIterator[httpx.AsyncClient]:
    """With every scope, at the installation that may deliver to this machine."""
    async with connect(post_office, (await make_key(post, client.live)).raw) as opened:
        yield opened


async def create(caller: httpx.AsyncClient, station: Station, **fields: Any) -> dict[str, Any]:
    body = {"url": station.url("hook"), "events": ["customer.created"], **fields}
    created = await caller.post("/webhook-endpoints", json=body)
    assert created.status_code == 201, created.text
    made: dict[str, Any] = created.json()["data"]
    return made


def is_signed_by(arrival: Arrival, secret: str) -> bool:
    try:
        standardwebhooks.Webhook(secret).verify(arrival.body, arrival.headers)
    except standardwebhooks.WebhookVerificationError:
        return False
    return True


@pytest.mark.smoke
async def test_a_new_endpoint_gets_events_signed_with_the_secret_that_was_shown_once(
    caller: httpx.AsyncClient, station: Station
) -> None:
    made = await create(caller, station, description="The shop", headers={"X-Shop-Token": "hush-hush"})
    secret = made.pop("secret")
    assert (made["status"], made["headers"], made["secretHint"]) == ("active", ["X-Shop-Token"], secret[-4:])
    customer = await make_customer(caller)
    await until(station.has(1))
    (arrival,) = station.arrivals
    assert arrival.resource == customer["id"]
    assert arrival.headers["X-Shop-Token"] == "hush-hush"
    assert is_signed_by(arrival, secret)
    shown = await caller.get(f"/webhook-endpoints/{made['id']}")
    listed = await caller.get("/webhook-endpoints")
    assert shown.json()["data"] == made
    assert (listed.json()["data"], listed.json()["meta"]["total"]) == ([made], 1)
    for response in (shown, listed):
        assert secret not in response.text
        assert "hush-hush" not in response.text


async def test_a_retry_gets_the_endpoint_without_its_secret(
    caller: httpx.AsyncClient, station: Station, post: Database, client: Environments
) -> None:
    once, body = {"idempotency-key": "shop"}, {"url": station.url("hook")}
    first = await caller.post("/webhook-endpoints", json=body, headers=once)
    retry = await caller.post("/webhook-endpoints", json=body, headers=once)
    assert retry.json()["data"] == first.json()["data"] | {"secret": None}
    async with post.connection() as db:
        stored = await db.fetchval("SELECT body FROM idempotency_records WHERE company_id = $1", client.live)
    assert first.json()["data"]["secret"] not in stored.decode()


async def test_an_endpoint_is_changed_field_by_field(caller: httpx.AsyncClient, station: Station) -> None:
    made = await create(caller, station, headers={"X-Shop-Token": "hush-hush"})
    path = f"/webhook-endpoints/{made['id']}"
    changed = (await caller.put(path, json={"events": [], "description": "all", "autoResume": False})).json()["data"]
    assert {name for name in changed if changed[name] != made[name]} == {
        "events", "description", "autoResume", "updatedAt",
    }  # fmt: skip
    cleared = (await caller.put(path, json={"description": None, "headers": {}})).json()["data"]
    assert (cleared["description"], cleared["headers"], cleared["events"]) == (None, [], [])


async def test_another_receiver_does_not_get_the_headers_of_the_first(
    caller: httpx.AsyncClient, station: Station
) -> None:
    made = await create(caller, station, headers={"X-Shop-Token": "hush-hush"})
    path = f"/webhook-endpoints/{made['id']}"
    refused = await caller.put(path, json={"url": "https://other.example/hook"})
    assert refused.json()["error"]["details"][0]["field"] == "headers"
    assert (await caller.get(path)).json()["data"]["url"] == made["url"]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"url": "ftp://shop.example"}, "url"),
        ({"url": "https://user:password@shop.example"}, "url"),
        ({"events": ["customer.eaten"]}, "events"),
        ({"headers": {"Host": "x"}}, "headers"),
        ({"description": "x" * 501}, "description"),
        ({"secret": "mine"}, "secret"),
    ],
)
async def test_an_invalid_endpoint_is_refused_with_its_field(
    api: httpx.AsyncClient, fields: dict[str, Any], field: str
) -> None:
    refused = await api.post("/webhook-endpoints", json={"url": "https://shop.example/hook", **fields})
    assert refused.status_code == 400
    assert [detail["field"] for detail in refused.json()["error"]["details"]] == [field]
    assert (await api.get("/webhook-endpoints")).json()["data"] == []


async def test_an_address_of_the_own_network_is_refused(api: httpx.AsyncClient) -> None:
    for url in ("http://127.0.0.1:8000/", "https://127.0.0.1/", "https://[::1]/", "https://169.254.169.254/"):
        assert (await api.post("/webhook-endpoints", json={"url": url})).status_code == 400


async def test_a_company_has_at_most_ten_endpoints(api: httpx.AsyncClient) -> None:
    for number in range(10):
        created = await api.post("/webhook-endpoints", json={"url": f"https://shop.example/{number}"})
        assert created.status_code == 201
    refused = await api.post("/webhook-endpoints", json={"url": "https://shop.example/10"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "WEBHOOK_LIMIT")
    pages = [(await api.get("/webhook-endpoints", params={"page": n, "limit": 4})).json() for n in (1, 2, 3)]
    urls = [endpoint["url"][-1] for page in pages for endpoint in page["data"]]
    assert urls == list("9876543210")


async def test_a_paused_endpoint_holds_its_deliveries_until_it_is_resumed(
    caller: httpx.AsyncClient, station: Station
) -> None:
    made = await create(caller, station)
    path = f"/webhook-endpoints/{made['id']}"
    assert (await caller.post(f"{path}/resume")).json()["error"]["code"] == "WEBHOOK_ACTIVE"
    for _ in range(2):
        assert (await caller.post(f"{path}/pause")).json()["data"]["status"] == "paused"
    customer = await make_customer(caller)
    refused = await caller.post(f"{path}/resume", json={"missed": "some"})
    assert refused.status_code == 400
    assert station.arrivals == []
    assert (await caller.post(f"{path}/resume", json={"missed": "all"})).json()["data"]["status"] == "active"
    await until(station.has(1))
    assert station.arrivals[0].resource == customer["id"]


async def test_while_a_secret_is_rotated_both_sign(caller: httpx.AsyncClient, station: Station) -> None:
    made = await create(caller, station)
    path = f"/webhook-endpoints/{made['id']}/rotate-secret"
    rotated = (await caller.post(path)).json()["data"]
    assert rotated["previousSecretUntil"] is not None
    refused = await caller.post(path)
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "WEBHOOK_OVERLAP")
    assert "endOverlap" in refused.json()["error"]["message"]
    await make_customer(caller)
    await until(station.has(1))
    assert [is_signed_by(station.arrivals[0], one["secret"]) for one in (made, rotated)] == [True, True]
    last = (await caller.post(path, json={"endOverlap": True})).json()["data"]
    await make_customer(caller)
    await until(station.has(2))
    signed = [is_signed_by(station.arrivals[1], one["secret"]) for one in (made, rotated, last)]
    assert signed == [False, True, True]


async def test_a_sample_is_sent_at_once_and_its_outcome_returned(caller: httpx.AsyncClient, station: Station) -> None:
    made = await create(caller, station)
    path = f"/webhook-endpoints/{made['id']}/test"
    result = (await caller.post(path)).json()["data"]
    assert (result["delivered"], result["status"], result["event"]) == (True, 200, "customer.created")
    (arrival,) = station.arrivals
    assert arrival.event_id == result["eventId"]
    assert is_signed_by(arrival, made["secret"])
    station.answer = answer_with(503)
    failed = (await caller.post(path, json={"event": "order.created"})).json()["data"]
    assert (failed["delivered"], failed["status"], failed["error"]) == (False, 503, "http_5xx")
    assert station.arrivals[1].headers["X-Service-Webhook-Event"] == "order.created"
    unknown = await caller.post(path, json={"event": "order.eaten"})
    assert unknown.json()["error"]["details"][0]["field"] == "event"
    assert (await caller.get("/webhook-deliveries")).json()["data"] == []
    assert (await caller.get(f"/webhook-endpoints/{made['id']}")).json()["data"]["failures"] == 0


async def test_a_deleted_endpoint_gets_nothing_more(caller: httpx.AsyncClient, station: Station) -> None:
    gone, other = await create(caller, station), await create(caller, station, url=station.url("other"))
    assert (await caller.delete(f"/webhook-endpoints/{gone['id']}")).status_code == 204
    assert (await caller.get(f"/webhook-endpoints/{gone['id']}")).status_code == 404
    await make_customer(caller)
    await until(station.has_more_than(0))
    assert {arrival.path for arrival in station.arrivals} == {"other"}
    assert (await caller.delete(f"/webhook-endpoints/{other['id']}")).status_code == 204


QUEUED = """
    INSERT INTO webhook_queue (company_id, id, endpoint_id, due_at, event_id, event_at)
    SELECT $1, 'whd_' || n, $2, now(), 'evt_' || n, now() FROM generate_series(1, 4500) AS n"""
LEFT = """
    SELECT (SELECT count(*) FROM webhook_queue WHERE company_id = $1) AS queued, count(DISTINCT xmin::text) AS parts,
           sum(delta) AS counted
      FROM counter_deltas WHERE company_id = $1 AND counter = 'webhook_queue' AND delta < 0"""


async def test_a_long_queue_is_deleted_with_its_endpoint_in_several_transactions(
    api: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    body = {"url": "https://example.com/hook", "events": ["customer.created"]}
    path = f"/webhook-endpoints/{(await api.post('/webhook-endpoints', json=body)).json()['data']['id']}"
    assert (await api.post(f"{path}/pause")).status_code == 200
    async with database.transaction() as tx:
        await tx.execute(QUEUED, company.live, path.rpartition("/")[2])
    assert [(await api.delete(path)).status_code for _ in range(2)] == [204, 404]
    async with database.connection() as db:
        [(queued, parts, counted)] = await db.fetch(LEFT, company.live)
    assert (queued, counted) == (0, -4500)
    assert parts > 1


async def test_deliveries_are_listed_shown_sent_again_and_replayed(caller: httpx.AsyncClient, station: Station) -> None:
    since = (datetime.now(UTC) - timedelta(minutes=5)).isoformat()
    made = await create(caller, station, headers={"X-Shop-Token": "hush-hush"})
    customers = [await make_customer(caller) for _ in range(3)]
    await until(station.has(3))

    async def list_settled() -> Any:
        page = (await caller.get("/webhook-deliveries", params={"status": "delivered", "limit": 2})).json()
        return page if page["pagination"]["hasMore"] else None

    first = await eventually(list_settled)
    before = {"before": first["pagination"]["nextBefore"], "status": "delivered", "limit": 2}
    second = (await caller.get("/webhook-deliveries", params=before)).json()
    assert second["pagination"] == {"limit": 2, "hasMore": False, "nextBefore": None}
    listed = [*first["data"], *second["data"]]
    assert len({delivery["id"] for delivery in listed}) == 3
    assert {delivery["endpointId"] for delivery in listed} == {made["id"]}

    shown = await caller.get(f"/webhook-deliveries/{listed[0]['id']}")
    details = shown.json()["data"]
    assert {name: details[name] for name in listed[0]} == listed[0]
    assert "X-Shop-Token" in details["request"]["headers"]
    assert "hush-hush" not in shown.text
    assert [attempt["responseStatus"] for attempt in details["attemptLog"]] == [200]
    assert customers[-1]["id"] in details["request"]["body"]
    one = (await caller.get("/webhook-deliveries", params={"eventId": listed[0]["eventId"]})).json()["data"]
    assert one == [listed[0]]

    again = (await caller.post(f"/webhook-deliveries/{listed[0]['id']}/resend")).json()["data"]
    assert again["id"] != listed[0]["id"]
    await until(station.has(4))
    assert station.arrivals[3].event_id == again["eventId"] == listed[0]["eventId"]

    replayed = await caller.post(f"/webhook-endpoints/{made['id']}/replay", json={"since": since})
    assert replayed.json()["data"] == {"count": 3}
    await until(station.has(7))
    assert {arrival.resource for arrival in station.arrivals[4:]} == {customer["id"] for customer in customers}
    late = {"since": since, "until": since}
    assert (await caller.post(f"/webhook-endpoints/{made['id']}/replay", json=late)).json()["data"] == {"count": 0}


async def test_a_replay_with_the_same_key_happens_once(caller: httpx.AsyncClient, station: Station) -> None:
    since = (datetime.now(UTC) - timedelta(minutes=5)).isoformat()
    made = await create(caller, station)
    await make_customer(caller)
    await until(station.has(1))
    path, once = f"/webhook-endpoints/{made['id']}/replay", {"idempotency-key": "again"}
    answers = [await caller.post(path, json={"since": since}, headers=once) for _ in range(2)]
    assert [answer.json()["data"] for answer in answers] == [{"count": 1}] * 2
    assert answers[1].headers["idempotency-replayed"] == "true"
    await until(station.has(2))
    await make_customer(caller)
    await until(station.has(3))


@pytest.mark.parametrize(
    ("command", "body", "message"),
    [
        ("resume", {"missed": "some"}, "missed: must be one of all, latest, skip"),
        ("replay", {"since": "2026-01-31T09:30:00"}, "since: must be an ISO 8601 date-time with a timezone component"),
        (
            "replay",
            {"since": "2026-01-31T09:30:00Z", "until": "2026-01-31T09:30:00"},
            "until: must be an ISO 8601 date-time with a timezone component",
        ),
    ],
)
async def test_an_invalid_command_says_what_is_accepted(
    caller: httpx.AsyncClient, station: Station, command: str, body: dict[str, str], message: str
) -> None:
    made = await create(caller, station)
    refused = await caller.post(f"/webhook-endpoints/{made['id']}/{command}", json=body)
    assert (refused.status_code, refused.json()["error"]["message"]) == (400, message)


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"before": "x"}, "before"),
        ({"status": "lost"}, "status"),
        ({"event": "customer.eaten"}, "event"),
        ({"eventId": "x"}, "eventId"),
        ({"limit": "0"}, "limit"),
    ],
)
async def test_an_invalid_list_of_deliveries_is_refused_with_its_parameter(
    api: httpx.AsyncClient, query: dict[str, str], field: str
) -> None:
    refused = await api.get("/webhook-deliveries", params=query)
    assert refused.status_code == 400
    assert [detail["field"] for detail in refused.json()["error"]["details"]] == [field]


async def test_a_page_of_a_hundred_deliveries_can_be_asked_for(api: httpx.AsyncClient) -> None:
    page = (await api.get("/webhook-deliveries", params={"limit": 100})).json()
    assert page["pagination"] == {"limit": 100, "hasMore": False, "nextBefore": None}
