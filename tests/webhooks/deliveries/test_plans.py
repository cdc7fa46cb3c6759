"""Which deliveries a list reads: those that wait, those that are settled, or both."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from sapa.db.pool import Database
from sapa.values.sealing import Vault
from sapa.webhooks.deliveries import queries
from sapa.webhooks.types import DeliveryStatus
from tests.conftest import Installation
from tests.factories import Environments, make_endpoint

WAITING = {DeliveryStatus.PENDING, DeliveryStatus.RETRYING, DeliveryStatus.HELD}


def list_read(plan: dict[str, Any]) -> Iterator[str]:
    """The tables that were looked into."""
    if plan.get("Relation Name") and plan["Actual Loops"]:
        yield plan["Relation Name"]
    for part in plan.get("Plans", ()):
        yield from list_read(part)


@pytest.mark.parametrize("status", [None, *DeliveryStatus])
@pytest.mark.parametrize("mode", ["force_custom_plan", "force_generic_plan"])
async def test_a_list_by_status_reads_only_deliveries_that_can_have_it(
    installation: Installation, database: Database, company: Environments, status: DeliveryStatus | None, mode: str
) -> None:
    """With the plan of one call, and with the one that is made once for all."""
    statement = queries.LIST_UNDELIVERED if status in {"failed", "skipped"} else queries.LIST_OF_COMPANY
    types = "bigint, text, text, text, text, text, text, bigint, text"
    chosen = f"'{status}'" if status else "NULL"
    values = f"{company.live}, '~', 'whd_0000000000', NULL, NULL, NULL, {chosen}, 21, '1970-01-01T00:00:00+00:00'"
    await make_endpoint(database, Vault(installation.server.secret_key), company.live)
    async with database.transaction() as tx:
        await tx.execute(f"SET LOCAL plan_cache_mode = {mode}")
        await tx.execute(f"PREPARE listed ({types}) AS {statement.text}")
        plan = await tx.fetchval(f"EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE listed ({values})")
        await tx.execute("DEALLOCATE listed")
    read = set(list_read(msgspec.json.decode(plan)[0]["Plan"]))
    assert ("webhook_queue" in read) == (status is None or status in WAITING)
    assert any(table.startswith("webhook_attempts") for table in read) == (status not in WAITING)
