"""Samples come in and are corrected here, in the transaction of what caused them."""

from collections import Counter
from collections.abc import Sequence

from sapa.db.pool import Tx
from sapa.support.samples import queries, tallies
from sapa.support.samples.types import Sample


async def record(tx: Tx, company_id: int, samples: Sequence[Sample]) -> None:
    """Adds samples. One that is there already is not added again."""
    if samples:
        await tallies.add(tx, company_id, await queries.insert_samples(tx, company_id, samples))


async def replace(
    tx: Tx, company_id: int, ticket_id: str, cycle: int | None, samples: Sequence[Sample]
) -> Counter[str]:
    """Makes these the samples of a ticket, or of one cycle of it; what is there already stays as it is. Says of each
    metric how many there are more, or fewer."""
    removed = await queries.delete_others(tx, company_id, ticket_id, cycle, samples)
    added = await queries.insert_samples(tx, company_id, samples) if samples else []
    if removed:
        await tallies.recount(tx, company_id, [*removed, *added])
    else:
        await tallies.add(tx, company_id, added)
    grown = Counter(one.metric for one in added)
    grown.subtract(one.metric for one in removed)
    return grown
