"""How far the worker is behind, asked of the database when /metrics is read."""

from prometheus_client import CollectorRegistry, Gauge, generate_latest

from sapa.db.pool import AWAY, Database
from sapa.db.sql import sql

AGES = sql(
    """
    SELECT (SELECT coalesce(extract(epoch FROM now() - min(created_at)), 0)::float8 FROM counter_deltas),
           (SELECT count(*) FROM counter_deltas),
           (SELECT coalesce(extract(epoch FROM now() - min(expires_at)), 0)::float8
              FROM leases WHERE expires_at < now())""",
    crosses="a look over the whole installation",
)


async def collect_queue_ages(database: Database) -> bytes:
    registry = CollectorRegistry()
    up = Gauge("sapa_database_up", "1 when PostgreSQL answers.", registry=registry)
    try:
        async with database.connection() as db:
            row = await db.fetchrow(AGES.text)
    except AWAY:
        up.set(0)
        return generate_latest(registry)
    up.set(1)
    gauges = {
        "sapa_counter_oldest_seconds": "Age of the oldest change that is not folded into its total yet.",
        "sapa_counter_waiting": "Changes that are not folded into their totals yet.",
        "sapa_lease_overdue_seconds": "How long the most overdue job has been without a worker.",
    }
    for (name, text), value in zip(gauges.items(), row or (), strict=True):
        Gauge(name, text, registry=registry).set(value)
    Gauge("sapa_pool_connections", "Connections of the process that answered.", registry=registry).set(database.opened)
    Gauge("sapa_pool_idle", "Idle ones of them.", registry=registry).set(database.idle)
    return generate_latest(registry)
