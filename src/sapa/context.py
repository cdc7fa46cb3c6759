"""What every process of the product shares: settings, database, clients."""

import asyncio
import math
import time
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

import structlog
from msgspec import Struct, field

from sapa.db.long_reads import LongReads
from sapa.db.pool import Database
from sapa.outbound.bucket import Bucket
from sapa.outbound.client import Client
from sapa.settings import Settings
from sapa.values.large_bodies import LargeBodies as LargeBodies
from sapa.values.sealing import SecretKeyMissing, Vault

if TYPE_CHECKING:
    from sapa.outbound.loopback import Loopback
    from sapa.outbound.mail_sink import MailSink

CLOSE_SECONDS = 15.0
"""How long a process that ends waits for running work; less than what its supervisor allows."""
CANCEL_SECONDS = 2.0
"""How long cancelled work may take to end: it returns its connection to the pool, which closes next."""

Result = TypeVar("Result")

log = structlog.get_logger()


class ProcessLease:
    """Until when this process may do work that it holds under its name. Only a worker's lease ends."""

    def __init__(self) -> None:
        self.until = math.inf
        """On the monotonic clock."""

    def is_held(self) -> bool:
        return time.monotonic() < self.until


class AppContext(Struct, frozen=True):
    """The database and the outbound clients, built once for each process."""

    settings: Settings
    database: Database
    long_reads: LongReads
    client: Client
    loopback: "Loopback"
    mail_sink: "MailSink"
    sealing: Vault | None
    bucket: Bucket | None
    """For files; None if they are stored in the database."""
    closing: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the process ends: streaming responses end then."""
    running: set[asyncio.Task[Any]] = field(default_factory=set)
    """Work that continues when its caller disconnects."""
    large_bodies: LargeBodies = field(default_factory=LargeBodies)
    lease: ProcessLease = field(default_factory=ProcessLease)

    @property
    def vault(self) -> Vault:
        if self.sealing is None:
            raise SecretKeyMissing
        return self.sealing

    async def run_to_end(self, work: Coroutine[Any, Any, Result]) -> Result:
        """The work continues when its caller is cancelled; `close` waits for it."""
        task = asyncio.create_task(work)
        self.running.add(task)
        task.add_done_callback(self.running.discard)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.add_done_callback(_log_failure)
            raise

    async def close(self) -> None:
        self.closing.set()
        if self.running:
            _, late = await asyncio.wait(self.running, timeout=CLOSE_SECONDS)
            if late:
                log.warning("running work cancelled", tasks=len(late), seconds=CLOSE_SECONDS)
                for task in late:
                    task.cancel()
                await asyncio.wait(late, timeout=CANCEL_SECONDS)
        await self.client.close()
        await self.loopback.close()
        await self.mail_sink.close()
        await self.long_reads.close()


def _log_failure(task: asyncio.Task[Any]) -> None:
    if not task.cancelled() and (error := task.exception()):
        log.warning("work failed after its caller disconnected", reason=f"{type(error).__name__}: {error}")
