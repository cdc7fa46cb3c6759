"""How far the worker is behind, read from the database for /metrics."""

from collections.abc import Iterator

import asyncpg
import structlog
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from sapa.db.connection import DatabaseAway
from sapa.db.pool import Database
from sapa.work import queries
from sapa.work.leases import LEASE_SECONDS

MAX_DELTAS_READ = 10_000

log = structlog.get_logger()


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
            counters = await queries.get_counter_backlog(db, LEASE_SECONDS, MAX_DELTAS_READ)
            deliveries = await queries.get_delivery_backlog(db, MAX_DELTAS_READ)
            drifting = await queries.count_drift(db)
            backup = await queries.get_backup_figures(db)
    except (DatabaseAway, asyncpg.PostgresError) as error:
        log.warning("queue ages not read", reason=f"{type(error).__name__}: {error}")
        return _encode({"sapa_database_up": (UP, 0)})
    return _encode(
        {
            "sapa_database_up": (UP, 1),
            "sapa_counter_oldest_seconds": (
                "Age of the oldest change that is not folded into its total yet.",
                counters.oldest_seconds,
            ),
            "sapa_counter_waiting": (
                "Changes that are not folded into their totals yet, as PostgreSQL's statistics count them.",
                counters.waiting,
            ),
            "sapa_worker_unseen_seconds": ("Time since a worker last renewed its lease.", counters.unseen_seconds),
            "sapa_webhook_oldest_due_seconds": (
                "How long the oldest due delivery has waited.",
                deliveries.oldest_due_seconds,
            ),
            "sapa_webhook_waiting": (
                "Deliveries in the queue: due, held or to be tried again.",
                max(0, deliveries.waiting),
            ),
            "sapa_webhook_suspended": ("Endpoints that are suspended.", deliveries.suspended),
            "sapa_loyalty_drift": ("Wallets that contradict their own entries, as last checked.", drifting),
            "sapa_backup_age_seconds": ("Age of the newest backup.", backup.age_seconds),
            "sapa_backup_failed": ("1 when the last backup failed.", backup.failed),
        }
    )


UP = "1 when PostgreSQL answers."


def _encode(figures: dict[str, tuple[str, float | None]]) -> bytes:
    registry = CollectorRegistry()
    registry.register(QueueAges(figures))
    return generate_latest(registry)
