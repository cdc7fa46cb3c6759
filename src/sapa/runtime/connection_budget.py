"""How many database connections the processes of one machine may hold."""

from sapa.db import long_reads
from sapa.settings import Settings

LISTENER = 1
"""Of each process: where it is notified."""
METRICS = 1
RESERVED = 14
"""For commands, migrations, backups and the superuser."""


def count_connections(settings: Settings) -> int:
    """Of the API processes, the process of their metrics, and one worker."""
    of_api = settings.server.processes * (settings.database.pool_size + long_reads.CONNECTIONS + LISTENER) + METRICS
    return of_api + settings.worker.pool_size + long_reads.CONNECTIONS + LISTENER
