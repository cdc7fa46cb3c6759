"""Retries, time-outs and errors of the Python SDK, behind a proxy that loses, refuses and delays."""

import asyncio
import pickle
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import httpx2
import pytest

from sapa_client import AsyncSapa, File, Sapa, errors
from sapa_client._resource import AsyncResource, Resource
from sapa_client._transport import AsyncTransport, Options, Request, Transport
from tests.conftest import Installation, free_port
from tests.http.wire import eventually
from tests.sdk.proxy import (
    FaultyProxy,
    Step,
    answer,
    answer_garbled,
    answer_page,
    drop,
    forward,
    forward_and_drop,
    stall,
)

BUSY = answer(503, "SERVICE_UNAVAILABLE", retry_after="1")
LIMITED = answer(429, "RATE_LIMIT_EXCEEDED", retry_after="7")
IN_PROGRESS = answer(409, "IDEMPOTENCY_IN_PROGRESS", retry_after="1")


class Waits(list[float]):
    """How long the client waited, without the waiting."""


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> Waits:
    waits = Waits()

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr("sapa_client._transport.time", type("Time", (), {"sleep": staticmethod(waits.append)}))
    monkeypatch.setattr("sapa_client._transport.asyncio", type("Asyncio", (), {"sleep": staticmethod(sleep)}))
    return waits


@pytest.fixture
async def through(proxy: FaultyProxy, key: str) -> AsyncIterator[Sapa]:
    with Sapa(key, base_url=proxy.address, timeout=120) as client:
        yield client


@pytest.fixture
async def async_through(proxy: FaultyProxy, key: str) -> AsyncIterator[AsyncSapa]:
    async with AsyncSapa(key, base_url=proxy.address, timeout=120) as client:
        yield client


FAULTS = [drop, forward_and_drop, BUSY, LIMITED, IN_PROGRESS, answer(500, "INTERNAL_ERROR"), answer_page(502)]
NAMES = ["dropped", "response lost", "busy", "limited", "in progress", "failed", "bad gateway"]


@pytest.mark.parametrize("fault", FAULTS, ids=NAMES)
def test_a_write_is_tried_again_and_happens_once(through: Sapa, proxy: FaultyProxy, waits: Waits, fault: Step) -> None:
    proxy.steps = [fault, fault]
    customer = through.customers.create(email="ayu@example.com")
    keys = [request["idempotency-key"] for request in proxy.requests]
    assert len(keys) == 3
    assert len(set(keys)) == 1
    assert len(waits) == 2
    assert [one.id for one in through.customers.list()] == [customer.id]


@pytest.mark.parametrize("fault", FAULTS, ids=NAMES)
async def test_an_awaited_write_is_tried_again_and_happens_once(
    async_through: AsyncSapa, proxy: FaultyProxy, waits: Waits, fault: Step
) -> None:
    proxy.steps = [fault, fault]
    customer = await async_through.customers.create(email="ayu@example.com")
    keys = [request["idempotency-key"] for request in proxy.requests]
    assert len(keys) == 3
    assert len(set(keys)) == 1
    assert len(waits) == 2
    assert [one.id async for one in async_through.customers.list()] == [customer.id]


def test_it_waits_as_long_as_the_server_says(through: Sapa, proxy: FaultyProxy, waits: Waits) -> None:
    proxy.steps = [LIMITED, BUSY]
    through.customers.list().page()
    assert waits == [7, 1]


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_it_waits_as_long_as_a_proxy_says(through: Sapa, proxy: FaultyProxy, waits: Waits, status: int) -> None:
    """A proxy answers with a page of its own, and may name a time instead of seconds."""
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    proxy.steps = [answer_page(status, retry_after=" 7 "), answer_page(status, retry_after=soon)]
    through.customers.list().page()
    assert waits[0] == 7
    assert 20 < waits[1] <= 30


NO_TIMES = [
    "",
    "-1",
    "soon",
    "1.5",
    "1e9",
    "NaN",
    "²",
    "Wed, 99 Foo 2026 99:00:00 GMT",
    "Wed, 21 Oct 99999999999999999999 07:28:00 GMT",
]


@pytest.mark.parametrize("word", NO_TIMES)
def test_a_wait_that_is_no_time_is_ignored(through: Sapa, proxy: FaultyProxy, waits: Waits, word: str) -> None:
    proxy.steps = [lambda handler: answer_page(503, retry_after=word.encode().decode("latin-1"))(handler)]
    through.customers.list().page()
    assert len(waits) == 1
    assert 0.25 <= waits[0] <= 0.5


def test_a_time_that_is_past_is_no_wait(through: Sapa, proxy: FaultyProxy, waits: Waits) -> None:
    proxy.steps = [answer_page(503, retry_after="Wed, 21 Oct 2015 07:28:00 GMT")]
    through.customers.list().page()
    assert waits == [0]


