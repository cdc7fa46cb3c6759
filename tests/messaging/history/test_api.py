"""The records of calls: content, search, retention."""

import random
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from structlog.testing import capture_logs

from sapa.access import actions as access
from sapa.access.types import KeyProduct, Scope
from sapa.db.counters import fold
from sapa.db.pool import Database, open_database
from sapa.domains import ROUTES, build_jobs
from sapa.messaging.history import queries
from sapa.messaging.history.queries import (
    EARLIEST,
    LATEST,
    NewRecord,
    RecordFilter,
)
from sapa.messaging.history.types import RECORD_ID
from sapa.settings import read_settings
from tests.conftest import Installation
from tests.db.scratch import Scratch, connect, migrated_database
from tests.factories import Environments, make_company, make_key
from tests.http.probe import open_app
from tests.messaging.conftest import connect_messaging
from tests.messaging.send_steps import (
    BUTTONS,
    NUMBER,
    build_message,
    list_records,
    make_template,
    send,
)

Json = dict[str, Any]


async def test_a_record_holds_the_raw_call(
    installation: Installation, database: Database, company: Environments
) -> None:
    key = (await make_key(database, company.test)).raw
    numbers = b'{"n": 1.0, "big": 12345678901234567890}'
    body = b'{"to": "+628123456789",\n "message": "Halo \xe2\x98\x95", "metadata": %s}' % numbers
    headers = {"content-type": "application/json", "x-forwarded-for": "203.0.113.7, 10.0.0.1", "x-own": "Own"}
    async with connect_messaging(installation, key) as client:
        answer = await client.post("/messages/send", content=body, headers=headers)
        assert answer.status_code == 200, answer.text
        listed = await client.get("/messages/requests")
        (record,) = listed.json()["data"]
    assert numbers in listed.content
    request = record["request"]
    assert request["ip"] == "127.0.0.1"
    assert request["ips"] == ["203.0.113.7", "10.0.0.1"]
    assert (request["query"], request["baseUrl"], request["hostname"]) == ({}, "/messaging/v1", "127.0.0.1")
    assert (request["headers"]["x-api-key"], request["headers"]["x-own"]) == (key, "Own")
    assert (record["companyId"], record["response"]["data"]) == (company.test, answer.json()["data"])


READER: list[str] = [Scope.MESSAGES_READ]
SENDER: list[str] = [Scope.MESSAGES_READ, Scope.MESSAGES_WRITE]


async def read_headers(installation: Installation, key: str) -> list[dict[str, str]]:
    """The headers of the records as this key sees them, the newest first."""
    async with connect_messaging(installation, key) as client:
        return [record["request"]["headers"] for record in (await list_records(client))["data"]]


async def test_a_key_with_more_rights_is_masked(
    installation: Installation, database: Database, company: Environments
) -> None:
    owner = (await make_key(database, company.test)).raw
    sender = (await make_key(database, company.test, scopes=SENDER)).raw
    for key in (owner, sender):
        async with connect_messaging(installation, key) as client:
            copies = {"authorization": f"Bearer {key}", "x-copy": key}
            await client.post("/messages/send", json=build_message(), headers=copies)

    async def read(scopes: list[str], products: list[str]) -> list[str]:
        reader = await make_key(database, company.test, scopes=scopes, products=products)
        records = await read_headers(installation, reader.raw)
        assert [headers["x-copy"] for headers in records] == [sender, owner], "nothing else is masked"
        assert [headers["authorization"] for headers in records] == [f"Bearer {sender}", f"Bearer {owner}"]
        return [headers["x-api-key"] for headers in records]

    masked = [f"svc_test_…{key[-4:]}" for key in (sender, owner)]
    assert await read(READER, list(KeyProduct)) == masked
    assert await read(SENDER, list(KeyProduct)) == [sender, masked[1]]
    assert await read(SENDER, []) == masked
    assert await read(list(Scope), list(KeyProduct)) == [sender, owner]
    assert [headers["x-api-key"] for headers in await read_headers(installation, sender)] == [sender, masked[1]]


