"""How far the worker is behind, asked of the database when /metrics is read."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from sapa.db.pool import AWAY, Database
from sapa.db.sql import sql
from sapa.work.worker import LEASE_SECONDS

AGES = sql(
    """
    SELECT (SELECT coalesce(extract(epoch FROM now() - min(created_at)), 0)::float8 FROM counter_deltas),
           (SELECT count(*) FROM counter_deltas),
           (SELECT (extract(epoch FROM now() - max(expires_at)) + $1)::float8
              FROM leases WHERE expires_at > '-infinity')""",
    crosses="a look over the whole installation",
)


class Figures(Collector):
    """Plain figures: a Gauge would also write itself into the files that all processes share."""

    def __init__(self, figures: dict[str, tuple[str, float | None]]) -> None:
        self._figures = figures

    def collect(self) -> Iterator[Metric]:
        for name, (text, value) in self._figures.items():
            if value is not None:
                yield GaugeMetricFamily(name, text, value)


async def collect_queue_ages(database: Database) -> bytes:
    try:
        async with database.connection() as db:
            ((oldest, waiting, unseen),) = await db.fetch(AGES.text, LEASE_SECONDS)
    except AWAY:
        return _print({"sapa_database_up": (UP, 0)})
    return _print(
        {
            "sapa_database_up": (UP, 1),
            "sapa_counter_oldest_seconds": (
                "Age of the oldest change that is not folded into its total yet.",
                oldest,
            ),
            "sapa_counter_waiting": ("Changes that are not folded into their totals yet.", waiting),
            "sapa_worker_unseen_seconds": ("Time since a worker last took a lease.", unseen),
            "sapa_pool_connections": ("Connections of the process that answered.", database.opened),
            "sapa_pool_idle": ("Idle ones of them.", database.idle),
        }
    )


UP = "1 when PostgreSQL answers."


def _print(figures: dict[str, tuple[str, float | None]]) -> bytes:
    registry = CollectorRegistry()
    registry.register(Figures(figures))
    return generate_latest(registry)
