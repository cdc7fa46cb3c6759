"""When a failed delivery is tried again, when it is given up, and when an endpoint is suspended."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sapa.db.pool import Database
from sapa.values.sealing import Vault
from sapa.webhooks.dispatch.settling import fold_failures, settle
from sapa.webhooks.dispatch.types import MAX_FAILURES, AttemptResult
from sapa.webhooks.endpoints import actions
from sapa.webhooks.types import Missed
from tests.cli.command import sapa
from tests.conftest import Installation
from tests.factories import Environments, make_endpoint
from tests.webhooks.station import Station, answer_with, attempts, count, happen, things, until, waiting

DELAYS = [30, 5 * 60, 30 * 60, 2 * 3600]


async def test_a_failing_delivery_is_tried_five_times_at_the_promised_times(
    post_office: Installation, post: Database, seal: Vault, client: Environments, station: Station
) -> None:
    await make_endpoint(post, seal, client.test, station.url("shop"))
    station.answer = answer_with(500)
    await happen(post, client.test, things(1))
    for number, delay in enumerate(DELAYS, start=1):
        due = await until_rescheduled(post, client.test, number + 1)
        assert len(station.arrivals) == number
        # Company time: the attempt's real end, plus the clock's lead, plus the delay.
        ended = (await attempts(post, client.test))[-1]
        lead = sum(DELAYS[: number - 1])
        promised = parse(ended["started_at"]) + timedelta(milliseconds=ended["milliseconds"], seconds=lead + delay)
        assert timedelta(0) <= due - promised + timedelta(milliseconds=1) < timedelta(seconds=25)
        await asyncio.to_thread(advance, post_office, client.test, delay)
        await until(station.has(number + 1))

    await until_empty(post, client.test)
    made = await attempts(post, client.test)
    assert [(row["number"], row["outcome"]) for row in made] == [
        (1, "retrying"), (2, "retrying"), (3, "retrying"), (4, "retrying"), (5, "failed"),
    ]  # fmt: skip
    assert len({arrival.event_id for arrival in station.arrivals}) == 1
    assert {(row["status"], row["error"]) for row in made} == {(500, "http_5xx")}


def advance(installation: Installation, company_id: int, seconds: int) -> None:
    assert sapa(installation.data, "clock", "advance", f"{seconds}s", "--company", str(company_id)).code == 0


def parse(instant: str) -> datetime:
    return datetime.fromisoformat(instant)


async def until_rescheduled(post: Database, company_id: int, attempt: int) -> datetime:
    async def look() -> Any:
        async with post.connection() as db:
            return await db.fetchval(
                "SELECT due_at FROM webhook_queue WHERE company_id = $1 AND attempt = $2", company_id, attempt
            )

    return parse(await until(look))


async def until_empty(post: Database, company_id: int) -> None:
    async def look() -> bool:
        return await waiting(post, company_id) == 0

    await until(look)


async def until_suspended(post: Database, company_id: int) -> None:
    async def look() -> bool:
        return bool(
            await count(
                post,
                "SELECT count(*) FROM webhook_endpoints WHERE company_id = $1 AND status = 'suspended'",
                company_id,
            )
        )

    await until(look)


async def failures(post: Database, company_id: int) -> int:
    return await count(post, "SELECT failures FROM webhook_lanes WHERE company_id = $1", company_id)


async def test_a_retry_is_not_sent_before_its_time(
    post: Database, seal: Vault, client: Environments, station: Station
) -> None:
    """Later events pass it by meanwhile."""
    await make_endpoint(post, seal, client.live, station.url("shop"))
    station.answer = answer_with(500, 200)
    await happen(post, client.live, things(1))
    await until_rescheduled(post, client.live, 2)
    await happen(post, client.live, things(20, start=1))
    await until(lambda: len(station.arrivals) == 21)
    await asyncio.sleep(0.6)
    assert len(station.arrivals) == 21
    assert await waiting(post, client.live) == 1


async def test_a_retry_keeps_its_delay_when_a_test_clock_goes_back(
    post_office: Installation, post: Database, seal: Vault, client: Environments, station: Station
) -> None:
    await make_endpoint(post, seal, client.test, station.url("shop"))
    station.answer = answer_with(500, 200)
    await asyncio.to_thread(advance, post_office, client.test, 40 * 60)
    await happen(post, client.test, things(1))
    before = await until_rescheduled(post, client.test, 2)
    reset = await asyncio.to_thread(sapa, post_office.data, "clock", "reset", "--company", str(client.test))
    assert reset.code == 0
    assert await until_rescheduled(post, client.test, 2) == before - timedelta(minutes=40)
    await asyncio.to_thread(advance, post_office, client.test, 30)
    await until(station.has(2))


async def test_ten_failures_in_a_row_suspend_an_endpoint_once_and_hold_its_deliveries(
    post: Database, seal: Vault, client: Environments, station: Station
) -> None:
    made = await make_endpoint(post, seal, client.live, station.url("shop"))
    healthy = await make_endpoint(post, seal, client.live, station.url("healthy"), ["customer.updated"])

    async def answer(arrival: Any) -> int:
        return 200 if arrival.path == "healthy" else 503

    station.answer = answer
    await happen(post, client.live, things(40))
    await until_suspended(post, client.live)
    await until(lambda: len(station.at("healthy")) == 40)
    assert len(station.at("shop")) == MAX_FAILURES
    async with post.connection() as db:
        notices = await actions.list_notices(db, client.live)
        endpoint = await actions.get(db, seal, client.live, made.endpoint.id)
        other = await actions.get(db, seal, client.live, healthy.endpoint.id)
    assert [(notice.kind, notice.resource_id) for notice in notices] == [("webhook.suspended", made.endpoint.id)]
    assert endpoint.status == "suspended"
    assert "503" in (endpoint.reason or "")
    assert other.status == "active"

    async def is_held() -> bool:
        return await waiting(post, client.live) == 40

    await until(is_held)


async def test_a_success_starts_the_count_anew(
    post: Database, seal: Vault, client: Environments, station: Station
) -> None:
    await make_endpoint(post, seal, client.live, station.url("shop"))
    station.answer = answer_with(*[500] * 9, 200, *[500] * 9, 200)
    await happen(post, client.live, things(20))
    await until(lambda: len(station.arrivals) == 20)

    async def are_all_settled() -> bool:
        return len(await attempts(post, client.live)) == 20

    await until(are_all_settled)
    assert await failures(post, client.live) == 0
    assert await count(post, "SELECT count(*) FROM notices WHERE company_id = $1", client.live) == 0


async def test_a_resumed_endpoint_has_all_its_chances_again(
    post: Database, seal: Vault, client: Environments, station: Station
) -> None:
    made = await make_endpoint(post, seal, client.live, station.url("shop"))
    station.answer = answer_with(*[500] * 10, *[500] * 9, 200)
    await happen(post, client.live, things(30))
    await until_suspended(post, client.live)
    async with post.transaction() as tx:
        await actions.resume(tx, seal, client.live, made.endpoint.id, Missed.ALL)
    await until(lambda: len(station.arrivals) == 30)
    assert await count(post, "SELECT count(*) FROM notices WHERE company_id = $1", client.live) == 1


def build_result(company_id: int, endpoint_id: str, number: int, error: str | None, **more: Any) -> AttemptResult:
    fields: dict[str, Any] = {
        "company_id": company_id,
        "endpoint_id": endpoint_id,
        "epoch": 7,
        "delivery_id": f"whd_{number}",
        "attempt": 1,
        "kind": "customer.updated",
        "started_at": datetime.now(UTC),
        "milliseconds": 1,
        "status": None,
        "error": error,
        "message": error,
        "address": None,
        "response": b"\x00\xff",
    }
    return AttemptResult(**fields | more)


async def hold(post: Database, seal: Vault, company_id: int, url: str, deliveries: int) -> str:
    """An endpoint whose lane the test itself serves, with deliveries in its queue."""
    made = await make_endpoint(post, seal, company_id, url)
    async with post.transaction() as tx:
        await tx.execute(
            "UPDATE webhook_lanes SET owner = 'test', epoch = 7, owner_until = 'infinity' WHERE company_id = $1",
            company_id,
        )
        await tx.execute(
            """INSERT INTO webhook_queue (company_id, id, endpoint_id, due_at, event_id, event_at)
               SELECT $1, 'whd_' || n, $2, now(), 'evt_' || n, now() FROM generate_series(0, $3::integer - 1) n""",
            company_id,
            made.endpoint.id,
            deliveries,
        )
    return made.endpoint.id


async def test_failures_that_are_settled_at_once_suspend_once(
    post: Database, seal: Vault, client: Environments, station: Station
) -> None:
    id = await hold(post, seal, client.live, station.url("shop"), 40)
    results = [build_result(client.live, id, number, "tcp") for number in range(40)]
    reported = await asyncio.gather(
        *(settle(post, client.live, "test", results[start : start + 4]) for start in range(0, 40, 4))
    )
    assert [endpoints for endpoints in reported if endpoints] == [[id]]
    assert await count(post, "SELECT count(*) FROM notices WHERE company_id = $1", client.live) == 1
    assert await failures(post, client.live) == 40


async def test_settling_twice_counts_and_records_once(
    post: Database, seal: Vault, client: Environments, station: Station
) -> None:
    """As after a connection that was lost while it committed."""
    id = await hold(post, seal, client.live, station.url("shop"), 3)
    results = [build_result(client.live, id, 0, None), *(build_result(client.live, id, n, "tcp") for n in (1, 2))]
    for _ in range(2):
        await settle(post, client.live, "test", results)
    assert await failures(post, client.live) == 2
    assert len(await attempts(post, client.live)) == 3
    assert await count(post, "SELECT max(attempt) FROM webhook_queue WHERE company_id = $1", client.live) == 2


async def test_a_late_comer_may_tell_of_a_success_and_of_nothing_else(
    post: Database, seal: Vault, client: Environments, station: Station
) -> None:
    id = await hold(post, seal, client.live, station.url("shop"), 3)
    async with post.connection() as db:
        await db.execute("UPDATE webhook_lanes SET failures = 5 WHERE company_id = $1", client.live)
    late = [
        build_result(client.live, id, 0, None, epoch=6),
        build_result(client.live, id, 1, "tcp", epoch=6),
        build_result(client.live, id, 2, "tcp", epoch=6, attempt=1, is_ours=True),
    ]
    before = await due_times(post, client.live)
    await settle(post, client.live, "test", late)
    await settle(post, client.live, "somebody else", [build_result(client.live, id, 1, "tcp")])
    assert [(row["delivery_id"], row["outcome"]) for row in await attempts(post, client.live)] == [
        ("whd_0", "delivered")
    ]
    assert await due_times(post, client.live) == {id: due for id, due in before.items() if id != "whd_0"}
    assert await failures(post, client.live) == 5


async def due_times(post: Database, company_id: int) -> dict[str, Any]:
    async with post.connection() as db:
        rows = await db.fetch("SELECT id, due_at, attempt FROM webhook_queue WHERE company_id = $1", company_id)
    return {row["id"]: (row["due_at"], row["attempt"]) for row in rows}


async def test_what_is_our_own_fault_is_tried_again_and_costs_nothing(
    post: Database, seal: Vault, client: Environments, station: Station
) -> None:
    id = await hold(post, seal, client.live, station.url("shop"), 1)
    before = await due_times(post, client.live)
    await settle(post, client.live, "test", [build_result(client.live, id, 0, "internal", is_ours=True)])
    (due, attempt) = (await due_times(post, client.live))["whd_0"]
    assert attempt == 1
    assert timedelta(seconds=29) < parse(due) - parse(before["whd_0"][0]) < timedelta(seconds=150)
    assert await failures(post, client.live) == 0
    assert await attempts(post, client.live) == []


@given(st.integers(0, 9), st.lists(st.lists(st.booleans(), max_size=15), max_size=8))
def test_it_does_not_matter_how_attempts_fall_into_batches(before: int, batches: list[list[bool]]) -> None:
    """Held against the plain rule: one attempt after the other, suspended whenever the last ten all failed."""
    history = [True] * before
    is_suspended = False
    for failed in [failed for batch in batches for failed in batch]:
        history.append(failed)
        is_suspended = is_suspended or (len(history) >= 10 and all(history[-10:]))
    run = len(history) - max((place + 1 for place, failed in enumerate(history) if not failed), default=0)

    counted, was_over = before, False
    for batch in batches:
        counted, is_over = fold_failures(counted, batch)
        was_over = was_over or is_over
    assert (counted, was_over) == (run, is_suspended)
