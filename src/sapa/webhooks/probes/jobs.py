"""Probes suspended endpoints, so that a receiver that works again gets its events without anybody's help."""

import asyncio
from functools import partial

import structlog

from sapa.context import AppContext
from sapa.db.connection import DatabaseAway
from sapa.db.pool import RETRYABLE
from sapa.db.wakeups import Wakeup
from sapa.values.sealing import BadSecretKey
from sapa.webhooks.dispatch.lanes import lease_lane
from sapa.webhooks.probes import actions, queries
from sapa.webhooks.probes.types import DueProbe
from sapa.webhooks.sender import WebhookSender
from sapa.work.loops import repeat, wait_for_due
from sapa.work.metrics import PROBES

MAX_AT_ONCE = 100
PAUSE_SECONDS = 1.0
STOP_SECONDS = 20.0
# Longer than an attempt can take.
_LEASE_SECONDS = 60.0

log = structlog.get_logger()


async def probe_suspended(context: AppContext, stopping: asyncio.Event) -> None:
    if context.sealing is None:
        await stopping.wait()
        return
    sender = WebhookSender(context.settings.webhooks)
    running: dict[DueProbe, asyncio.Task[None]] = {}

    async def step(wakeup: Wakeup) -> None:
        wakeup.begin()
        async with context.database.connection() as db:
            due = await queries.list_due(db, MAX_AT_ONCE)
        for probe in due:
            if probe not in running and len(running) < MAX_AT_ONCE:
                running[probe] = asyncio.create_task(_probe(context, sender, probe))
        await wait_for_due(wakeup, running, stopping)

    with context.database.wakeups.open(queries.PROBES, PAUSE_SECONDS) as wakeup:
        try:
            await repeat(partial(step, wakeup), stopping)
            if running:
                await asyncio.wait(running.values(), timeout=STOP_SECONDS)
        finally:
            for task in running.values():
                task.cancel()
            await asyncio.gather(*running.values(), return_exceptions=True)
            await sender.close()


async def _probe(context: AppContext, sender: WebhookSender, due: DueProbe) -> None:
    """Under the lease of the lane: nothing else is sent to the endpoint, and no other worker probes it."""
    try:
        async with lease_lane(context.database, due.company_id, due.endpoint_id, _LEASE_SECONDS) as is_leased:
            if is_leased:
                await _send_probe(context, sender, due)
    except (DatabaseAway, *RETRYABLE) as error:
        reason = f"{type(error).__name__}: {error}"
        log.warning("webhook probe waits for the database", webhook_id=due.endpoint_id, reason=reason)
    except Exception:
        log.exception("webhook probe failed with an internal error", webhook_id=due.endpoint_id)


async def _send_probe(context: AppContext, sender: WebhookSender, due: DueProbe) -> None:
    try:
        async with context.database.transaction() as tx:
            probe = await actions.choose(tx, context.vault, context.settings.server.address, due)
    except BadSecretKey as reason:
        log.error("webhook endpoint cannot be probed", webhook_id=due.endpoint_id, reason=str(reason))
        async with context.database.transaction() as tx:
            await queries.postpone(tx, due.company_id, due.endpoint_id, actions.EMPTY_SECONDS)
        return
    if probe is None:
        return
    outcome = await sender.send(probe.target, probe.message)
    PROBES.labels("delivered" if outcome.delivered else "failed").inc()
    async with context.database.transaction() as tx:
        is_resumed = await actions.settle(tx, due, probe.delivery, outcome)
    if is_resumed:
        log.info("webhook endpoint resumed after a probe", company_id=due.company_id, webhook_id=due.endpoint_id)
