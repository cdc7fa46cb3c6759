"""How many database connections the processes of an installation may hold."""

from sapa.db import long_reads
from sapa.settings import Settings

LISTENER = 1
"""Of each process: where it is notified."""
METRICS = 1
RESERVED = 14
"""For commands, migrations, backups and the superuser."""


def count_connections(settings: Settings, processes: int | None = None, workers: int = 1) -> int:
    """Of so many API processes and workers, by default those of one machine, and the process of the API's metrics."""
    of_api = settings.database.pool_size + long_reads.CONNECTIONS + LISTENER
    of_worker = settings.worker.pool_size + long_reads.CONNECTIONS + LISTENER
    return (processes or settings.server.processes) * of_api + METRICS + workers * of_worker
