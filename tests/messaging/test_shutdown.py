"""Shutdown while a provider is called: the outcome is stored before the process ends."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import httpx

from sapa.db.pool import Database
from tests.conftest import Installation, free_port
from tests.factories import Environments, make_key
from tests.http.wire import eventually
from tests.messaging.channels.peer import Peer, open_peer
from tests.messaging.provider import NUMBER_SENT
from tests.messaging.send_steps import build_message
from tests.messaging.whatsapp_account import build_change, build_text, connect_whatsapp


@asynccontextmanager
async def api_process(installation: Installation, peer: Peer) -> AsyncIterator[tuple[subprocess.Popen[bytes], str]]:
    """`sapa api` on the installation's database, with the provider at the peer's address."""
    address = f"http://127.0.0.1:{(port := free_port())}"
    variables = {
        "SAPA_DATABASE_URL": installation.server.app_url,
        "SAPA_SECRET_KEY": installation.server.secret_key,
        "SAPA_UPSTREAM_MSGAPP_CLOUD": peer.address,
        "SAPA_PROCESSES": "1",
        "SAPA_DRAIN_SECONDS": "0",
        "SAPA_PORT": str(port),
    }
    process = start_api(variables)
    try:
        await eventually(lambda: is_ready(address))
        yield process, address
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def start_api(variables: dict[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "sapa", "api"], env={**os.environ, **variables})


async def is_ready(address: str) -> bool | None:
    async with httpx.AsyncClient(timeout=120) as client:
        with suppress(httpx.TransportError):
            return (await client.get(f"{address}/readyz")).status_code == 200 or None
    return None


async def is_closed(address: str) -> bool | None:
    async with httpx.AsyncClient(timeout=120) as client:
        try:
            await client.get(f"{address}/healthz")
        except httpx.ConnectError:
            return True
        except httpx.TransportError:
            pass
    return None


async def test_the_outcome_of_a_send_in_flight_is_stored_before_the_process_ends(
    installation: Installation, database: Database, company: Environments
) -> None:
    key = (await make_key(database, company.live)).raw
    hook = connect_whatsapp(installation, company.live)
    await hook.send_change(build_change(build_text("628123456789", at=int(time.time()))))
    async with open_peer() as peer, api_process(installation, peer) as (process, address):
        peer.answers = [(200, NUMBER_SENT)]
        headers = {"x-api-key": key}
        async with httpx.AsyncClient(base_url=f"{address}/messaging/v1", headers=headers, timeout=120) as client:

            async def window_is_open() -> bool | None:
                answer = await client.post("/messages/send", json=build_message())
                return answer.status_code == 200 or None

            await eventually(window_is_open)
            peer.requests.clear()
            peer.opens.clear()
            caller = asyncio.create_task(client.post("/messages/send", json=build_message()))
            await eventually(lambda: is_asked(peer))
            caller.cancel()
            with suppress(asyncio.CancelledError):
                await caller
        process.terminate()
        await eventually(lambda: is_closed(address))
        # A process that does not wait has ended by now.
        await asyncio.sleep(2)
        peer.opens.set()
        assert await asyncio.to_thread(process.wait, 30) == 0
    async with database.connection() as db:
        statuses = await db.fetch(
            "SELECT status FROM messages WHERE company_id = $1 AND direction = 'out'", company.live
        )
    assert {row[0] for row in statuses} == {"sent"}


async def is_asked(peer: Peer) -> bool | None:
    return bool(peer.requests) or None
