"""Faults of a whole cluster under load, as a table: python -m tests.cluster [ROUNDS], as root, in a network namespace.

`make test-cluster` installs what it needs and starts it so.
"""

import asyncio
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.table import Table

from sapa import wiring
from sapa.db.pool import Database, open_database
from sapa.runtime.processes import wait_until
from sapa.values.sealing import Vault
from tests.cluster.cluster import BALANCER, HERE, PATIENCE, Cluster, open_cluster
from tests.factories import make_company, make_endpoint, make_key
from tests.faults.traffic import Traffic
from tests.webhooks.shop import Shop, open_shop

WATCHED_SECONDS = 10
"""From when writes are back until what failed is repaired."""
RETURN_SECONDS = 15
"""At most, from a promotion until writes are back."""
LAST_LINES = 20
"""Of each log, when something fails."""

Fault = Callable[[Cluster, str], Awaitable[None]]
"""Happens to the cluster, whose primary has this name."""


async def kill_postgres(cluster: Cluster, primary: str) -> None:
    await cluster.kill_postgres(primary)


async def lose_power(cluster: Cluster, primary: str) -> None:
    cluster.hosts[primary].lose_power()


async def unplug(cluster: Cluster, primary: str) -> None:
    cluster.hosts[primary].unplug()


async def switch_over(cluster: Cluster, primary: str) -> None:
    await cluster.switch_over(primary)


async def lose_sapa(cluster: Cluster, primary: str) -> None:
    """An API host and a worker."""
    cluster.hosts["api2"].lose_power()
    cluster.hosts["worker1"].lose_power()


async def repair(cluster: Cluster, fault: Fault, primary: str) -> None:
    if fault is lose_power:
        cluster.start_database(primary)
    elif fault is unplug:
        cluster.hosts[primary].plug_in()
    elif fault is lose_sapa:
        cluster.start_sapa("api2", "api")
        cluster.start_sapa("worker1", "worker")


FAULTS: dict[str, Fault] = {
    "PostgreSQL of the primary killed": kill_postgres,
    "primary's host without power": lose_power,
    "primary's host unplugged": unplug,
    "switchover": switch_over,
    "API host and worker without power": lose_sapa,
}


class Rounds:
    def __init__(self, cluster: Cluster, database: Database, company_id: int, key: str, shop: Shop) -> None:
        self._cluster = cluster
        self._database = database
        self._company_id = company_id
        self._key = key
        self._shop = shop
        self._traffic = Traffic(has_balancer=True)
        self.table = Table(
            "fault", "round", "pause (s)", "after the promotion (s)", "acknowledged", "lost", "doubled", "refused",
            "webhooks missing",
        )  # fmt: skip
        self.is_well = True

    async def run(self, name: str, fault: Fault, number: int) -> None:
        traffic, cluster = self._traffic, self._cluster
        before, refused = len(traffic.acknowledged), traffic.unavailable + traffic.cut
        assert await wait_until(cluster.has_synchronous_standby, PATIENCE)
        async with traffic.flowing_to(f"http://{BALANCER}/customer/v1", self._key):
            await traffic.grows(50)
            primary = await cluster.find_primary() or ""
            began = time.monotonic()
            if fault is lose_sapa:
                await fault(cluster, primary)
                promoted = None
            else:
                _, promoted = await asyncio.gather(fault(cluster, primary), cluster.wait_for_promotion(primary))
            await traffic.grows(50)
            await asyncio.sleep(WATCHED_SECONDS)
            await repair(cluster, fault, primary)
            assert await wait_until(cluster.is_whole, PATIENCE, every=1), "a database host did not come back"
            await traffic.grows(50)
        returned = traffic.measure_return(promoted) if promoted else 0
        lost, doubled, missing = await self._reckon()
        self.is_well = self.is_well and not (lost or doubled or missing or traffic.odd) and returned <= RETURN_SECONDS
        self.table.add_row(
            name, str(number), f"{traffic.measure_pause(began):.1f}", f"{returned:.1f}" if promoted else "–",
            str(len(traffic.acknowledged) - before), str(lost), str(doubled),
            str(traffic.unavailable + traffic.cut - refused), str(missing),
        )  # fmt: skip

    async def _reckon(self) -> tuple[int, int, int]:
        async with self._database.connection() as db:
            stored = await db.fetch("SELECT email, id FROM customers WHERE company_id = $1", self._company_id)
            events = await db.fetch("SELECT id, resource_id FROM events WHERE company_id = $1", self._company_id)
        ids = {row["email"]: row["id"] for row in stored}
        lost = sum(1 for email, id in self._traffic.acknowledged.items() if ids.get(email) != id)
        resources = Counter(event["resource_id"] for event in events)
        doubled = len(stored) - len(ids) + sum(count - 1 for count in resources.values())
        unrecorded = sum(1 for row in stored if row["id"] not in resources)

        def list_missing() -> set[str]:
            return {row["id"] for row in events} - {arrival.event_id for arrival in self._shop.arrivals}

        await wait_until(lambda: not list_missing(), PATIENCE)
        return lost, doubled, len(list_missing()) + unrecorded


async def main(folder: Path, rounds: int) -> bool:
    wiring.install()
    async with (
        open_cluster(folder) as cluster,
        open_shop(host=HERE) as shop,
        open_database(cluster.app_url, size=3, application="onlooker") as database,
    ):
        company = await make_company(database)
        key = (await make_key(database, company.live)).raw
        await make_endpoint(database, Vault(cluster.secret_key), company.live, shop.url)
        measured = Rounds(cluster, database, company.live, key, shop)
        try:
            for number in range(1, rounds + 1):
                for name, fault in FAULTS.items():
                    print(f"{name}, round {number}", flush=True)
                    await measured.run(name, fault, number)
        finally:
            Console(width=140).print(measured.table)
        return measured.is_well


def run(rounds: int) -> bool:
    with TemporaryDirectory(prefix="sapa-cluster-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        try:
            return asyncio.run(main(folder, rounds))
        except BaseException:
            for log in sorted(folder.glob("*/*.log")):
                print(f"--- {log.relative_to(folder)}", *log.read_text().splitlines()[-LAST_LINES:], sep="\n")
            raise


if __name__ == "__main__":
    sys.exit(0 if run(int(sys.argv[1]) if len(sys.argv) > 1 else 1) else 1)
