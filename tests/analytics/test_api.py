from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from sapa.access.types import Scope
from sapa.db.pool import Database
from sapa.messaging.messages.types import Source
from sapa.support.samples.actions import record
from sapa.support.samples.types import Metric, Sample
from tests.analytics.sample_strategies import make_agent
from tests.conftest import Installation
from tests.factories import Environments, make_company, make_key
from tests.messaging.conftest import connect_messaging
from tests.messaging.conversation_steps import advance
from tests.support.ticket_steps import Desk

Json = dict[str, Any]

NINE = datetime(2026, 3, 2, 9, tzinfo=UTC)
YEAR = {"startAt": "2026-01-01T00:00:00Z", "endAt": "2026-12-31T23:59:59Z"}
HOUR = 3_600.0


def sample(agent: int, metric: Metric = Metric.HANDLED, seconds: float = 0, **fields: Any) -> Sample:
    """At nine on MSGAPP_CLOUD by default."""
    at = fields.get("at", NINE)
    given = {"ticket_id": "tkt_1", "cycle": 1, "source": Source.MSGAPP_CLOUD, "at": at, "message_id": None, **fields}
    return Sample(agent_id=agent, metric=metric, seconds=seconds, started_at=at - timedelta(seconds=seconds), **given)


async def store(database: Database, company_id: int, *samples: Sample) -> None:
    async with database.transaction() as tx:
        await record(tx, company_id, samples)


async def report(client: httpx.AsyncClient, **asked: str) -> list[Json]:
    answer = await client.get("/analytics/agents", params=asked)
    assert answer.status_code == 200, answer.text
    records: list[Json] = answer.json()["data"]["records"]
    return records


@pytest.mark.smoke
async def test_the_whole_answer(sandbox: httpx.AsyncClient, database: Database, company: Environments) -> None:
    sari, bot = await make_agent(sandbox, "Sari"), await make_agent(sandbox, "Bot", type="ai")
    await store(
        database, company.test,
        sample(sari, at=NINE + timedelta(microseconds=123_456), message_id="a"),
        sample(sari, ticket_id="tkt_2"),
        sample(sari, Metric.FIRST_RESPONSE, 300),
        sample(sari, Metric.RESPONSE, 300),
        sample(sari, Metric.RESPONSE, 120.999999, cycle=2),
        sample(sari, Metric.RESOLUTION, 125 * HOUR + 3 * 60 + 8.5),
    )  # fmt: skip
    answer = await sandbox.get("/analytics/agents?startAt=2026-03-02T16:00:00+07:00&endAt=2026-03-02T23:59:59.999Z")
    assert answer.status_code == 200
    assert answer.json() == {
        "status": "success",
        "data": {
            "range": {"start_at": "2026-03-02T09:00:00.000Z", "end_at": "2026-03-02T23:59:59.999Z"},
            "records": [
                {
                    "company_id": company.test,
                    "agent_id": bot,
                    "agent_name": "Bot",
                    "agent_type": "ai",
                    "tickets_handled": 0,
                    "first_response_time": "00:00:00",
                    "avg_response_time": "00:00:00",
                    "resolution_time": "00:00:00",
                    "last_chat_handled": None,
                    "average_rating": None,
                    "ratings": 0,
                },
                {
                    "company_id": company.test,
                    "agent_id": sari,
                    "agent_name": "Sari",
                    "agent_type": "human",
                    "tickets_handled": 2,
                    "first_response_time": "00:05:00",
                    "avg_response_time": "00:03:30",
                    "resolution_time": "125:03:09",
                    "last_chat_handled": "2026-03-02T09:00:00.123Z",
                    "average_rating": None,
                    "ratings": 0,
                },
            ],
        },
    }


