"""Ordinary traffic, first quiet, then beside strangers who attack: `make soak`.

Prints what callers saw in both halves, the product's memory minute by minute, and what was lost. Exits with 1 when p99
is more than twice its quiet value, memory grows, or anything is lost. Needs a machine without other work.
"""

import asyncio
import random
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

import httpx
import psutil
from msgspec import Struct, field

from sapa.db.pool import Database, open_database
from sapa.values.sealing import Vault
from tests.cli.command import sapa
from tests.conftest import Installation, start_installation, stop_installation
from tests.factories import Environments, make_company, make_endpoint, make_key
from tests.http.wire import eventually
from tests.webhooks.shop import Shop, open_shop

CALLS_PER_SECOND = 20
QUIET_SHARE = 0.25
"""Of the time, before the attacks begin."""
EVENTS = ["customer.created", "order.created"]
MAX_SLOWER = 2.0
MAX_GROWTH = 1.1
ACCOUNT = ["--set", "smtp_host=mail.shop.example", "--set", "address=halo@shop.example"]
SETTLE_SECONDS = 120


class Phase(Struct):
    """What callers saw in one part of the soak."""

    name: str
    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    failures: list[str] = field(default_factory=list)

    @property
    def all_seconds(self) -> list[float]:
        return sorted(each for times in self.seconds.values() for each in times)

    @property
    def p99(self) -> float:
        times = self.all_seconds
        return times[len(times) * 99 // 100]

    def describe(self) -> str:
        times = self.all_seconds
        calls = ", ".join(f"{name} {len(each)}" for name, each in self.seconds.items())
        speed = f"p50 {median(times) * 1000:.1f} ms, p99 {self.p99 * 1000:.1f} ms"
        return f"{self.name}: {len(times)} calls ({calls}), {speed}, {len(self.failures)} failed"


class Traffic:
    """Callers who begin a call every 50 ms, whether or not earlier ones were answered."""

    def __init__(self, live: httpx.AsyncClient, test: httpx.AsyncClient) -> None:
        self._live = live
        self._test = test
        self.customers: list[str] = []
        self.orders: list[str] = []
        self.messages: list[str] = []
        self._calls: dict[str, Callable[[], Awaitable[httpx.Response]]] = {
            "get": self._get,
            "list": self._list,
            "create": self.create,
            "order": self._order,
            "send": self._send,
        }

    async def run(self, phase: Phase, seconds: float) -> None:
        started, under_way = time.monotonic(), set()
        for number in range(int(seconds * CALLS_PER_SECOND)):
            await asyncio.sleep(max(0.0, started + number / CALLS_PER_SECOND - time.monotonic()))
            (name,) = random.choices(list(self._calls), weights=[8, 4, 4, 2, 2])
            task = asyncio.create_task(self._call(phase, name))
            under_way.add(task)
            task.add_done_callback(under_way.discard)
        await asyncio.gather(*under_way)

    async def _call(self, phase: Phase, name: str) -> None:
        started = time.monotonic()
        try:
            response = await self._calls[name]()
        except httpx.HTTPError as error:
            phase.failures.append(f"{name}: {error!r}")
            return
        phase.seconds[name].append(time.monotonic() - started)
        if response.status_code >= 300:
            phase.failures.append(f"{name}: {response.status_code} {response.text[:200]}")

    async def _get(self) -> httpx.Response:
        return await self._live.get(f"/customer/v1/customers/{random.choice(self.customers)}")

    async def _list(self) -> httpx.Response:
        return await self._live.get("/customer/v1/customers", params={"limit": 20})

    async def create(self) -> httpx.Response:
        return await self._made("/customer/v1/customers", {"email": f"{uuid4().hex}@example.com"}, self.customers)

    async def _order(self) -> httpx.Response:
        body: dict[str, Any] = {
            "customerId": random.choice(self.customers),
            "lineItems": [{"title": "Kopi", "quantity": 1, "price": 25000}],
        }
        return await self._made("/customer/v1/orders", body, self.orders)

    async def _made(self, path: str, body: dict[str, Any], made: list[str]) -> httpx.Response:
        response = await self._live.post(path, json=body)
        if response.status_code == 201:
            made.append(response.json()["data"]["id"])
        return response

    async def _send(self) -> httpx.Response:
        body = {"to": f"+628{random.randrange(10**9, 10**10)}", "message": "Halo"}
        response = await self._test.post("/messaging/v1/messages/send", json=body)
        if response.status_code == 200:
            self.messages.append(response.json()["data"]["messageId2"])
        return response


class Memory:
    """Of all processes of the product, without PostgreSQL's shared buffers."""

    def __init__(self, installation: Installation) -> None:
        self._process = psutil.Process(installation.process.pid)
        self.megabytes: list[float] = []

    async def watch(self) -> None:
        while True:
            await asyncio.sleep(60)
            self.megabytes.append(self._measure())

    def _measure(self) -> float:
        total = 0
        for process in [self._process, *self._process.children(recursive=True)]:
            try:
                total += process.memory_full_info().uss
            except psutil.Error:
                continue
        return total / 1_048_576


async def soak(installation: Installation, minutes: float) -> int:
    async with open_database(installation.server.app_url, size=2) as database, open_shop() as shop:
        company = await make_company(database)
        vault = Vault(installation.server.secret_key)
        await make_endpoint(database, vault, company.live, f"{shop.url}/hook", EVENTS)
        live, test = [
            httpx.AsyncClient(base_url=installation.address, headers={"x-api-key": key.raw}, timeout=120)
            for key in (await make_key(database, company.live), await make_key(database, company.test))
        ]
        traffic, memory = Traffic(live, test), Memory(installation)
        for _ in range(50):
            await traffic.create()
        watching = asyncio.create_task(memory.watch())
        quiet, attacked = Phase("quiet"), Phase("beside attacks")
        await traffic.run(quiet, minutes * 60 * QUIET_SHARE)
        attack_seconds = minutes * 60 * (1 - QUIET_SHARE)
        attackers = start_attacks(installation, company, attack_seconds)
        await traffic.run(attacked, attack_seconds)
        watching.cancel()
        print(quiet.describe(), attacked.describe(), sep="\n")
        print(f"attacks: {(await asyncio.to_thread(attackers.communicate, timeout=300))[0].strip()}")
        print("memory (USS, MB) by minute:", " ".join(f"{each:.0f}" for each in memory.megabytes))
        lost = await list_lost(database, company, traffic, shop)
        for line in (*quiet.failures[:5], *attacked.failures[:5], *lost):
            print(line)
        await live.aclose()
        await test.aclose()
    is_good = not (quiet.failures or attacked.failures or lost)
    return int(not (is_good and attacked.p99 <= MAX_SLOWER * quiet.p99 and is_flat(memory.megabytes)))


def start_attacks(installation: Installation, company: Environments, seconds: float) -> subprocess.Popen[str]:
    connect = [
        "channel",
        "connect",
        "--company",
        str(company.live),
        "--source",
        "MAIL",
        "--no-check",
        "--json",
        *ACCOUNT,
    ]
    hook = "/hooks/" + sapa(installation.data, *connect).json()["hookUrl"].partition("/hooks/")[2]
    port = installation.address.rpartition(":")[2]
    command = [sys.executable, "-m", "tests.faults.soak_attacks", port, installation.metrics, hook, str(seconds)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def is_flat(megabytes: list[float]) -> bool:
    """The last third is not above the third before it by more than a tenth."""
    third = len(megabytes) // 3
    return third == 0 or median(megabytes[-third:]) <= MAX_GROWTH * median(megabytes[-2 * third : -third])


async def list_lost(database: Database, company: Environments, traffic: Traffic, shop: Shop) -> list[str]:
    """What was acknowledged and is not stored, or was not delivered."""
    lost = []
    async with database.connection() as db:
        for table, company_id, made in (
            ("customers", company.live, traffic.customers),
            ("orders", company.live, traffic.orders),
            ("messages", company.test, traffic.messages),
        ):
            rows = await db.fetch(f"SELECT id FROM {table} WHERE company_id = $1", company_id)
            if missing := set(made) - {str(row[0]) for row in rows}:
                lost.append(f"{len(missing)} {table} lost")
        events = await db.fetch("SELECT id FROM events WHERE company_id = $1 AND kind = ANY($2)", company.live, EVENTS)
    wanted = {row[0] for row in events}
    with suppress(TimeoutError):
        await eventually(partial(has_all, shop, wanted), SETTLE_SECONDS)
    if missing := wanted - {arrival.event_id for arrival in shop.arrivals}:
        lost.append(f"{len(missing)} of {len(wanted)} deliveries did not arrive")
    counts = f"{len(traffic.customers)} customers, {len(traffic.orders)} orders, {len(traffic.messages)} messages"
    print(f"made: {counts}; {len(wanted)} events")
    return lost


async def has_all(shop: Shop, wanted: set[str]) -> bool | None:
    return wanted <= {arrival.event_id for arrival in shop.arrivals} or None


def main(minutes: float) -> int:
    with TemporaryDirectory() as folder:
        installation = start_installation(
            Path(folder) / "data", SAPA_TRUSTED_PROXIES="127.0.0.1", SAPA_WEBHOOK_ALLOW_INSECURE="1"
        )
        try:
            return asyncio.run(soak(installation, minutes))
        finally:
            stop_installation(installation)


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]) if len(sys.argv) > 1 else 20))
