"""Deliveries as people look at them: samples, lists, one with its tries, sending again, and rotated secrets."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import msgspec
import pytest
from aiohttp import web

from sapa.db.pool import Database
from sapa.events import CATALOGUE
from sapa.values.sealing import Vault
from sapa.webhooks import VerificationError, verify
from tests.cli.command import Outcome, sapa
from tests.conftest import Installation, connect
from tests.db.scratch import connect as connect_database
from tests.factories import Environments, make_company, make_customer, make_endpoint, make_key
from tests.http.wire import eventually
from tests.webhooks.shop import Arrival, Shop, open_shop

UNKNOWN = "whd_01jc9y3q5me8w92v7x4t6r0n1k"


@pytest.fixture(scope="module")
def installation(post_office: Installation) -> Installation:
    return post_office


@pytest.fixture(scope="module")
def database(post: Database) -> Database:
    return post


@pytest.fixture
def vault(installation: Installation) -> Vault:
    return Vault(installation.server.secret_key)


@pytest.fixture
async def company(database: Database) -> Environments:
    return await make_company(database)


@pytest.fixture
async def api(
    installation: Installation, database: Database, company: Environments
) -> AsyncIterator[httpx.AsyncClient]:
    """The test environment, whose clock can be moved."""
    async with connect(installation, (await make_key(database, company.test)).raw) as client:
        yield client


@pytest.fixture
async def shop() -> AsyncIterator[Shop]:
    async with open_shop() as opened:
        yield opened


class Hook:
    """An endpoint that delivers to the shop, and the commands on it."""

    def __init__(self, installation: Installation, company_id: int, id: str, secret: str) -> None:
        self.installation = installation
        self.company_id = company_id
        self.id = id
        self.secret = secret

    async def run(self, *arguments: str) -> Outcome:
        """On a thread, so that the shop can answer meanwhile."""
        variables = {"SAPA_WEBHOOK_ALLOW_INSECURE": "1"}
        return await asyncio.to_thread(sapa, self.installation.data, "webhook", *arguments, **variables)

    async def json(self, *arguments: str) -> Any:
        return (await self.run(*arguments, "--json")).json()

    async def deliveries(self, *arguments: str) -> Any:
        return await self.json("deliveries", self.id, *arguments)

    async def settled(self, count: int) -> list[Any]:
        """Waits until so many deliveries ended, and gives them, the newest first."""

        async def look() -> list[Any] | None:
            found: list[Any] = await self.deliveries("--limit", "100")
            done = [delivery for delivery in found if delivery["status"] in {"delivered", "failed", "skipped"}]
            return done if len(done) >= count else None

        return await eventually(look)


@pytest.fixture
async def hook(installation: Installation, database: Database, vault: Vault, company: Environments, shop: Shop) -> Hook:
    made = await make_endpoint(database, vault, company.test, shop.url, headers={"X-Shop": "melati"})
    return Hook(installation, company.test, made.endpoint.id, made.secret)


def is_signed(arrival: Arrival, secret: str) -> bool:
    try:
        return verify(arrival.headers, arrival.body, secret) == arrival.event_id
    except VerificationError:
        return False


async def test_a_sample_of_every_kind_arrives_signed_and_counts_for_nothing(hook: Hook, shop: Shop) -> None:
    for kind in CATALOGUE:
        report = await hook.json("test", hook.id, "--event", kind)
        assert (report["delivered"], report["status"], report["response"]) == (True, 200, "thanks")
        arrival = shop.arrivals[-1]
        assert (arrival.kind, arrival.event_id) == (kind, report["eventId"])
        assert arrival.header("X-Shop") == "melati"
        assert is_signed(arrival, hook.secret)
        assert msgspec.json.decode(arrival.body)
    assert len(shop.arrivals) == len(CATALOGUE)
    assert await hook.deliveries() == []


async def test_a_sample_that_fails_says_why_with_exit_code_1(hook: Hook, shop: Shop) -> None:
    shop.answer = lambda _: web.Response(status=503, text="closed")
    outcome = await hook.run("test", hook.id)
    assert outcome.code == 1
    assert "503" in outcome.out
    assert "Traceback" not in outcome.err
    assert (await hook.json("show", hook.id))["failures"] == 0
    assert "use one of" in (await hook.run("test", hook.id, "--event", "x")).sentence()


async def test_a_delivery_is_listed_and_shown_with_its_attempts(hook: Hook, shop: Shop, api: httpx.AsyncClient) -> None:
    shop.answer = lambda _: web.Response(body=b"\xff\x00thanks")
    customer = await make_customer(api, firstName="Ayu")
    (delivery,) = await hook.settled(1)
    (arrival,) = shop.arrivals
    assert delivery["eventId"] == arrival.event_id
    assert (delivery["event"], delivery["status"], delivery["attempts"]) == ("customer.created", "delivered", 1)
    assert (delivery["responseStatus"], delivery["error"], delivery["nextAttemptAt"]) == (200, None, None)
    reported = await hook.json("delivery", delivery["id"])
    assert reported["delivery"] == delivery
    assert reported["request"]["url"] == shop.url
    assert reported["request"]["body"].encode() == arrival.body
    assert customer["id"] in reported["request"]["body"]
    assert {"X-Service-Webhook-Signature", "X-Shop"} <= set(reported["request"]["headers"])
    assert "melati" not in str(reported["request"]["headers"])
    (attempt,) = reported["attempts"]
    assert (attempt["number"], attempt["outcome"], attempt["response"]) == (1, "delivered", "\ufffd\x00thanks")
    assert attempt["address"] == "127.0.0.1"
    people = await hook.run("delivery", delivery["id"])
    assert people.code == 0
    assert customer["id"] in people.out


async def test_a_receiver_s_response_cannot_control_the_terminal(
    hook: Hook, shop: Shop, api: httpx.AsyncClient
) -> None:
    shop.answer = lambda _: web.Response(body=b"\x1b]0;owned\x07\x1b[2J\xc2\x9b31m\rfine\n\xe2\x80\xaegnp")
    await make_customer(api, firstName="Ayu\u202e")
    (delivery,) = await hook.settled(1)
    shown = (await hook.run("delivery", delivery["id"])).out
    sample = (await hook.run("test", hook.id)).out
    assert "fine" in shown
    assert [char for char in shown + sample if not char.isprintable() and char != "\n"] == []
    assert (await hook.json("delivery", delivery["id"]))["attempts"][0]["response"].startswith("\x1b]0;owned")


async def test_a_body_too_large_to_be_sent_is_shown_as_it_was_sent(
    hook: Hook, shop: Shop, api: httpx.AsyncClient
) -> None:
    await make_customer(api, additionalData={f"k{n}": "x" * 4900 for n in range(20)})
    (delivery,) = await hook.settled(1)
    reported = await hook.json("delivery", delivery["id"])
    (arrival,) = shop.arrivals
    assert '"truncated":true' in reported["request"]["body"]
    sent, shown = (msgspec.json.decode(body) for body in (arrival.body, reported["request"]["body"]))
    assert shown["id"] == sent["id"]
    assert shown["url"].partition("/customer/v1/")[2] == sent["url"].partition("/customer/v1/")[2]


@pytest.mark.parametrize("is_failed", [True, False])
@pytest.mark.one_server("counts the rows that one server read")
async def test_a_list_reads_little_of_a_long_history(hook: Hook, database: Database, is_failed: bool) -> None:
    """Few attempts are read to find a company's failures, or an endpoint's own, behind many newer ones of another."""
    async with database.connection() as db:
        await db.execute(HISTORY, hook.company_id, "whe_other", 20_000, 0, "delivered")
        await db.execute(HISTORY, hook.company_id, hook.id, 30, 20_000, "failed" if is_failed else "delivered")
        await db.execute("SELECT pg_stat_force_next_flush()")
    async with connect_database(hook.installation.server.owner_url) as owner:
        await owner.execute("ANALYZE webhook_attempts")
        before = await read_rows(owner)
        whose = ["--company", str(hook.company_id), "--status", "failed"] if is_failed else [hook.id]
        found = await hook.json("deliveries", *whose)
        assert len(found) == 20
        assert [one["id"] for one in found] == sorted((one["id"] for one in found), reverse=True)

        async def look() -> int | None:
            count = await read_rows(owner) - before
            return count or None

        assert await eventually(look) < 2_000


HISTORY = """
    INSERT INTO webhook_attempts (company_id, endpoint_id, started_at, delivery_id, number, event_id, event_at, kind,
                                  milliseconds, outcome)
    SELECT $1, $2, made.at, 'whd_' || made.digits || lpad(n::text, 16, '0'), 1,
           'evt_' || lpad(n::text, 26, '0'), made.at, 'customer.created', 1, $5
      FROM generate_series(1, $3::int) n
     CROSS JOIN LATERAL (SELECT now() - ($4::int + n) * interval '1 second' AS at) AS moment
     CROSS JOIN LATERAL (
           SELECT moment.at, string_agg(substr('0123456789abcdefghjkmnpqrstvwxyz',
                  ((extract(epoch FROM moment.at) * 1000)::bigint >> (5 * place) & 31)::int + 1, 1), ''
                  ORDER BY place DESC) AS digits
             FROM generate_series(0, 9) place) AS made"""


async def read_rows(owner: Any) -> int:
    """How many attempts were read from tables and indexes so far."""
    await owner.execute("SELECT pg_stat_clear_snapshot()")
    count: int = await owner.fetchval(
        """
        SELECT sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::bigint
          FROM pg_stat_user_tables WHERE relname LIKE 'webhook_attempts%'"""
    )
    return count


async def test_a_delivery_that_failed_once_is_shown_as_retrying_with_the_reason(
    hook: Hook, shop: Shop, api: httpx.AsyncClient
) -> None:
    shop.answer = lambda _: web.Response(status=500, text="broken")
    await make_customer(api)

    async def look() -> Any:
        found = await hook.deliveries("--status", "retrying")
        return found[0] if found else None

    delivery = await eventually(look)
    assert (delivery["attempts"], delivery["responseStatus"], delivery["error"]) == (1, 500, "http_5xx")
    assert delivery["nextAttemptAt"] > delivery["eventAt"]
    assert "500" in delivery["message"]
    assert (await hook.json("show", hook.id))["failures"] == 1
    assert (await hook.json("pause", hook.id))["status"] == "paused"
    assert [one["status"] for one in await hook.deliveries()] == ["held"]


async def test_lists_can_be_narrowed_and_paged(hook: Hook, shop: Shop, api: httpx.AsyncClient) -> None:
    for _ in range(3):
        customer = await make_customer(api)
        await api.put(f"/customers/{customer['id']}", json={"firstName": "Ayu"})
    everything = await hook.settled(6)
    ids = [delivery["id"] for delivery in everything]
    assert ids == sorted(ids, reverse=True)
    updates = await hook.deliveries("--event", "customer.updated")
    assert [one["id"] for one in updates] == [one["id"] for one in everything if one["event"] == "customer.updated"]
    assert len(updates) == 3
    for one in everything:
        assert await hook.deliveries("--event-id", one["eventId"]) == [one]
    assert await hook.deliveries("--status", "delivered") == everything
    for status in ("pending", "retrying", "held", "failed", "skipped"):
        assert await hook.deliveries("--status", status) == []
    pages: list[Any] = []
    while page := await hook.deliveries("--limit", "4", *(["--before", pages[-1]["id"]] if pages else [])):
        pages += page
    assert pages == everything
    assert await hook.json("deliveries", "--company", str(hook.company_id)) == everything
    assert (await hook.run("deliveries", hook.id, "--status", "lost")).sentence().startswith("status:")
    assert (await hook.run("deliveries", hook.id, "--limit", "101")).sentence().startswith("limit:")
    assert (await hook.run("deliveries", hook.id, "--event-id", "x")).sentence().startswith("event-id:")
    assert (await hook.run("deliveries", hook.id, "--event", "bogus")).sentence().startswith("event:")
    assert (await hook.run("deliveries", hook.id, "--before", "garbage")).sentence().startswith("before:")
    assert (await hook.run("deliveries", "--company", str(2**40))).sentence().startswith("No company has this id")
    assert (await hook.run("deliveries")).code == 2


async def test_a_delivery_can_be_sent_again_under_the_same_event_id(
    hook: Hook, shop: Shop, api: httpx.AsyncClient
) -> None:
    await make_customer(api)
    (first,) = await hook.settled(1)
    again = await hook.json("resend", first["id"])
    assert again["id"] != first["id"]
    assert again["eventId"] == first["eventId"]
    one, two = await shop.gets(2)
    assert (one.event_id, one.body) == (two.event_id, two.body)
    assert {delivery["id"] for delivery in await hook.settled(2)} == {first["id"], again["id"]}
    await hook.json("pause", hook.id)
    refused = (await hook.run("resend", first["id"])).sentence()
    assert refused == "The webhook endpoint is not active; resume it first."
    assert len(await hook.deliveries()) == 2


async def test_what_is_gone_cannot_be_sent_again(hook: Hook, shop: Shop, api: httpx.AsyncClient) -> None:
    await make_customer(api)
    (first,) = await hook.settled(1)
    async with connect_database(hook.installation.server.owner_url) as owner:
        await owner.execute("DELETE FROM events WHERE id = $1", first["eventId"])
    assert "past its retention" in (await hook.run("resend", first["id"])).sentence()
    assert (await hook.json("delivery", first["id"]))["request"]["body"] is None
    await hook.json("delete", hook.id)
    assert "webhook endpoint" in (await hook.run("resend", first["id"])).sentence()
    stored = await hook.json("delivery", first["id"])
    assert (stored["delivery"], stored["request"]["url"]) == (first, None)


@pytest.mark.parametrize("id", [UNKNOWN, "x", "whe_01jc9y3q5me8w92v7x4t6r0n1k"])
async def test_an_unknown_delivery_is_reported_in_one_sentence(hook: Hook, id: str) -> None:
    for command in ("delivery", "resend"):
        assert (await hook.run(command, id)).sentence().startswith("No delivery has this id")


async def test_a_time_is_replayed_in_its_order(hook: Hook, shop: Shop, api: httpx.AsyncClient) -> None:
    customer = await make_customer(api)
    for number in range(12):
        await api.put(f"/customers/{customer['id']}", json={"firstName": f"n{number}"})
    other = await make_customer(api)
    events = {one["eventId"]: one for one in await hook.settled(14)}
    reported = sorted(events.values(), key=lambda one: one["eventAt"])
    start, end = reported[3]["eventAt"], reported[9]["eventAt"]
    shop.arrivals.clear()
    wanted = [one for one in reported if start <= one["eventAt"] < end]
    report = await hook.json("replay", hook.id, "--since", start, "--until", end)
    assert report["count"] == len(wanted) >= 5
    arrived = await shop.gets(len(wanted))
    assert [one.event_id for one in arrived] == [one["eventId"] for one in wanted]
    shop.arrivals.clear()
    again = await hook.json("replay", hook.id, "--since", reported[0]["eventAt"], "--event", "customer.created")
    assert again["count"] == 2
    bodies = b"".join(one.body for one in await shop.gets(2))
    assert customer["id"].encode() in bodies
    assert other["id"].encode() in bodies
    assert (await hook.run("replay", hook.id, "--since", "yesterday")).code == 2
    await hook.json("pause", hook.id)
    assert "resume it first" in (await hook.run("replay", hook.id, "--since", start)).sentence()


async def test_a_long_time_is_replayed_in_batches(
    hook: Hook, database: Database, shop: Shop, company: Environments
) -> None:
    """More events than one batch holds, many of them of one millisecond."""
    async with database.connection() as db:
        await db.execute(
            """
            INSERT INTO events (company_id, id, kind, resource_id, body, created_at)
            SELECT $1, 'evt_' || lpad(n::text, 26, '0'), 'customer.created', 'r' || n % 7, convert_to(n::text, 'UTF8'),
                   now() - interval '1 hour' + n / 90 * interval '1 millisecond'
              FROM generate_series(1, 1200) n""",
            hook.company_id,
        )
        since: str = await db.fetchval("SELECT now() - interval '2 hours'")
    report = await hook.json("replay", hook.id, "--since", since)
    assert report["count"] == 1200
    arrived = await shop.gets(1200)
    assert sorted(int(one.body) for one in arrived) == list(range(1, 1201))
    for resource in range(7):
        own = [int(one.body) for one in arrived if int(one.body) % 7 == resource]
        assert own == sorted(own), "the events of one resource come in their order"


async def test_both_secrets_sign_for_a_day_and_then_the_new_one_alone(
    hook: Hook, shop: Shop, api: httpx.AsyncClient
) -> None:
    await make_customer(api)
    (before,) = await shop.gets(1)
    new = await hook.json("rotate", hook.id)
    assert new["secret"] != hook.secret
    assert new["previousSecretUntil"] is not None
    await make_customer(api)
    during = (await shop.gets(2))[1]
    advance = ["clock", "advance", "25h", "--company", str(hook.company_id), "--json"]
    (await asyncio.to_thread(sapa, hook.installation.data, *advance)).json()
    assert (await hook.json("show", hook.id))["previousSecretUntil"] is None
    await hook.json("test", hook.id)
    await make_customer(api)
    sample, after = (await shop.gets(4))[2:]
    signs = [[is_signed(one, secret) for secret in (hook.secret, new["secret"])] for one in (before, during, after)]
    assert signs == [[True, False], [True, True], [False, True]]
    assert [is_signed(sample, secret) for secret in (hook.secret, new["secret"])] == [False, True]
    assert during.header("X-Service-Webhook-Signature").count("v1=") == 2
    assert after.header("X-Service-Webhook-Signature").count("v1=") == 1


async def test_a_second_rotation_does_not_end_the_first_one_s_overlap_unasked(
    hook: Hook, shop: Shop, api: httpx.AsyncClient
) -> None:
    first = await hook.json("rotate", hook.id)
    refused = (await hook.run("rotate", hook.id)).sentence()
    assert "--end-overlap" in refused
    assert first["previousSecretUntil"] in refused
    await make_customer(api)
    (arrival,) = await shop.gets(1)
    assert [is_signed(arrival, secret) for secret in (hook.secret, first["secret"])] == [True, True]
    second = await hook.json("rotate", hook.id, "--end-overlap")
    await make_customer(api)
    arrival = (await shop.gets(2))[1]
    signs = [is_signed(arrival, secret) for secret in (hook.secret, first["secret"], second["secret"])]
    assert signs == [False, True, True]


async def test_a_changed_address_gets_what_comes_next(hook: Hook, shop: Shop, api: httpx.AsyncClient) -> None:
    async with open_shop() as elsewhere:
        await hook.json("update", hook.id, "--url", elsewhere.url, "--event", "customer.updated", "--no-headers")
        customer = await make_customer(api)
        await api.put(f"/customers/{customer['id']}", json={"firstName": "Ayu"})
        (arrival,) = await elsewhere.gets(1)
        assert arrival.kind == "customer.updated"
        assert "X-Shop" not in dict(arrival.headers)
    assert shop.arrivals == []


async def test_a_paused_endpoint_gets_all_that_it_missed(hook: Hook, shop: Shop, api: httpx.AsyncClient) -> None:
    await hook.json("pause", hook.id)
    missed = [await make_customer(api) for _ in range(3)]
    assert shop.arrivals == []
    await hook.json("resume", hook.id)
    arrived = await shop.gets(3)
    assert sorted(one.body.split(b'"')[3].decode() for one in arrived) == sorted(one["id"] for one in missed)