async def test_a_recorded_key_is_judged_by_its_rights_of_today(
    installation: Installation, database: Database, company: Environments
) -> None:
    reader = await make_key(database, company.test, scopes=READER)
    revoked, expired, unknown, working = [await make_key(database, company.test) for _ in range(4)]
    async with database.transaction() as tx:
        rotated = await access.rotate_key(tx, working.id)
    for key in (revoked, expired, unknown, working):
        async with connect_messaging(installation, key.raw) as client:
            await send(client)
    async with database.transaction() as tx:
        await access.revoke_key(tx, revoked.id)
        await tx.execute("UPDATE api_keys SET expires_at = now() - interval '1 second' WHERE id = $1", expired.id)
        await tx.execute("UPDATE api_keys SET hash = sha256(hash) WHERE id = $1", unknown.id)
    shown = [headers["x-api-key"] for headers in await read_headers(installation, reader.raw)]
    assert shown == [f"svc_test_…{working.raw[-4:]}", unknown.raw, expired.raw, revoked.raw]
    async with database.transaction() as tx:
        await tx.execute("UPDATE api_keys SET scopes = $2 WHERE id = $1", working.id, list(READER))
        await tx.execute("UPDATE api_keys SET products = '{}' WHERE id = $1", working.id)
    shown = [headers["x-api-key"] for headers in await read_headers(installation, reader.raw)]
    assert shown[0] == working.raw
    assert rotated.key not in shown


async def test_records_are_sealed_in_the_database(
    installation: Installation, database: Database, company: Environments
) -> None:
    key = (await make_key(database, company.test)).raw
    async with connect_messaging(installation, key) as client:
        await send(client, message="a secret errand")
    async with database.connection() as db:
        (sealed,) = await db.fetch("SELECT snapshot FROM api_requests WHERE company_id = $1", company.test)
    assert key.encode() not in sealed[0]
    assert b"secret" not in sealed[0]


@pytest.mark.parametrize(
    ("path", "content", "kind"),
    [
        ("/messages/send", b"{", "send_message"),
        ("/messages/send", b'"text"', "send_message"),
        ("/messages/send-template", b'{"template_name": "order_update", "sources": ["mail"]}', "send_message_template"),
        ("/messages/send-media", b"\xff\xfe", "send_message_media"),
        ("/messages/send-interactive", b"[" * 5000, "send_message_interactive"),
        ("/messages/send?page=1", b"{}", "send_message"),
    ],
)
async def test_calls_that_cannot_be_read_are_recorded_too(
    sandbox: httpx.AsyncClient, path: str, content: bytes, kind: str
) -> None:
    answer = await sandbox.post(path, content=content, headers={"content-type": "application/json"})
    assert answer.status_code == 400
    (record,) = (await list_records(sandbox))["data"]
    assert (record["endpointType"], record["messageId2"]) == (kind, None)
    assert record["response"] == answer.json()
    assert record["failedAt"] == record["createdAt"]
    has_template = b"order_update" in content
    assert (record["templateId"], record["source"]) == (("order_update", "MAIL") if has_template else (None, None))


async def test_calls_from_a_closed_address_and_those_without_the_scope_are_not_recorded(
    installation: Installation, database: Database, company: Environments, sandbox: httpx.AsyncClient
) -> None:
    closed = await make_key(database, company.test, allow_list=["192.0.2.1"])
    reader = await make_key(database, company.test, scopes=[Scope.MESSAGES_READ])
    for key, code in ((closed, "IP_NOT_ALLOWED"), (reader, "INSUFFICIENT_SCOPE")):
        async with connect_messaging(installation, key.raw) as client:
            answer = await client.post("/messages/send", json=build_message())
            assert answer.json()["error"]["code"] == code
    assert (await list_records(sandbox))["data"] == []


async def test_a_body_of_another_content_type_is_recorded_raw(sandbox: httpx.AsyncClient) -> None:
    answer = await sandbox.post("/messages/send", content=b"to=%2B628", headers={"content-type": "text/plain"})
    assert answer.status_code == 415
    (record,) = (await list_records(sandbox))["data"]
    assert record["request"]["body"] == "to=%2B628"


