"""Calls that lead outside: stored before and after, claimed once, and recorded when they are refused."""

import asyncio
from collections.abc import AsyncIterator
from uuid import uuid4

import httpx
import pytest
from msgspec import Struct
from structlog.testing import capture_logs

from sapa.access.types import Scope
from sapa.context import AppContext
from sapa.db.due import add_interval
from sapa.db.pool import Database, Tx
from sapa.http.endpoints import Base, Routes
from sapa.http.errors import ApiError, Conflict
from sapa.http.idempotency import LONGEST_OUTBOUND_CALL_SECONDS
from sapa.http.outbound_call import OutboundCall, RequestInfo
from sapa.http.responses import Accepted
from sapa.values.company import Company
from tests.conftest import Installation
from tests.factories import Environments, make_key
from tests.http.probe import open_app


class Parcel(Struct, frozen=True):
    """What the post office answers with."""

    state: str


class ParcelIn(Struct, frozen=True, forbid_unknown_fields=True):
    """What the post office takes."""

    to: str


class PostOffice:
    """The outside party, and what became known of the calls."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.is_busy = asyncio.Event()
        self.opens = asyncio.Event()
        self.opens.set()
        self.refusals: list[tuple[RequestInfo, str]] = []
        self.has_ink = True

    async def send(self, to: str) -> None:
        self.sent.append(to)
        self.is_busy.set()
        await self.opens.wait()


def build_routes(office: PostOffice) -> Routes:
    routes = Routes("/parcels", base=Base.CUSTOMER, tag="Parcels")

    async def record(context: AppContext, company: Company, request: RequestInfo, error: ApiError) -> None:
        if not office.has_ink:
            raise RuntimeError("no ink")
        office.refusals.append((request, error.code))

    @routes.post("", scope=Scope.ORDERS_WRITE, status=200, raises=(Conflict,), recorder=record)
    async def send_parcel(call: OutboundCall, body: ParcelIn) -> Parcel | Accepted[Parcel]:
        """Send one."""

        async def intend(tx: Tx) -> Parcel:
            return Parcel("intended")

        async def conclude(tx: Tx) -> Parcel | Accepted[Parcel]:
            return Accepted(Parcel("unclear")) if body.to == "far away" else Parcel("sent")

        await call.intend(intend)
        await office.send(body.to)
        if body.to == "nowhere":
            raise Conflict("There is no such place.")
        return await call.conclude(conclude)

    @routes.post("/price", scope=Scope.ORDERS_READ, status=200)
    async def ask_price(call: OutboundCall, body: ParcelIn) -> Parcel:
        """Ask what one costs: nothing is intended."""
        await office.send(body.to)
        return Parcel(f"price {len(office.sent)}")

    return routes


@pytest.fixture
def office() -> PostOffice:
    return PostOffice()


@pytest.fixture
async def post(
    installation: Installation, database: Database, company: Environments, office: PostOffice
) -> AsyncIterator[httpx.AsyncClient]:
    key = await make_key(database, company.live)
    async with open_app(installation, [build_routes(office)]) as client:
        client.headers["x-api-key"] = key.raw
        yield client


@pytest.fixture
async def post_elsewhere(
    installation: Installation, post: httpx.AsyncClient, office: PostOffice
) -> AsyncIterator[httpx.AsyncClient]:
    """Another process, as far as waiting for one another goes."""
    async with open_app(installation, [build_routes(office)]) as client:
        client.headers["x-api-key"] = post.headers["x-api-key"]
        yield client


async def send(client: httpx.AsyncClient, to: str, once: str | None = None) -> httpx.Response:
    return await client.post("/parcels", json={"to": to}, headers={"idempotency-key": once} if once else {})


async def test_the_outcome_is_the_response(post: httpx.AsyncClient) -> None:
    assert (await send(post, "Bandung")).json() == {"data": {"state": "sent"}}


async def test_an_unknown_outcome_is_a_202(post: httpx.AsyncClient) -> None:
    response = await send(post, "far away")
    assert (response.status_code, response.json()) == (202, {"data": {"state": "unclear"}})


async def test_a_repeated_call_replays_the_outcome_and_sends_nothing(
    post: httpx.AsyncClient, office: PostOffice
) -> None:
    once = uuid4().hex
    first, second = await send(post, "far away", once), await send(post, "far away", once)
    assert (second.status_code, second.content) == (first.status_code, first.content)
    assert second.headers["idempotency-replayed"] == "true"
    assert office.sent == ["far away"]


async def test_a_repeated_call_in_another_process_waits_for_the_outcome(
    post: httpx.AsyncClient, post_elsewhere: httpx.AsyncClient, office: PostOffice
) -> None:
    once = uuid4().hex
    office.opens.clear()
    first = asyncio.create_task(send(post, "Bandung", once))
    await office.is_busy.wait()
    second = asyncio.create_task(send(post_elsewhere, "Bandung", once))
    await asyncio.sleep(0.5)
    assert not second.done()
    office.opens.set()
    answers = await asyncio.gather(first, second)
    assert [response.json() for response in answers] == [{"data": {"state": "sent"}}] * 2
    assert office.sent == ["Bandung"]


async def test_a_question_is_asked_once_for_a_key(post: httpx.AsyncClient, office: PostOffice) -> None:
    once = {"idempotency-key": uuid4().hex}
    answers = [await post.post("/parcels/price", json={"to": "Bandung"}, headers=once) for _ in range(2)]
    assert [response.json()["data"]["state"] for response in answers] == ["price 1", "price 1"]
    assert answers[1].headers["idempotency-replayed"] == "true"
    other = await post.post("/parcels/price", json={"to": "Medan"}, headers=once)
    assert other.json()["error"]["code"] == "IDEMPOTENCY_KEY_REUSED"
    assert office.sent == ["Bandung"]


async def test_a_refusal_frees_the_key(post: httpx.AsyncClient, office: PostOffice) -> None:
    once = uuid4().hex
    assert [(await send(post, "nowhere", once)).status_code for _ in range(2)] == [409, 409]
    assert office.sent == ["nowhere"] * 2


async def test_the_same_key_with_another_body_is_refused_also_while_the_first_is_under_way(
    post: httpx.AsyncClient, post_elsewhere: httpx.AsyncClient, office: PostOffice
) -> None:
    once = uuid4().hex
    office.opens.clear()
    first = asyncio.create_task(send(post, "Bandung", once))
    await office.is_busy.wait()
    assert (await send(post_elsewhere, "Medan", once)).json()["error"]["code"] == "IDEMPOTENCY_KEY_REUSED"
    office.opens.set()
    assert (await first).status_code == 200


async def test_after_a_crash_on_the_way_a_retry_gets_an_unknown_outcome_and_sends_nothing(
    installation: Installation, database: Database, company: Environments, post: httpx.AsyncClient, office: PostOffice
) -> None:
    """What a killed process leaves: the claim with its promise, and nobody who will settle it."""
    once = uuid4().hex
    office.opens.clear()
    first = asyncio.create_task(send(post, "Bandung", once))
    await office.is_busy.wait()
    async with database.transaction() as tx:
        await tx.execute(
            f"UPDATE idempotency_records SET created_at = {add_interval('created_at', 'make_interval(secs => $3)')}"
            " WHERE company_id = $1 AND key = $2",
            company.live, once, -LONGEST_OUTBOUND_CALL_SECONDS,
        )  # fmt: skip
    async with open_app(installation, [build_routes(office)]) as other:
        other.headers["x-api-key"] = post.headers["x-api-key"]
        response = await send(other, "Bandung", once)
    assert (response.status_code, response.json()) == (202, {"data": {"state": "intended"}})
    assert office.sent == ["Bandung"]
    office.opens.set()
    await first


async def test_a_call_runs_to_its_end_when_the_caller_disconnects(post: httpx.AsyncClient, office: PostOffice) -> None:
    once = uuid4().hex
    office.opens.clear()
    first = asyncio.create_task(send(post, "Bandung", once))
    await office.is_busy.wait()
    first.cancel()
    await asyncio.wait([first])
    repeated = asyncio.create_task(send(post, "Bandung", once))
    office.opens.set()
    assert (await repeated).json() == {"data": {"state": "sent"}}
    assert office.sent == ["Bandung"]


@pytest.mark.parametrize(
    ("body", "query", "code"),
    [
        (b'{"to": "nowhere"}', "", "CONFLICT"),
        (b'{"to": "Bandung"}', "?a=1&a=2&b=", "VALIDATION_ERROR"),
        (b"{", "", "VALIDATION_ERROR"),
    ],
)
async def test_refused_calls_are_recorded_as_they_came(
    post: httpx.AsyncClient, office: PostOffice, body: bytes, query: str, code: str
) -> None:
    headers = {
        "content-type": "application/json",
        "x-forwarded-for": "203.0.113.7, 10.0.0.1",
        "x-own": "Own",
    }
    await post.post(f"/parcels{query}", content=body, headers=headers)
    ((request, recorded),) = office.refusals
    assert recorded == code
    assert (request.body, request.method, request.path, request.base_url) == (
        body,
        "POST",
        "/customer/v1/parcels",
        "/customer/v1",
    )
    assert request.query == ({"a": ["1", "2"], "b": ""} if query else {})
    assert request.forwarded == ["203.0.113.7", "10.0.0.1"]
    assert (request.hostname, request.headers["x-own"]) == ("probe", "Own")


async def test_calls_without_the_right_are_not_recorded(
    database: Database, company: Environments, post: httpx.AsyncClient, office: PostOffice
) -> None:
    key = await make_key(database, company.live, scopes=[Scope.ORDERS_READ])
    post.headers["x-api-key"] = key.raw
    assert (await send(post, "Bandung")).status_code == 403
    assert office.refusals == []


async def test_a_call_from_a_closed_address_is_not_recorded(
    database: Database, company: Environments, post: httpx.AsyncClient, office: PostOffice
) -> None:
    key = await make_key(database, company.live, allow_list=["192.0.2.1"])
    post.headers["x-api-key"] = key.raw
    assert (await send(post, "Bandung")).status_code == 403
    assert office.refusals == []


async def test_a_record_that_cannot_be_stored_does_not_replace_the_refusal(
    post: httpx.AsyncClient, office: PostOffice
) -> None:
    office.has_ink = False
    with capture_logs() as lines:
        answers = [await send(post, "nowhere"), await post.post("/parcels", json={"from": "here"})]
    assert [response.status_code for response in answers] == [409, 400]
    failures = [line for line in lines if line["log_level"] == "error"]
    assert [line["request_id"] for line in failures] == [response.headers["x-request-id"] for response in answers]
    assert {str(line["exc_info"]) for line in failures} == {"no ink"}
