"""Records and corrects samples, in the transaction of their cause."""

from collections import Counter
from collections.abc import Sequence

from sapa.db.pool import Tx
from sapa.support.samples import queries, tallies
from sapa.support.samples.types import Sample


async def record(tx: Tx, company_id: int, samples: Sequence[Sample]) -> None:
    """Adds samples; existing ones are not added again."""
    if samples:
        await tallies.add(tx, company_id, await queries.insert_samples(tx, company_id, samples))


async def replace(
    tx: Tx, company_id: int, ticket_id: str, cycle: int | None, samples: Sequence[Sample]
) -> Counter[str]:
    """Replaces the samples of a ticket, or of one cycle; equal ones stay. Returns the change in the number of samples
    for each metric."""
    removed = await queries.delete_others(tx, company_id, ticket_id, cycle, samples)
    added = await queries.insert_samples(tx, company_id, samples) if samples else []
    if removed:
        await tallies.recount(tx, company_id, [*removed, *added])
    else:
        await tallies.add(tx, company_id, added)
    difference = Counter(one.metric for one in added)
    difference.subtract(one.metric for one in removed)
    return difference