async def test_filters(sandbox: httpx.AsyncClient) -> None:
    await make_template(sandbox, body="Halo")
    message = await send(sandbox)
    body = {"to": NUMBER, "sources": "MSGAPP_CLOUD", "template_name": "order_update"}
    template = (await sandbox.post("/messages/send-template", json=body)).json()["data"]
    await sandbox.post("/messages/send-interactive", json={"to": "x", "interactive": BUTTONS})
    everything = (await list_records(sandbox))["data"]
    assert [record["endpointType"] for record in everything] == [
        "send_message_interactive",
        "send_message_template",
        "send_message",
    ]
    first = everything[-1]["createdAt"]
    for params, count in (
        ({"responseId": message["messageId2"]}, 1),
        ({"responseId": message["messageId"]}, 1),
        ({"responseId": "unknown"}, 0),
        ({"templateId": "order_update"}, 1),
        ({"templateId": "order"}, 0),
        ({"responseId": template["messageId2"], "templateId": "order_update"}, 1),
        ({"responseId": message["messageId2"], "templateId": "order_update"}, 0),
        ({"startDate": first}, 3),
        ({"startDate": first, "endDate": first}, 1),
        ({"endDate": first}, 1),
        ({"endDate": "2020-01-01T00:00:00Z"}, 0),
        ({"startDate": "9999-12-31T23:59:59Z"}, 0),
        ({"startDate": "0001-01-01T00:00:00Z", "endDate": "9999-12-31T23:59:59Z"}, 3),
        ({"templateId": "order_update", "startDate": first}, 1),
        ({"responseId": message["messageId2"], "endDate": "2020-01-01T00:00:00Z"}, 0),
    ):
        found = await list_records(sandbox, **params)
        assert (found["meta"]["total"], len(found["data"])) == (count, count), params


async def test_pages_and_their_meta(sandbox: httpx.AsyncClient) -> None:
    sent = [(await send(sandbox))["messageId2"] for _ in range(5)]
    seen = []
    for page, expected in ((1, (True, False)), (2, (True, True)), (3, (False, True)), (4, (False, True))):
        found = await list_records(sandbox, limit=2, page=page)
        seen += [record["messageId2"] for record in found["data"]]
        meta = found["meta"]
        assert (meta["page"], meta["limit"], meta["total"], meta["totalPages"]) == (page, 2, 5, 3)
        assert (meta["hasNextPage"], meta["hasPreviousPage"]) == expected
    assert seen == sent[::-1]
    empty = (await list_records(sandbox, templateId="none"))["meta"]
    assert (empty["total"], empty["totalPages"], empty["hasNextPage"], empty["hasPreviousPage"]) == (0, 0, False, False)


@pytest.mark.parametrize(
    "query",
    [
        "startDate=yesterday", "endDate=2026-01-31", "startDate=2026-13-01T00:00:00Z", "startDate=2026-01-31T09:30:00",
        "page=0", "page=-1", "page=x", "limit=0", "limit=101", "limit=", "page=", "search=x",
        "page=1&page=2", "startDate=2026-01-31T09:30:01Z&endDate=2026-01-31T09:30:00Z",
    ],
)  # fmt: skip
async def test_an_invalid_filter_is_refused(sandbox: httpx.AsyncClient, query: str) -> None:
    answer = await sandbox.get(f"/messages/requests?{query}")
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "VALIDATION_ERROR")


@pytest.mark.parametrize(
    "query",
    [
        "limit=1", "limit=100", "page=1000000", "startDate=2026-01-31T09:30:00%2B07:00",
        "startDate=2026-01-31T09:30:00Z&endDate=2026-01-31T09:30:00Z", "responseId=&templateId=&startDate=&endDate=",
    ],
)  # fmt: skip
async def test_values_at_the_bounds_are_accepted(sandbox: httpx.AsyncClient, query: str) -> None:
    assert (await sandbox.get(f"/messages/requests?{query}")).status_code == 200


async def test_another_company_s_records_are_not_seen(sandbox: httpx.AsyncClient, live: httpx.AsyncClient) -> None:
    message = await send(sandbox)
    assert (await list_records(live))["meta"]["total"] == 0
    assert (await list_records(live, responseId=message["messageId2"]))["data"] == []


@pytest.fixture(scope="module")
async def scratch(installation: Installation) -> AsyncIterator[Scratch]:
    async with migrated_database(installation.server) as created:
        yield created


@pytest.fixture(scope="module")
async def quiet(scratch: Scratch) -> AsyncIterator[Database]:
    async with open_database(scratch.app_url) as database:
        yield database


async def store(database: Database, company_id: int, at: datetime, template: str | None, now: datetime) -> None:
    async with database.transaction() as tx:
        new = NewRecord(now, RECORD_ID.new(), at, None, template, None, "send_message", at, b"")
        await queries.insert_record(tx, company_id, new)


def edge(random_: random.Random, now: datetime) -> datetime:
    """An instant at, just before, just after or between the records."""
    hour = now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=random_.randrange(60))
    within = timedelta(seconds=random_.randrange(3600))
    return hour + random_.choice([timedelta(0), timedelta(milliseconds=-1), timedelta(milliseconds=1), within])