@pytest.mark.parametrize("word", ["61", "9" * 400, "Fri, 31 Dec 9999 23:59:59 GMT"])
def test_a_proxys_long_wait_is_left_to_the_caller(through: Sapa, proxy: FaultyProxy, waits: Waits, word: str) -> None:
    proxy.steps = [answer_page(503, retry_after=word)]
    with pytest.raises(errors.UnexpectedResponse) as caught:
        through.customers.list().page()
    assert caught.value.retry_after is not None
    assert caught.value.retry_after > 60
    assert waits == []


def test_a_garbled_response_is_tried_again(through: Sapa, proxy: FaultyProxy, waits: Waits) -> None:
    proxy.steps = [answer_garbled]
    assert through.customers.list().page().data == []
    proxy.steps = [answer_garbled] * 3
    with pytest.raises(errors.ConnectionFailed):
        through.customers.list().page()


def test_without_a_word_of_the_server_it_waits_longer_each_time(
    through: Sapa, proxy: FaultyProxy, waits: Waits
) -> None:
    proxy.steps = [drop] * 6
    through.with_options(max_retries=6).customers.list().page()
    bounds = [0.5, 1, 2, 4, 8, 8]
    assert all(bound / 2 <= wait <= bound for wait, bound in zip(waits, bounds, strict=True))


def test_a_long_wait_is_left_to_the_caller(through: Sapa, proxy: FaultyProxy, waits: Waits) -> None:
    proxy.steps = [answer(429, "RATE_LIMIT_EXCEEDED", retry_after="3600")]
    with pytest.raises(errors.RateLimitExceeded) as caught:
        through.customers.list().page()
    assert caught.value.retry_after == 3600
    assert waits == []


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (drop, errors.ConnectionFailed),
        (BUSY, errors.ServiceUnavailable),
        (LIMITED, errors.RateLimitExceeded),
        (answer_page(502), errors.UnexpectedResponse),
        (answer(418, "TEAPOT"), errors.ApiError),
        (answer(599, "NEW_CODE"), errors.ServerError),
    ],
)
def test_the_last_failure_is_raised(
    through: Sapa, proxy: FaultyProxy, waits: Waits, fault: Step, expected: type[Exception]
) -> None:
    proxy.steps = [fault] * 3
    with pytest.raises(expected):
        through.customers.list().page()


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 413, 415])
def test_what_cannot_succeed_is_not_tried_again(through: Sapa, proxy: FaultyProxy, waits: Waits, status: int) -> None:
    proxy.steps = [answer(status, "SOME_CODE"), forward]
    with pytest.raises(errors.ApiError) as caught:
        through.customers.create(email="ayu@example.com")
    assert (caught.value.status, caught.value.code) == (status, "SOME_CODE")
    assert len(proxy.requests) == 1


@pytest.mark.parametrize(("recipient", "retryable"), [("+12015550110", False), ("+12015550115", True)])
def test_a_providers_refusal_says_whether_to_try_again(
    through: Sapa, proxy: FaultyProxy, waits: Waits, recipient: str, retryable: bool
) -> None:
    """The simulator plays a number that nobody has, and one that got too many messages."""
    with pytest.raises(errors.SendFailed) as caught:
        through.messages.send(to=recipient, message="Halo", sources="MSGAPP_CLOUD")
    assert caught.value.details[0].retryable is retryable
    assert caught.value.details[0].category
    assert len(proxy.requests) == (3 if retryable else 1)


def test_a_slow_server_times_out(through: Sapa, proxy: FaultyProxy) -> None:
    proxy.steps = [stall]
    with pytest.raises(errors.TimedOut):
        through.with_options(timeout=0.3, max_retries=0).customers.list().page()


async def test_a_slow_server_times_out_in_asyncio(async_through: AsyncSapa, proxy: FaultyProxy) -> None:
    proxy.steps = [stall]
    with pytest.raises(errors.TimedOut):
        await async_through.with_options(timeout=0.3, max_retries=0).customers.list().page()


async def test_an_awaited_call_can_be_cancelled(async_through: AsyncSapa, proxy: FaultyProxy) -> None:
    async def arrived() -> bool | None:
        return bool(proxy.requests) or None

    proxy.steps = [stall]
    call = asyncio.create_task(async_through.customers.list().page())
    await eventually(arrived)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert (await async_through.customers.list().page()).data == []


def test_a_server_that_is_not_there(key: str) -> None:
    with Sapa(key, base_url=f"http://127.0.0.1:{free_port()}", max_retries=0) as client:
        with pytest.raises(errors.ConnectionFailed) as caught:
            client.customers.list().page()
        assert "127.0.0.1" in str(caught.value)


def test_a_call_has_the_idempotency_key_that_it_is_given(sapa: Sapa) -> None:
    first = sapa.customers.create(email="ayu@example.com", idempotency_key="signup-1042")
    again = sapa.customers.create(email="ayu@example.com", idempotency_key="signup-1042")
    assert again == first
    with pytest.raises(errors.IdempotencyKeyReused):
        sapa.customers.create(email="budi@example.com", idempotency_key="signup-1042")
    for wrong in ("", "order…", "a\nb", "k" * 256):
        with pytest.raises(ValueError, match="1 to 255 printable ASCII characters"):
            sapa.customers.create(email="budi@example.com", idempotency_key=wrong)


