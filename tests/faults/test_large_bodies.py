"""Strangers who send large bodies do not fill the memory of a process."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest

from sapa.db.pool import Database
from sapa.messaging.channels.interface import Source
from sapa.sandbox.channels.accounts import build_hook_token
from tests.conftest import Installation
from tests.factories import Environments, make_key
from tests.faults.api_servers import ApiServer, run_api
from tests.faults.large_bodies import send_large, send_many_large
from tests.messaging.shop_site import build_test_context

MEGABYTE = 1_048_576
SIZE = 31 * MEGABYTE
CONNECTIONS = 20
MAX_GROWTH = 20 * MEGABYTE
UNKNOWN = f"hook_1_{43 * 'a'}"


class Memory:
    """The most that a process held while it was watched."""

    def __init__(self, process: psutil.Process) -> None:
        self._process = process
        self.before = self.peak = process.memory_info().rss

    @contextmanager
    def watched(self) -> Iterator[None]:
        is_over = threading.Event()

        def watch() -> None:
            while not is_over.wait(0.005):
                self.peak = max(self.peak, self._process.memory_info().rss)

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            yield
        finally:
            is_over.set()
            watcher.join()


@pytest.fixture(scope="module")
def server(installation: Installation) -> Iterator[ApiServer]:
    with run_api(installation) as running:
        for _ in range(3):  # what a process keeps from its first requests is not what bodies cost
            send_many_large(running.port, f"/hooks/channels/{UNKNOWN}", MEGABYTE, CONNECTIONS, {})
        yield running


@pytest.mark.long
async def test_bodies_of_strangers_are_not_kept(
    installation: Installation, database: Database, company: Environments, server: ApiServer
) -> None:
    context = build_test_context(installation, database)
    key = (await make_key(database, company.live)).raw
    widget_key = build_hook_token(context, company.test, Source.WIDGET)
    attacks = {
        f"/hooks/channels/{UNKNOWN}": {},
        f"/hooks/channels/{widget_key}": {},
        "/hooks/carriers/unknown": {},
        "/widget/v1/sessions": {"x-widget-key": widget_key, "content-type": "application/json"},
        "/customer/v1/customers": {"x-api-key": key, "content-type": "application/json"},
        "/customer/v1/imports": {"x-api-key": "svc_live_unknown", "content-type": "text/csv"},
        "/console/sign-in": {"content-type": "application/x-www-form-urlencoded"},
        "/nowhere": {},
    }
    (process,) = server.workers
    for path, headers in attacks.items():
        memory = Memory(process)
        with memory.watched():
            statuses = send_many_large(server.port, path, SIZE, CONNECTIONS, headers)
        assert memory.peak - memory.before < MAX_GROWTH, path
        assert all(status == 0 or 400 <= status < 500 for status in statuses), path


@pytest.mark.parametrize(
    ("source", "most"),
    [
        (Source.MSGAPP_CLOUD, 4 * MEGABYTE),
        (Source.SOCIAL_NETWORK, 4 * MEGABYTE),
        (Source.PHOTO_SOCIAL, 4 * MEGABYTE),
        (Source.SHORT_VIDEO, MEGABYTE),
        (Source.MAIL, 32 * MEGABYTE),
    ],
)
def test_each_channel_has_its_own_limit(
    installation: Installation, database: Database, company: Environments, server: ApiServer, source: Source, most: int
) -> None:
    path = "/hooks/channels/" + build_hook_token(build_test_context(installation, database), company.test, source)
    assert send_large(server.port, path, most, {}) == 401  # read, and not signed
    assert send_large(server.port, path, most + 1, {}) == 413