async def test_each_channel_is_the_tickets_of_its_sources(
    sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    """Each source has a power of two tickets, so that every sum of sources differs."""
    sari = await make_agent(sandbox)
    counts = {source: 2**place for place, source in enumerate(Source)}
    samples = [
        sample(sari, source=source, ticket_id=f"tkt_{source}_{number}", at=NINE + timedelta(days=number % 70))
        for source, count in counts.items()
        for number in range(count)
    ]
    await store(database, company.test, *samples)
    found = {}
    for channel in ("msgapp", "msgapp_cloud_api", "msgapp_coex", "photo_social", "social_network", "short_video",
                    "mail", "widget"):  # fmt: skip
        (one,) = await report(sandbox, channel=channel, **YEAR)
        found[channel] = one["tickets_handled"]
    assert found == {
        "msgapp": 3, "msgapp_cloud_api": 1, "msgapp_coex": 2, "photo_social": 4, "social_network": 8,
        "short_video": 16, "mail": 32, "widget": 64,
    }  # fmt: skip
    (one,) = await report(sandbox, **YEAR)
    assert one["tickets_handled"] == 2 ** len(Source) - 1


async def test_agents_are_found_by_a_part_of_their_name(sandbox: httpx.AsyncClient) -> None:
    for name in ("José 100% Sigap", "Made_Putra", "MADE Putra", "Zainal", r"Iluh \ Ade"):
        await make_agent(sandbox, name)

    async def names(text: str) -> list[str]:
        return [one["agent_name"] for one in await report(sandbox, agentName=text)]

    assert await names("%") == ["José 100% Sigap"]
    assert await names("_") == ["Made_Putra"]
    assert await names("mAdE") == ["MADE Putra", "Made_Putra"]
    assert await names("jose") == await names("JOSÉ") == ["José 100% Sigap"]
    assert await names("\\") == await names(r"H \  a") == [r"Iluh \ Ade"]
    assert await names("made\\") == await names("nobody") == []
    assert await names("a") == [r"Iluh \ Ade", "José 100% Sigap", "MADE Putra", "Made_Putra", "Zainal"]


@pytest.mark.parametrize(
    ("start_at", "end_at", "tickets"),
    [
        ("2026-03-02T09:00:00Z", "2026-03-02T09:00:00Z", 1),
        ("2026-03-02T10:00:00+01:00", "2026-03-02T04:30:00-04:30", 1),
        ("2026-03-02T09:00:00.000001Z", "2026-03-02T23:59:59Z", 0),
        ("2026-03-02T00:00:00Z", "2026-03-02T08:59:59.999999Z", 0),
        ("0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z", 1),
        ("0001-01-01T00:00:00Z", "0001-01-01T23:59:59Z", 0),
        ("9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z", 0),
    ],
)
async def test_a_sample_at_the_window_s_end_and_the_ends_of_time(
    sandbox: httpx.AsyncClient, database: Database, company: Environments, start_at: str, end_at: str, tickets: int
) -> None:
    sari = await make_agent(sandbox)
    await store(database, company.test, sample(sari))
    (one,) = await report(sandbox, startAt=start_at, endAt=end_at)
    assert one["tickets_handled"] == tickets
    samples = await sandbox.get(f"/analytics/agents/{sari}/samples", params={"startAt": start_at, "endAt": end_at})
    assert samples.json()["meta"]["total"] == tickets


async def test_an_agent_who_is_not_active_is_listed_with_data_only(
    sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    sari = await make_agent(sandbox)
    await store(database, company.test, sample(sari, Metric.RESPONSE, 60))
    assert (await sandbox.put(f"/agents/{sari}", json={"active": False})).status_code == 200
    assert [one["agent_id"] for one in await report(sandbox, **YEAR)] == [sari]
    assert await report(sandbox, startAt="2026-03-03T00:00:00Z", endAt="2026-03-04T00:00:00Z") == []


async def test_without_a_window_it_is_the_last_30_days_of_the_company_s_time(
    sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    sari = await make_agent(sandbox)
    await advance(sandbox, 40 * 86_400)
    now = datetime.now(UTC) + timedelta(days=40)
    ages = {"tkt_now": timedelta(), "tkt_old": timedelta(days=29, hours=23), "tkt_older": timedelta(days=30, hours=1)}
    await store(database, company.test, *(sample(sari, ticket_id=id, at=now - age) for id, age in ages.items()))
    (one,) = await report(sandbox)
    assert one["tickets_handled"] == 2
    (one,) = await report(sandbox, startAt=(now - timedelta(days=31)).isoformat())
    assert one["tickets_handled"] == 3
    (one,) = await report(sandbox, endAt=(now - timedelta(days=1)).isoformat())
    assert one["tickets_handled"] == 2


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"startAt": "soon"}, "startAt"),
        ({"startAt": "2026-02-29T00:00:00Z"}, "startAt"),
        ({"startAt": "2026-03-02"}, "startAt"),
        ({"endAt": "2026-03-02"}, "endAt"),
        ({"endAt": "2026-03-02T09:00:00"}, "endAt"),
        ({"startAt": "0001-01-01T00:00:00+07:00"}, "startAt"),
        ({"endAt": "9999-12-31T23:59:59-07:00"}, "endAt"),
        ({"startAt": "2026-03-02T09:00:01Z", "endAt": "2026-03-02T09:00:00Z"}, "startAt"),
        ({"channel": "MSGAPP_CLOUD"}, "channel"),
        ({"channel": "msgapp,mail"}, "channel"),
        ({"agentName": "  "}, "agentName"),
        ({"start_at": "2026-03-02"}, "start_at"),
    ],
)
async def test_an_invalid_query_is_refused(sandbox: httpx.AsyncClient, asked: dict[str, str], field: str) -> None:
    answer = await sandbox.get("/analytics/agents", params=asked)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["details"][0]["field"]) == (400, "VALIDATION_ERROR", field)


async def test_the_refusal_of_a_date_shows_the_form_that_is_accepted(sandbox: httpx.AsyncClient) -> None:
    for base, name in (("/analytics/agents", "startAt"), ("/messages/requests", "startDate")):
        error = (await sandbox.get(base, params={name: "2026-03-02"})).json()["error"]
        form = "must be an ISO 8601 date-time with an offset, such as 2026-01-31T09:30:00Z"
        assert error["details"] == [{"field": name, "message": form}]


