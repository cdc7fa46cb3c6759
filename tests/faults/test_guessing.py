"""While strangers guess passwords, people sign in from browsers that are known, and the process stays small."""

import asyncio
from collections.abc import Iterator

import httpx
import pytest
from argon2 import PasswordHasher

from sapa.db.pool import Database
from tests.conftest import TLS, Installation
from tests.console.people import PASSWORD, make_person, sign_in
from tests.factories import Environments, make_key
from tests.faults.api_servers import ApiServer, run_api
from tests.faults.guessing import guess

GUESSERS = 60
MEGABYTE = 1_048_576
MAX_GROWTH = 250 * MEGABYTE
"""A hash takes 64 MiB: one of a stranger's and one of a known browser's, and what else 60 requests take."""


@pytest.fixture(scope="module")
def server(installation: Installation) -> Iterator[ApiServer]:
    with run_api(installation, SAPA_TRUSTED_PROXIES="127.0.0.1") as running:
        yield running


@pytest.mark.long
async def test_a_known_browser_gets_in_while_strangers_guess(
    database: Database, company: Environments, server: ApiServer
) -> None:
    email = await make_person(database, company)
    async with database.connection() as db:
        await db.execute("UPDATE users SET password_hash = $2 WHERE email = $1", email, PasswordHasher().hash(PASSWORD))
    key = (await make_key(database, company.live)).raw
    console, stop = f"{server.address}/console", asyncio.Event()
    (process,) = server.workers
    before = peak = process.memory_info().rss
    async with httpx.AsyncClient(base_url=console, timeout=120, verify=TLS) as own:
        assert (await sign_in(own, email)).status_code == 303
        own.cookies.delete("sapa_session")
        attack = asyncio.create_task(guess(console, email, GUESSERS, stop))
        try:
            for _ in range(20):
                await asyncio.sleep(0.1)
                peak = max(peak, process.memory_info().rss)
                called = await own.get(f"{server.address}/customer/v1/customers", headers={"x-api-key": key})
                assert called.status_code == 200
            for _ in range(3):
                assert (await sign_in(own, email)).status_code == 303
                own.cookies.delete("sapa_session")
                peak = max(peak, process.memory_info().rss)
        finally:
            stop.set()
            statuses = await attack
    assert set(statuses) <= {401, 429, 503}
    assert statuses[401] <= 110  # the account's limit, over all networks; other windows may have begun meanwhile
    assert statuses[429] + statuses[503] > 0
    assert peak - before < MAX_GROWTH
