"""No point lost, none doubled: what the callers were told, what the ledger has, and what it says of itself."""

import asyncio
import sys
from asyncio.subprocess import PIPE

from bench.ground import Ground
from bench.loyalty.callers import Told
from bench.loyalty.owner import Connection

WRITTEN = """
    SELECT w.customer_id, w.available, count(e.id) AS entries, coalesce(sum(e.points_delta), 0)::bigint AS points
      FROM loyalty_wallets w
      LEFT JOIN loyalty_entries e ON e.company_id = w.company_id AND e.wallet_id = w.id
     WHERE w.company_id = $1 AND w.customer_id = ANY($2)
     GROUP BY w.customer_id, w.available"""


async def check_points(ground: Ground, db: Connection, company_id: int, told: Told) -> None:
    """Raises when anything differs."""
    rows = await db.fetch(WRITTEN, company_id, list(told.entries))
    for customer, available, entries, points in rows:
        expected = told.points[customer], told.points[customer], told.entries[customer]
        if (available, points, entries) != expected:
            found = available, points, entries
            raise RuntimeError(f"{customer} should have {expected}: available, points, entries; and has {found}")
    if len(rows) != len(told.entries):
        raise RuntimeError(f"{len(told.entries)} customers had points, and {len(rows)} wallets are there")
    await reconcile(ground, company_id)


async def reconcile(ground: Ground, company_id: int) -> None:
    """`sapa loyalty reconcile`, which fails when anything contradicts."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "sapa", "loyalty", "reconcile", "--company", str(company_id),
        stdout=PIPE, stderr=PIPE, env=ground.environment,
    )  # fmt: skip
    try:
        output, errors = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise RuntimeError(f"the ledger contradicts itself: {output.decode()}{errors.decode()[-2000:]}")
