"""Settings of the transaction that an export reads in."""

from sapa.db.pool import Tx
from sapa.db.sql import sql

# The reader may pause: a pager that waits for a key must not end the snapshot.
DISABLE_IDLE_TIMEOUT = sql("SELECT set_config('idle_in_transaction_session_timeout', '0', true)")


async def disable_idle_timeout(tx: Tx) -> None:
    await DISABLE_IDLE_TIMEOUT.value(tx)
