"""The text of /metrics: kept for two seconds, rendered in a thread, on the API's address only with a token."""

import asyncio
import threading
import time

import pytest

from sapa.http import metrics_page
from sapa.http.metrics_page import CACHE_SECONDS, PAUSE_SECONDS, MetricsPage, is_bearer
from tests.conftest import Installation
from tests.http.probe import open_app

TOKEN = "a-token-of-some-length"


class Source:
    """Counts how often the page is rendered."""

    def __init__(self) -> None:
        self.reads = 0

    async def collect(self) -> bytes:
        self.reads += 1
        return f"reads {self.reads}\n".encode()


async def test_many_readers_get_one_rendering_for_two_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.monotonic()
    monkeypatch.setattr(metrics_page, "PAUSE_SECONDS", 0)
    monkeypatch.setattr(metrics_page.time, "monotonic", lambda: now)  # type: ignore[attr-defined]
    source = Source()
    page = MetricsPage(source.collect)
    texts = await asyncio.gather(*(page.read() for _ in range(50)))
    assert source.reads == 1
    assert len(set(texts)) == 1
    now += CACHE_SECONDS - 0.01
    await page.read()
    assert source.reads == 1
    now += 0.02
    assert (await page.read()).endswith(b"reads 2\n")


async def test_it_is_rendered_beside_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[int] = []

    def render(_: object) -> bytes:
        threads.append(threading.get_ident())
        return b""

    monkeypatch.setattr(metrics_page, "generate_latest", render)
    monkeypatch.delenv("PROMETHEUS_MULTIPROC_DIR", raising=False)
    await MetricsPage(Source().collect).read()
    assert len(threads) == 1
    assert threads[0] != threading.get_ident()


async def test_readers_take_turns() -> None:
    """So that any number of them costs the process no more than twenty answers a second."""
    page = MetricsPage(Source().collect)
    started = time.monotonic()
    await asyncio.gather(*(page.read() for _ in range(10)))
    assert time.monotonic() - started >= 10 * PAUSE_SECONDS


@pytest.mark.parametrize(
    ("authorization", "is_accepted"),
    [
        (f"Bearer {TOKEN}", True),
        (f"bearer  {TOKEN}", True),
        (TOKEN, False),
        (f"Basic {TOKEN}", False),
        (f"Bearer {TOKEN}x", False),
        ("Bearer", False),
        ("", False),
        ("Bearer päss", False),
    ],
)
def test_the_token_is_a_bearer_token(authorization: str, is_accepted: bool) -> None:
    assert is_bearer(authorization, TOKEN) is is_accepted


async def test_without_a_token_the_api_s_address_has_no_metrics(installation: Installation) -> None:
    async with open_app(installation, []) as client:
        for headers in ({}, {"authorization": f"Bearer {TOKEN}"}, {"authorization": "Bearer "}):
            for method in ("GET", "POST"):
                response = await client.request(method, "http://probe/metrics", headers=headers)
                assert (response.status_code, response.json()["error"]["code"]) == (404, "NOT_FOUND")


async def test_with_a_token_the_api_s_address_has_metrics_for_its_bearer_only(installation: Installation) -> None:
    async with open_app(installation, [], SAPA_METRICS_TOKEN=TOKEN) as client:
        for headers in ({}, {"authorization": f"Bearer {TOKEN[:-1]}"}, {"authorization": f"Basic {TOKEN}"}):
            response = await client.get("http://probe/metrics", headers=headers)
            assert (response.status_code, response.json()["error"]["code"]) == (404, "NOT_FOUND")
        response = await client.get("http://probe/metrics", headers={"authorization": f"Bearer {TOKEN}"})
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/plain")
    assert "sapa_database_up 1.0" in response.text
