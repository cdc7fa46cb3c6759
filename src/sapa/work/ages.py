"""How far the worker is behind, read from the database when /metrics is requested."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from sapa.db.connection import DatabaseAway
from sapa.db.pool import Database
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

MOST_COUNTED = 100_000

# The oldest delivery of each active lane, by the index.
DELIVERIES = sql(
    """
    SELECT (SELECT coalesce(extract(epoch FROM max(now() + c.clock_offset - oldest.due_at)), 0)::float8
              FROM webhook_endpoints e
              JOIN companies c ON c.company_id = e.company_id
             CROSS JOIN LATERAL (
                   SELECT q.due_at FROM webhook_queue q
                    WHERE q.company_id = e.company_id AND q.endpoint_id = e.id
                    ORDER BY q.due_at LIMIT 1) AS oldest
             WHERE e.status = 'active' AND oldest.due_at <= now() + c.clock_offset),
           (SELECT count(*) FROM (SELECT FROM webhook_queue LIMIT $1) AS waiting),
           (SELECT count(*) FROM webhook_endpoints WHERE status = 'suspended')""",
    crosses="a look over the whole installation",
)


DRIFT = sql(
    "SELECT coalesce(sum(GREATEST(drifting, found)), 0)::bigint FROM loyalty_checks",
    crosses="a look over the whole installation",
)


class QueueAges(Collector):
    """Plain figures: a Gauge would also write to the files that all processes share."""

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
            ((overdue, deliveries, suspended),) = await db.fetch(DELIVERIES.text, MOST_COUNTED)
            drifting = await DRIFT.value(db)
    except DatabaseAway:
        return _encode({"sapa_database_up": (UP, 0)})
    return _encode(
        {
            "sapa_database_up": (UP, 1),
            "sapa_counter_oldest_seconds": (
                "Age of the oldest change that is not folded into its total yet.",
                oldest,
            ),
            "sapa_counter_waiting": ("Changes that are not folded into their totals yet.", waiting),
            "sapa_worker_unseen_seconds": ("Time since a worker last took a lease.", unseen),
            "sapa_webhook_oldest_due_seconds": ("How long the oldest due delivery has waited.", overdue),
            "sapa_webhook_waiting": (
                f"Deliveries in the queue, due, held or to be tried again, counted up to {MOST_COUNTED}.",
                deliveries,
            ),
            "sapa_webhook_suspended": ("Endpoints that are suspended.", suspended),
            "sapa_loyalty_drift": ("Wallets that contradict their own entries, as last checked.", drifting),
            "sapa_pool_connections": ("Connections of the process that answered.", database.open_count),
            "sapa_pool_idle": ("Idle ones of them.", database.idle),
        }
    )


UP = "1 when PostgreSQL answers."


def _encode(figures: dict[str, tuple[str, float | None]]) -> bytes:
    registry = CollectorRegistry()
    registry.register(QueueAges(figures))
    return generate_latest(registry)