async def test_totals_and_pages_are_exact_for_every_window(quiet: Database) -> None:
    """Compared with counting and sorting all records, for windows with arbitrary ends."""
    company, other = await make_company(quiet), await make_company(quiet)
    rng, now = random.Random(7), datetime.now(UTC).replace(microsecond=0)
    records = [(edge(rng, now), rng.choice([None, "a", "b"])) for _ in range(400)]
    for at, template in records:
        await store(quiet, company.live, at, template, now)
    await store(quiet, other.live, now, "a", now)
    for round_ in range(3):
        for _ in range(40):
            wanted = RecordFilter(rng.choice([None, "a", "b", "c"]), edge(rng, now), edge(rng, now))
            await compare(quiet, company.live, records, wanted, rng)
        for template in (None, "a"):
            await compare(quiet, company.live, records, RecordFilter(template, EARLIEST, LATEST), rng)
        if round_ == 0:
            await fold(quiet)
        else:
            await store(quiet, company.live, now, "a", now)
            records.append((now, "a"))


async def compare(
    database: Database,
    company_id: int,
    records: list[tuple[datetime, str | None]],
    wanted: RecordFilter,
    rng: random.Random,
) -> None:
    fitting = sorted(
        (at for at, template in records
         if wanted.since <= at <= wanted.until and wanted.template_id in {None, template}),
        reverse=True,
    )  # fmt: skip
    async with database.connection() as db:
        assert await queries.count_records(db, company_id, wanted) == len(fitting), wanted
        offset = rng.randrange(len(fitting) + 3)
        shallow = await queries.list_records(db, company_id, wanted, 5, offset)
        place = await queries.seek(db, company_id, wanted, offset)
        deep = shallow if place is None else await queries.list_records(db, company_id, place[0], 5, place[1])
    assert [datetime.fromisoformat(record.created_at) for record in shallow] == fitting[offset : offset + 5]
    assert deep == shallow[: len(deep)]
    assert len(deep) == len(shallow)


@pytest.mark.parametrize("months", [12, 5])
async def test_old_months_are_purged_with_their_totals(scratch: Scratch, quiet: Database, months: int) -> None:
    """As many months as the operator configures."""
    settings = read_settings({"SAPA_HISTORY_MONTHS": str(months)})
    keep_partitions = next(job.run for job in build_jobs(settings) if job.name == "keep partitions")
    company = await make_company(quiet)
    now = datetime.now(UTC)
    this_month = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    retained = (this_month - timedelta(days=30 * months - 30)).replace(day=1)
    expired = (this_month - timedelta(days=31 * months + 10)).replace(day=1)
    async with connect(scratch.owner_url) as owner:
        for month in (retained, expired):
            following = (month + timedelta(days=32)).replace(day=1)
            await owner.execute(
                f"CREATE TABLE IF NOT EXISTS api_requests_{month:%Y%m} PARTITION OF api_requests"
                f" FOR VALUES FROM ('{month.isoformat()}') TO ('{following.isoformat()}')"
            )
    for at in (now, retained, expired, expired - timedelta(days=90)):
        await store(quiet, company.live, at, "a", at)
    for is_folded in (False, True):
        if is_folded:
            await fold(quiet)
        await keep_partitions(quiet)
        async with quiet.connection() as db:
            for template in (None, "a"):
                wanted = RecordFilter(template, EARLIEST, LATEST)
                assert await queries.count_records(db, company.live, wanted) == 2
                assert len(await queries.list_records(db, company.live, wanted, 10, 0)) == 2
            tables = {
                row[0] for row in await db.fetch("SELECT relname FROM pg_class WHERE relname LIKE 'api_requests_2%'")
            }
    assert f"api_requests_{expired:%Y%m}" not in tables
    assert f"api_requests_{now:%Y%m}" in tables


async def test_only_tables_partitioned_by_month_can_be_purged(quiet: Database) -> None:
    async with quiet.connection() as db:
        with pytest.raises(Exception, match="not partitioned by month"):
            await db.execute("SELECT keep_month_partitions('messages', 1, 1)")


async def test_an_invalid_send_is_a_400_without_a_secret_key_too(
    installation: Installation, database: Database, company: Environments
) -> None:
    key = await make_key(database, company.test)
    async with open_app(installation, ROUTES) as client:
        with capture_logs() as lines:
            answer = await client.post(
                "http://probe/messaging/v1/messages/send", json={"to": 1}, headers={"x-api-key": key.raw}
            )
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "VALIDATION_ERROR")
    (line,) = [line for line in lines if line["log_level"] == "error"]
    assert line["request_id"] == answer.headers["x-request-id"]
