"""What a plan of PostgreSQL's reads, as EXPLAIN (FORMAT JSON) writes it."""

from collections.abc import Iterator
from typing import Any


def scans(plan: dict[str, Any], table: str) -> Iterator[dict[str, Any]]:
    """The parts of the plan that read the table."""
    if plan.get("Relation Name") == table and "Scan" in plan["Node Type"]:
        yield plan
    for part in plan.get("Plans", ()):
        yield from scans(part, table)


def get_range(scan: dict[str, Any]) -> str:
    """What the scan looks up in its index. A bitmap scan names it as what is checked again."""
    return str(scan.get("Index Cond", scan.get("Recheck Cond", "")))
