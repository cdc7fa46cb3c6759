"""A release is followed by the next one, and comes back, under load: no call fails."""

from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
from msgspec import Struct

from sapa.db.pool import open_database
from tests.conftest import Installation
from tests.db.scratch import Scratch, connect, migrated_database, scratch_database
from tests.factories import make_company, make_key
from tests.faults.rolling import (
    PRESENT,
    Balancer,
    Callers,
    Host,
    make_release,
    run_command,
    unpack_earlier_release,
)

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
    key: str
    environ: dict[str, str]


def build_environ(installation: Installation, scratch: Scratch) -> dict[str, str]:
    return {
        "SAPA_DATABASE_URL": scratch.app_url,
        "SAPA_DATABASE_OWNER_URL": scratch.owner_url,
        "SAPA_SECRET_KEY": installation.server.secret_key,
        "SAPA_PROCESSES": "1",
        "SAPA_DATABASE_WAIT": "30",
        "SAPA_DRAIN_SECONDS": "2",
    }


@pytest.fixture
async def site(installation: Installation) -> AsyncIterator[Site]:
    async with migrated_database(installation.server) as scratch:
        async with open_database(scratch.app_url, size=2) as database:
            key = (await make_key(database, (await make_company(database)).live)).raw
        yield Site(scratch, key, build_environ(installation, scratch))


@pytest.mark.parametrize("orders", [2_000, pytest.param(1_000_000, marks=pytest.mark.long)])
@pytest.mark.timeout(1200)
async def test_no_call_fails_while_releases_change(site: Site, tmp_path: Path, orders: int) -> None:
    following = make_release(tmp_path / "following", *STEPS)
    applied = await change_releases(site, PRESENT.parent, following, orders, tmp_path)
    assert applied == len(STEPS)
    async with connect(site.scratch.owner_url) as owner:
        assert await owner.fetchval("SELECT count(*) FROM orders WHERE planted = left(id, 8)") >= orders
        assert await owner.fetchval("SELECT indisvalid FROM pg_index WHERE indexrelid = 'orders_planted_idx'::regclass")


@pytest.mark.long
@pytest.mark.timeout(1800)
async def test_no_call_fails_while_this_release_follows_the_one_before(
    installation: Installation, tmp_path: Path
) -> None:
    """The code before the newest migration, which made the database and has served it so far."""
    before = unpack_earlier_release(tmp_path)
    if before is None:
        pytest.skip("the repository's history is not at hand")
    async with scratch_database(installation.server) as scratch:
        environ = build_environ(installation, scratch)
        await run_command(before, environ, ["migrate"])
        company = msgspec.json.decode(await run_command(before, environ, ["company", "create", "Toko", "--json"]))
        naming = ["--name", "load", "--all-scopes", "--rate-limit", "1000000", "--json"]
        key = await run_command(before, environ, ["key", "create", "--company", str(company["liveCompanyId"]), *naming])
        site = Site(scratch, msgspec.json.decode(key)["key"], environ)
        assert await change_releases(site, before, PRESENT.parent, 1_000_000, tmp_path) >= 1


async def change_releases(site: Site, before: Path, after: Path, orders: int, folder: Path) -> int:
    """The next release migrates under load, and takes over; then the one before comes back, on the new schema.
    Returns how many migrations were applied."""
    balancer = Balancer()
    callers = Callers(f"http://127.0.0.1:{balancer.port}/customer/v1", site.key)

    async def start(release: Path) -> Host:
        host = Host(release, site.environ, folder / "api.log")
        await balancer.add(host)
        return host

    async with balancer.running():
        try:
            first = await start(before)
            async with callers.calling():
                await callers.go_on()
                await multiply_orders(site, orders)
                output = await run_command(after, site.environ, ["migrate"])
                await callers.go_on()
                for release in (after, before):
                    next_host = await start(release)
                    assert await first.stop() == 0
                    balancer.hosts.remove(first)
                    await callers.go_on()
                    first = next_host
        finally:
            for host in balancer.hosts:
                host.kill()
    assert callers.failures == []
    print(f"{callers.calls} calls with {orders} orders, none of them failed")
    return output.count("applied ")


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
