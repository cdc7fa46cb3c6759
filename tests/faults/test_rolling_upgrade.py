"""A release is followed by the next one, and comes back, under load: no call fails."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec import Struct

from sapa.db.pool import open_database
from tests.conftest import Installation
from tests.db.scratch import Scratch, connect, migrated_database
from tests.factories import make_company, make_key
from tests.faults.rolling import PRESENT, Balancer, Callers, Host, make_release, run_command

STEPS = (
    "SET LOCAL lock_timeout = '1s';\nALTER TABLE orders ADD COLUMN planted text;\n",
    "-- step: batches\n-- over: orders\nUPDATE orders SET planted = left(id, 8) WHERE {batch};\n",
    "-- step: concurrently\n"
    "CREATE INDEX CONCURRENTLY IF NOT EXISTS orders_planted_idx ON orders (company_id, planted);\n",
)

_COLUMNS = """
    SELECT column_name FROM information_schema.columns
     WHERE table_schema = 'public' AND table_name = 'orders' AND is_generated = 'NEVER'"""

pytestmark = pytest.mark.processes


class Site(Struct, frozen=True):
    """A database with a company, for hosts of any release."""

    scratch: Scratch
    company_id: int
    key: str
    environ: dict[str, str]


@pytest.fixture
async def site(installation: Installation) -> AsyncIterator[Site]:
    async with migrated_database(installation.server) as scratch:
        async with open_database(scratch.app_url, size=2) as database:
            company_id = (await make_company(database)).live
            key = (await make_key(database, company_id)).raw
        environ = {
            "SAPA_DATABASE_URL": scratch.app_url,
            "SAPA_DATABASE_OWNER_URL": scratch.owner_url,
            "SAPA_SECRET_KEY": installation.server.secret_key,
            "SAPA_PROCESSES": "1",
            "SAPA_DATABASE_WAIT": "30",
            "SAPA_DRAIN_SECONDS": "2",
        }
        yield Site(scratch, company_id, key, environ)


@pytest.mark.parametrize("orders", [2_000, pytest.param(1_000_000, marks=pytest.mark.long)])
@pytest.mark.timeout(1200)
async def test_no_call_fails_while_releases_change(site: Site, tmp_path: Path, orders: int) -> None:
    present, following = PRESENT.parent, make_release(tmp_path / "following", *STEPS)
    balancer = Balancer()
    callers = Callers(f"http://127.0.0.1:{balancer.port}/customer/v1", site.key)

    async def start(release: Path) -> Host:
        host = Host(release, site.environ, tmp_path / "api.log")
        await balancer.add(host)
        return host

    async with balancer.running():
        try:
            first = await start(present)
            async with callers.calling():
                await callers.go_on()
                await multiply_orders(site, orders)
                output = await run_command(following, site.environ, ["migrate"])
                assert output.count("applied ") == len(STEPS)
                await callers.go_on()
                for release in (following, present):  # the release before runs on the new schema: one may go back
                    next_host = await start(release)
                    assert await first.stop() == 0
                    balancer.hosts.remove(first)
                    await callers.go_on()
                    first = next_host
        finally:
            for host in balancer.hosts:
                host.kill()
    assert callers.failures == []
    async with connect(site.scratch.owner_url) as owner:
        assert await owner.fetchval("SELECT count(*) FROM orders WHERE planted = left(id, 8)") >= orders
        assert await owner.fetchval("SELECT indisvalid FROM pg_index WHERE indexrelid = 'orders_planted_idx'::regclass")


async def multiply_orders(site: Site, number: int) -> None:
    """Copies one of them."""
    async with connect(site.scratch.owner_url) as owner:
        columns = [row[0] for row in await owner.fetch(_COLUMNS)]
        own = {"id", "order_id", "order_number"}
        values = [f"'ord_' || lpad(n::text, 26, '0') AS {name}" if name in own else name for name in columns]
        await owner.execute(
            f"INSERT INTO orders ({', '.join(columns)}) SELECT {', '.join(values)}"
            f"  FROM (SELECT * FROM orders LIMIT 1) AS one, generate_series(1, {number}) AS n"
        )
        await owner.execute("ANALYZE orders")