def test_errors_have_what_the_server_said(sapa: Sapa) -> None:
    customer = sapa.customers.create(email="ayu@example.com")
    with pytest.raises(errors.CustomerExists) as caught:
        sapa.customers.create(email="ayu@example.com")
    error = caught.value
    assert isinstance(error, errors.Conflict)
    assert (error.status, error.code) == (409, "CUSTOMER_EXISTS")
    assert error.details[0].id == customer.id
    assert error.request_id is not None
    assert error.request_id.startswith("req_")
    assert error.request_id in str(error)


@pytest.mark.parametrize("fault", [answer(429, "RATE_LIMIT_EXCEEDED", retry_after="61"), answer_page(404)])
def test_errors_travel_between_processes(through: Sapa, proxy: FaultyProxy, fault: Step) -> None:
    proxy.steps = [fault]
    with pytest.raises(errors.SapaError) as caught:
        through.customers.list().page()
    again = pickle.loads(pickle.dumps(caught.value))  # noqa: S301
    assert type(again) is type(caught.value)
    assert str(again) == str(caught.value)
    assert vars(again) == vars(caught.value)


def test_an_invalid_field_is_named(sapa: Sapa) -> None:
    with pytest.raises(errors.ValidationError) as caught:
        sapa.customers.create(email="not an address")
    assert caught.value.details[0].field == "email"


def test_a_wrong_key_is_refused(installation: Installation) -> None:
    with Sapa("svc_test_wrong", base_url=installation.address) as client:
        with pytest.raises(errors.InvalidApiKey):
            client.customers.list().page()
        with pytest.raises(errors.Unauthorized):
            client.shipments.list().page()


def test_a_page_of_another_program_is_no_answer(installation: Installation, key: str) -> None:
    with Sapa(key, base_url=f"{installation.address}/console", max_retries=0) as client:
        with pytest.raises(errors.UnexpectedResponse) as caught:
            client.customers.list().page()
        assert "base URL" in str(caught.value)


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        ({"api_key": "", "base_url": "https://sapa.example.com"}, "SAPA_API_KEY"),
        ({"api_key": "svc_test_…", "base_url": "https://sapa.example.com"}, "not whole"),
        ({"api_key": "svc_test_x"}, "SAPA_BASE_URL"),
        ({"api_key": "svc_test_x", "base_url": "sapa.example.com"}, "SAPA_BASE_URL"),
        ({"api_key": "svc_test_x", "base_url": "https://sapa.example.com/customer/v1/"}, "without /customer/v1"),
    ],
)
def test_a_client_says_what_it_lacks(monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], advice: str) -> None:
    monkeypatch.delenv("SAPA_API_KEY", raising=False)
    monkeypatch.delenv("SAPA_BASE_URL", raising=False)
    with pytest.raises(ValueError, match=advice):
        Sapa(**options)


def test_the_environment_names_key_and_server(
    installation: Installation, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SAPA_API_KEY", f"{key}\n")
    monkeypatch.setenv("SAPA_BASE_URL", f"{installation.address}/")
    with Sapa() as client:
        assert client.customers.list().page().data == []


def test_the_key_is_not_in_the_representation(key: str) -> None:
    client = Sapa(key, base_url="https://sapa.example.com")
    assert key not in repr(vars(client)) + repr(client._transport.options)


def serve_file(request: httpx2.Request) -> httpx2.Response:
    disposition = 'attachment; filename="costs 2026.csv"'
    return httpx2.Response(
        200, headers={"content-type": "text/csv", "content-disposition": disposition}, content=b"a,b"
    )


async def test_a_file_has_its_name_and_type() -> None:
    expected = File(b"a,b", "text/csv", "costs 2026.csv")
    transport = httpx2.MockTransport(serve_file)
    options = Options("svc_test_x", "http://sapa.test", None, 0, {})
    request = Request("GET", "/costs")
    assert Resource(Transport(options, httpx2.Client(transport=transport)))._download(request) == expected
    http = httpx2.AsyncClient(transport=transport)
    assert await AsyncResource(AsyncTransport(options, http))._download(request) == expected


async def test_a_file_that_the_server_still_makes_is_none() -> None:
    transport = httpx2.MockTransport(lambda request: httpx2.Response(202, json={"data": {"status": "pending"}}))
    options = Options("svc_test_x", "http://sapa.test", None, 0, {})
    request = Request("GET", "/labels")
    assert Resource(Transport(options, httpx2.Client(transport=transport)))._find_file(request) is None
    http = httpx2.AsyncClient(transport=transport)
    assert await AsyncResource(AsyncTransport(options, http))._find_file(request) is None


def test_threads_share_a_client(sapa: Sapa) -> None:
    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(lambda n: sapa.customers.create(email=f"c{n}@example.com").id, range(24)))
    assert {one.id for one in sapa.customers.list(limit=10)} == set(made)
    assert len(set(made)) == 24