async def test_an_empty_filter_is_no_filter(sandbox: httpx.AsyncClient) -> None:
    sari = await make_agent(sandbox)
    for name in ("agentName", "channel", "startAt", "endAt"):
        assert [one["agent_id"] for one in await report(sandbox, **{name: ""})] == [sari], name


async def test_samples_are_the_rows_behind_each_number(
    sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    sari, other = await make_agent(sandbox), await make_agent(sandbox, "Other")
    message = "0199a1f0-7c3e-7d52-9b1a-4e6f2c8d0a35"
    waits = [sample(sari, Metric.RESPONSE, n + 0.25, at=NINE + timedelta(minutes=n)) for n in range(25)]
    await store(database, company.test, *waits, sample(other, Metric.RESPONSE, 1))
    await store(database, company.test, sample(sari, source=Source.MAIL, ticket_id="tkt_m", message_id=message))
    path = f"/analytics/agents/{sari}/samples"

    async def read(**asked: Any) -> Json:
        answer = await sandbox.get(path, params={**YEAR, **asked})
        assert answer.status_code == 200, answer.text
        found: Json = answer.json()
        return found

    pages = [await read(metric="response", limit=10, page=page) for page in (1, 2, 3, 4)]
    assert [page["meta"]["total"] for page in pages] == [25] * 4
    assert [page["meta"]["hasNextPage"] for page in pages] == [True, True, False, False]
    rows = [row for page in pages for row in page["data"]]
    assert [row["seconds"] for row in rows] == [n + 0.25 for n in reversed(range(25))]
    (record,) = await report(sandbox, agentName="Sari", **YEAR)
    assert record["avg_response_time"] == "00:00:12"  # of 12.25 seconds
    (row,) = (await read(channel="mail"))["data"]
    assert isinstance(row.pop("id"), int)
    at = "2026-03-02T09:00:00.000Z"
    assert row == {
        "metric": "handled", "seconds": 0, "ticketId": "tkt_m", "cycle": 1, "source": "MAIL", "startedAt": at,
        "at": at, "messageId": message,
    }  # fmt: skip
    assert (await read(endAt="2026-03-02T09:03:00Z"))["meta"]["total"] == 5
    assert (await read())["meta"]["total"] == 26
    refused = await sandbox.get(path, params={"metric": "waiting"})
    assert (refused.status_code, refused.json()["error"]["details"][0]["field"]) == (400, "metric")


async def test_a_company_sees_its_own_agents_with_the_right_scope_only(
    installation: Installation, sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    sari = await make_agent(sandbox)
    await store(database, company.test, sample(sari))
    other = await make_company(database)
    for company_id in (company.live, other.test):
        key = await make_key(database, company_id, scopes=[Scope.ANALYTICS_READ])
        async with connect_messaging(installation, key.raw) as client:
            assert await report(client, **YEAR) == []
            assert (await client.get(f"/analytics/agents/{sari}/samples")).status_code == 404
    key = await make_key(database, company.test, scopes=[one for one in Scope if one != Scope.ANALYTICS_READ])
    async with connect_messaging(installation, key.raw) as client:
        for path in ("/analytics/agents", f"/analytics/agents/{sari}/samples"):
            answer = await client.get(path)
            assert (answer.status_code, answer.json()["error"]["code"]) == (403, "INSUFFICIENT_SCOPE")


async def test_ratings_count_for_the_agent_when_they_are_given(sandbox: httpx.AsyncClient) -> None:
    desk = Desk(sandbox)
    sari, dewi = await desk.create_agent("Sari"), await desk.create_agent("Dewi")
    for number, (agent, score) in enumerate([(sari, 4), (sari, 5), (sari, 5), (dewi, 2)]):
        await desk.rate(agent, score, f"+62812345670{number}")
    rated = await desk.get("/ratings", status="rated", agentId=sari)
    first, last = min(each["ratedAt"] for each in rated), max(each["ratedAt"] for each in rated)
    found = {record["agent_name"]: (record["average_rating"], record["ratings"]) for record in await report(sandbox)}
    assert found == {"Sari": (4.67, 3), "Dewi": (2, 1)}
    [_, one] = await report(sandbox, endAt=first)
    assert (one["average_rating"], one["ratings"]) == (4, 1)
    [_, none] = await report(sandbox, channel="mail")
    assert (none["average_rating"], none["ratings"]) == (None, 0)
    assert len(await desk.get("/ratings", ratedFrom=first, ratedTo=last, agentId=sari)) == 3
    assert [each["ratedAt"] for each in await desk.get("/ratings", ratedTo=first)] == [first]
    refused = await sandbox.get("/ratings", params={"ratedFrom": last, "ratedTo": "2020-01-01T00:00:00Z"})
    assert refused.json()["error"]["details"][0]["field"] == "ratedFrom"
    await sandbox.put(f"/agents/{dewi}", json={"active": False})
    assert [record["ratings"] for record in await report(sandbox)] == [1, 3], "who left is listed with what there is"
