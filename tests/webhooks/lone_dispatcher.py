"""`python -m tests.webhooks.lone_dispatcher SECONDS`: the dispatcher alone, with leases as short as a test needs."""

import asyncio
import signal
import sys

from sapa.context import ProcessLease
from sapa.db.pool import open_database
from sapa.logs import configure_logs
from sapa.settings import read_settings
from sapa.values.sealing import Vault
from sapa.webhooks.dispatch.dispatcher import Dispatcher


async def main(lease_seconds: float) -> None:
    settings = read_settings()
    configure_logs(settings.log_level)
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    async with open_database(settings.database.url or "", size=6, application="lone dispatcher") as database:
        vault = Vault(settings.secret_key or "")
        await Dispatcher(database, settings, vault, ProcessLease(), lease_seconds).run(stopping)


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1])))
